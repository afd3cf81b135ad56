"""The run that is shown: its names and prices, which do not change while it goes on, and its ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from stepdown.builder.inspect.explain import TrialCost
from stepdown.builder.run.ledger import CallsOfModel, InstanceState, Ledger
from stepdown.builder.run.nodes import NodesSeen, read_nodes
from stepdown.builder.run.spent import Spent, read_paid_file


class ShownRun:
    """A run, open for reading."""

    def __init__(self, ledger: Ledger, folder: Path) -> None:
        self.ledger, self._folder = ledger, folder
        meta = ledger.meta.run
        self.name = folder.resolve().name
        self.pool: str = meta.protocol["pool"]["version"]
        self.tiers = meta.tiers
        self.models: tuple[str, ...] = tuple(
            dict.fromkeys(model["name"] for tier in meta.protocol["pool"]["tiers"] for model in tier["models"])
        )
        self._prices = meta.prices
        self.benchmarks = ledger.browsing.benchmarks()

    def counts(self) -> dict[str, int]:
        """Instances by state, as it is now."""
        counts = self.ledger.counts()
        return {state.value: counts.get(state, 0) for state in InstanceState}

    def paid(self) -> Spent:
        """What was paid so far, by the file that is rewritten at every call."""
        return read_paid_file(self._folder)

    def nodes(self) -> NodesSeen | None:
        """The machines of a cluster that work on it now, by the file that their head writes; None where none does."""
        seen = read_nodes(self._folder)
        return seen if seen is not None and seen.is_current else None

    def level(self, tier: int) -> int:
        """Which of four colours a tier has: 0 for the cheapest, 3 for the strong one."""
        last = len(self.tiers) - 1
        return 3 if tier >= last else 0 if tier <= 0 else 1 if 2 * tier <= last else 2

    def costs(self, calls: Iterable[CallsOfModel]) -> dict[int | None, TrialCost]:
        """The list price of calls, by their owner."""
        owned: dict[int | None, list[CallsOfModel]] = {}
        for call in calls:
            owned.setdefault(call.owner, []).append(call)
        return {owner: self._cost(of_owner) for owner, of_owner in owned.items()}

    def _cost(self, calls: Sequence[CallsOfModel]) -> TrialCost:
        paid = [call for call in calls if call.paid]
        return TrialCost(
            sum(call.calls for call in calls), sum(call.calls for call in paid), self._usd(calls), self._usd(paid)
        )

    def _usd(self, calls: Iterable[CallsOfModel]) -> float:
        priced = (call for call in calls if call.model in self._prices)
        return round(sum(self._prices[call.model].cost(call.usage) for call in priced), 6)
