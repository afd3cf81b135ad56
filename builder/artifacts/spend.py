"""What a run really paid, for `spend.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepdown.builder.config.price import Price
from stepdown.builder.records import Usage
from stepdown.builder.run.folder import RunFolder
from stepdown.builder.run.spent import read_spent


def spend_of(run: RunFolder) -> dict[str, Any]:
    """What this run really paid, by purpose and model; what the cache answered is counted beside it.

    `unbooked` was paid for trials that have not ended, or lost when the run was killed.
    """
    ledger, prices = run.ledger, run.config.protocol.prices
    totals = ledger.call_totals()
    calls = sum(total.calls for total in totals if total.paid)
    usd = sum(list_price(prices, total.model, total.usage) for total in totals if total.paid)
    everything = read_spent(run.path, ledger, prices)
    unbooked = everything.calls - calls
    paid = [
        {
            "purpose": total.purpose,
            "model": total.model,
            "calls": total.calls,
            "tokens": _tokens(total.usage),
            "usd": list_price(prices, total.model, total.usage),
        }
        for total in totals
        if total.paid
    ]
    return {
        "usd": round(usd, 6),
        "calls": calls,
        "unbooked": {"usd": round(everything.usd - usd, 6) if unbooked else 0.0, "calls": unbooked},
        "calls_paid_by_earlier_runs": sum(total.calls for total in totals if not total.paid),
        "errors_retried": ledger.retried_errors(),
        "by_model": paid,
    }


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
