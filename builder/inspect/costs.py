"""What a run cost: what it paid, what its calls cost at list price, and what earlier runs had paid already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stepdown.builder.config.pool import Price
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.run.ledger import Ledger, Purpose


@dataclass(frozen=True, slots=True)
class RunCost:
    """Distinct calls of a run, and USD at list price."""

    paid_calls: int
    paid_usd: float
    needed_calls: int
    """All that the protocol needed, whoever paid."""
    needed_usd: float

    @property
    def saved_calls(self) -> int:
        """Answered by the cache: another run had paid for them."""
        return self.needed_calls - self.paid_calls

    @property
    def saved_usd(self) -> float:
        return round(self.needed_usd - self.paid_usd, 6)


def prices_of(protocol: ProtocolConfig) -> Mapping[str, Price]:
    """List prices by the name of the model, that of the hints included."""
    return {name: model.price for name, model in protocol.models.items()}


def run_cost(ledger: Ledger, protocol: ProtocolConfig) -> RunCost:
    """The bill of a run's labels as its ledger has it; what the audit repeated is no part of it."""
    prices = prices_of(protocol)
    totals = [total for total in ledger.call_totals() if total.purpose != Purpose.REPEAT]
    usd = [prices[total.model].cost(total.usage) if total.model in prices else 0.0 for total in totals]
    paid = [index for index, total in enumerate(totals) if total.paid]
    return RunCost(
        paid_calls=sum(totals[index].calls for index in paid),
        paid_usd=round(sum(usd[index] for index in paid), 6),
        needed_calls=sum(total.calls for total in totals),
        needed_usd=round(sum(usd), 6),
    )
