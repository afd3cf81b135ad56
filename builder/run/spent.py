"""What a run has paid so far, read from its ledger and from the file that is rewritten at every call."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from stepdown.builder.config.price import Price
from stepdown.builder.records import Usage
from stepdown.builder.run.ledger import CallTotal, Ledger

FILE_NAME = "paid.json"


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls that were paid, and their list price."""

    calls: int = 0
    usd: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.calls + other.calls, self.usd + other.usd)


@dataclass(frozen=True, slots=True)
class ModelSpent:
    """What a run has booked as paid to one model."""

    model: str
    calls: int
    usd: float
    """At list price; 0 for a model without a price."""
    reported_usd: float
    """What a gateway said that `reported_calls` of the calls cost together."""
    reported_calls: int
    estimated_calls: int
    """Calls of which some tokens are estimated, since their provider did not report them."""
    usage: Usage = Usage()


def spent_by_model(totals: Iterable[CallTotal], prices: Mapping[str, Price]) -> tuple[ModelSpent, ...]:
    """What a run has booked as paid, by model, in the order of their names; `totals` are its ledger's."""
    paid: dict[str, list[CallTotal]] = defaultdict(list)
    for total in totals:
        if total.paid:
            paid[total.model].append(total)
    return tuple(
        ModelSpent(
            model=model,
            calls=sum(total.calls for total in booked),
            usd=sum(prices[model].cost(total.usage) for total in booked) if model in prices else 0.0,
            reported_usd=sum(total.reported_usd for total in booked),
            reported_calls=sum(total.reported_calls for total in booked),
            estimated_calls=sum(total.estimated_calls for total in booked),
            usage=sum((total.usage for total in booked), Usage()),
        )
        for model, booked in sorted(paid.items())
    )


def spent_in_vain(ledger: Ledger, prices: Mapping[str, Price]) -> Spent:
    """What was paid for trials that were executed ahead and that no search has asked for."""
    found = ledger.calls_in_vain()
    usd = sum(prices[model].cost(usage) for model, _, usage in found if model in prices)
    return Spent(sum(calls for _, calls, _ in found), usd)


def read_spent(folder: Path, totals: Iterable[CallTotal], prices: Mapping[str, Price]) -> Spent:
    """What a run has paid in all its processes, with what a killed one paid and did not record.

    `totals` are its ledger's. `prices` are by model; one that is not among them costs nothing.
    """
    paid = [call for call in totals if call.paid]
    usd = sum(prices[call.model].cost(call.usage) for call in paid if call.model in prices)
    total = read_paid_file(folder)
    return Spent(max(total.calls, sum(call.calls for call in paid)), max(total.usd, usd))


def read_paid_file(folder: Path) -> Spent:
    """The total as the run's file has it; nothing where there is none that can be read."""
    try:
        data = json.loads((folder / FILE_NAME).read_bytes())
        found = Spent(int(data["calls"]), float(data["usd"]))
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        return Spent()
    return found if found.calls >= 0 and 0 <= found.usd < math.inf else Spent()
