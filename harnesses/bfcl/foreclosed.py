"""States of the simulated APIs from which a turn's accepted state is out of reach, recognised before the turn ends.

Upstream compares public attributes for equality when a turn ends. Some of them can only grow: no function of the API
takes anything away. Where such an attribute already holds more than the accepted state, or something else in a place
that is never written again, no further call can make the two equal. Attributes that a later call can restore are
ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NEVER_FALLING = {
    "MessageAPI": ("message_count", "user_count"),
    "TicketAPI": ("ticket_counter",),
    "TradingBot": ("order_counter",),
    "TwitterAPI": ("tweet_counter",),
    "VehicleControlAPI": ("fuelLevel",),
}
"""Counters, and a tank that can only be filled."""
_NEVER_LOSING = {
    "MessageAPI": ("generated_ids", "user_map"),
    "TravelAPI": ("credit_card_list",),
}
"""Sets and dictionaries from which no function removes a key."""
_APPENDED_TO = {"TradingBot": ("transaction_history",)}
"""Lists that are only ever appended to, with records that are never changed."""
_WRITTEN_ONCE = {
    "TradingBot": ("orders", "order_counter", ("order_type", "symbol", "price", "amount")),
    "TwitterAPI": ("tweets", "tweet_counter", ("username", "content", "tags")),
}
"""Records by number, the counter below which no number is used again, and the fields that stay as they were written."""


def foreclosed(model: Mapping[str, Any], accepted: Mapping[str, Any]) -> str | None:
    """Why the accepted state is out of reach, or None while it may be reached. Changes neither."""
    for name, target in accepted.items():
        attribute = _lost(name, vars(model[name]), vars(target))
        if attribute:
            return f"{name}.{attribute} holds what no further call can undo"
    return None


def _lost(name: str, model: Mapping[str, Any], target: Mapping[str, Any]) -> str | None:
    for attribute in _NEVER_FALLING.get(name, ()):
        if _exceeds(model[attribute], target[attribute]):
            return attribute
    for attribute in _NEVER_LOSING.get(name, ()):
        if not set(model[attribute]) <= set(target[attribute]):
            return attribute
    for attribute in _APPENDED_TO.get(name, ()):
        if model[attribute] != target[attribute][: len(model[attribute])]:
            return attribute
    if name in _WRITTEN_ONCE:
        attribute, counter, fields = _WRITTEN_ONCE[name]
        if _rewritten(model[attribute], target[attribute], model[counter], fields):
            return attribute
    return None


def _exceeds(value: Any, target: Any) -> bool:
    return isinstance(value, (int, float)) and isinstance(target, (int, float)) and value > target


def _rewritten(records: Mapping[Any, Any], targets: Mapping[Any, Any], counter: Any, fields: tuple[str, ...]) -> bool:
    """Whether a record whose number is not used again differs from the accepted one in a lasting field."""
    for number, record in records.items():
        if not isinstance(number, int) or not isinstance(counter, int) or number >= counter:
            continue
        target = targets.get(number)
        if target is None or any(record.get(field) != target.get(field) for field in fields):
            return True
    return False
