"""Takes the clock and chance out of what a tool leaves, so that an observation is the same at every replay.

The package stamps what an agent makes with the machine's time, and keeps the participants of a new event in the order
of a set, which is another one in each process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel

START = datetime(2024, 5, 15, 12)
"""Noon of the day that the suites take place on."""
_SLACK = timedelta(seconds=2)
"""The machine's clock may be set meanwhile."""

Path = tuple[str, ...]


class Settled:
    """What is the package's runtime to its executor: it runs a tool, then settles what that left."""

    def __init__(self, runtime: Any, calls: int) -> None:
        """`calls` were executed before: each has a second of its own, so that later things are later."""
        self._runtime, self.functions = runtime, runtime.functions
        self._now = START + timedelta(seconds=calls)

    def run_function(self, env: Any, function: str, kwargs: Any) -> tuple[Any, str | None]:
        """Run a tool as the package does: its result, and its error in words."""
        events = set(_events(env))
        begun = datetime.now()
        result, error = self._runtime.run_function(env, function, kwargs)
        window = begun - _SLACK, datetime.now() + _SLACK
        for part in (env, result):
            settle(part, window, self._now)
        for event in _events(env).keys() - events:
            _order(env, _events(env)[event])
        return result, error


def settle(value: Any, window: tuple[datetime, datetime], now: datetime) -> Any:
    """The value with every moment in the window replaced by `now`, in place where it has parts.

    >>> settle([datetime(2030, 1, 1)], (datetime(2029, 1, 1), datetime(2031, 1, 1)), START)
    [datetime.datetime(2024, 5, 15, 12, 0)]
    """
    if isinstance(value, datetime):
        return now if value.tzinfo is None and window[0] <= value <= window[1] else value
    for name, part in list(_parts(value)):
        settled = settle(part, window, now)
        if settled is part:
            continue
        if isinstance(value, BaseModel):
            setattr(value, name, settled)
        else:
            value[name] = settled
    return value


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, BaseModel):
        yield from vars(value).items()
    elif isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)


def _events(env: Any) -> Mapping[str, Any]:
    """The events of an environment's calendar, where it has one."""
    found: Mapping[str, Any] = env.calendar.events if hasattr(env, "calendar") else {}
    return found


def _order(env: Any, event: Any) -> None:
    """Put the participants of a new event in order, and the recipients of its invitation, which is the last email."""
    invited = set(event.participants)
    event.participants.sort()
    sent = list(env.inbox.emails.values())[-1:]
    if sent and set(sent[0].recipients) == invited:
        sent[0].recipients.sort()
