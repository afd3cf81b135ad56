"""What a run really paid, for `spend.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stepdown.builder.config.price import Price
from stepdown.builder.records import Usage
from stepdown.builder.run.folder import RunFolder
from stepdown.builder.run.ledger import CallTotal
from stepdown.builder.run.spent import ModelSpent, read_spent, spent_by_model, spent_in_vain


def spend_of(run: RunFolder, totals: Sequence[CallTotal]) -> dict[str, Any]:
    """What this run really paid, by purpose and model; what the cache answered is counted beside it.
    `totals` are its ledger's.

    `unbooked` was paid for trials that have not ended, or lost when the run was killed; `in_vain`, which is part of it,
    for trials that were executed ahead (`operation.speculate`) and were not needed. `usd` is the list price, of
    estimated tokens too (`estimated_calls`); `reported_usd` is what gateways said that `reported_calls` cost.
    `prompt_cache` has of every model the prompt tokens that its provider read from and wrote to its cache, and what
    this saved of the list price.
    """
    ledger, prices = run.ledger, run.config.protocol.prices
    booked = [total for total in totals if total.paid]
    calls = sum(total.calls for total in booked)
    usd = sum(list_price(prices, total.model, total.usage) for total in booked)
    everything = read_spent(run.path, totals, prices)
    unbooked, in_vain = everything.calls - calls, spent_in_vain(ledger, prices)
    paid = [
        {
            "purpose": total.purpose,
            "model": total.model,
            "calls": total.calls,
            "tokens": _tokens(total.usage),
            "usd": list_price(prices, total.model, total.usage),
            **_told([total]),
        }
        for total in booked
    ]
    return {
        "usd": round(usd, 6),
        "calls": calls,
        **_told(booked),
        "unbooked": {"usd": round(everything.usd - usd, 6) if unbooked else 0.0, "calls": unbooked},
        "in_vain": {"usd": round(in_vain.usd, 6), "calls": in_vain.calls},
        "calls_paid_by_earlier_runs": sum(total.calls for total in totals if not total.paid),
        "errors_retried": ledger.retried_errors(),
        "by_model": paid,
        "prompt_cache": {one.model: _prompt_cache(one, prices) for one in spent_by_model(totals, prices)},
    }


def _told(totals: Sequence[CallTotal]) -> dict[str, Any]:
    """What gateways said that calls cost, null where they said nothing, and how many calls have estimated tokens."""
    reported = sum(total.reported_calls for total in totals)
    return {
        "reported_usd": round(sum(total.reported_usd for total in totals), 6) if reported else None,
        "reported_calls": reported,
        "estimated_calls": sum(total.estimated_calls for total in totals),
    }


def _prompt_cache(spent: ModelSpent, prices: Mapping[str, Price]) -> dict[str, Any]:
    tokens, price = _tokens(spent.usage), prices.get(spent.model)
    saved = round(price.saved_by_cache(spent.usage), 6) if price else 0.0
    return {name: tokens[name] for name in ("prompt", "cache_read", "cache_write")} | {"saved_usd": saved}


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "prompt": usage.prompt,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "completion": usage.completion,
    }


def list_price(prices: Mapping[str, Price], model: str, usage: Usage) -> float:
    """USD of some usage; 0 for a model without a price."""
    price = prices.get(model)
    return round(price.cost(usage), 6) if price else 0.0
