"""What a run cost: what it paid itself, and what all calls that it needed cost at list price."""

from __future__ import annotations

from dataclasses import dataclass

from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.run.ledger import BESIDE_LABELS, Ledger


@dataclass(frozen=True, slots=True)
class RunCost:
    """A run's distinct calls, and their list price in USD."""

    paid_calls: int
    paid_usd: float
    needed_calls: int
    """All that the protocol needed, whichever run paid for them."""
    needed_usd: float

    @property
    def saved_calls(self) -> int:
        """Calls that another run had paid for, so that the cache answered them."""
        return self.needed_calls - self.paid_calls

    @property
    def saved_usd(self) -> float:
        return round(self.needed_usd - self.paid_usd, 6)


def run_cost(ledger: Ledger, protocol: ProtocolConfig) -> RunCost:
    """What a run's labels cost. What came after the labels, repeats and probes, is not counted."""
    prices = protocol.prices
    totals = [total for total in ledger.call_totals() if total.purpose not in BESIDE_LABELS]
    usd = [prices[total.model].cost(total.usage) if total.model in prices else 0.0 for total in totals]
    paid = [index for index, total in enumerate(totals) if total.paid]
    return RunCost(
        paid_calls=sum(totals[index].calls for index in paid),
        paid_usd=round(sum(usd[index] for index in paid), 6),
        needed_calls=sum(total.calls for total in totals),
        needed_usd=round(sum(usd), 6),
    )
