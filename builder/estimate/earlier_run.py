"""What a run of the same workloads says for an estimate: the sizes of its seeds, and the calls that it needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.estimate.playing import SeedSize, sizes_of
from stepdown.builder.records import Usage
from stepdown.builder.run.ledger import Ledger, Purpose
from stepdown.builder.run.spent import Spent


@dataclass(frozen=True, slots=True)
class RunSeedSizes:
    """The seeds of a run, by (benchmark, instance id)."""

    by_instance: Mapping[tuple[str, str], SeedSize]

    def mean_steps(self, benchmark: str) -> int | None:
        """Steps of a seed of a benchmark, rounded up; None where the run has none."""
        return rounded_mean([len(seed.sizes) for (name, _), seed in self.by_instance.items() if name == benchmark])


def read_seed_sizes(ledger: Ledger) -> RunSeedSizes:
    """The sizes of a run's verified seeds, with the tokens as providers counted them where they did."""
    found: dict[tuple[str, str], SeedSize] = {}
    for record in ledger.instances():
        if record.seed is not None:
            trajectory = ledger.trajectories.read(record.seed)
            found[record.benchmark, record.instance_id] = SeedSize(
                trajectory[0].model, sizes_of(trajectory), "as the run had them"
            )
    return RunSeedSizes(found)


def rounded_mean(lengths: Sequence[int]) -> int | None:
    """The mean, rounded up; None where there are no lengths."""
    return math.ceil(sum(lengths) / len(lengths)) if lengths else None


@dataclass(frozen=True, slots=True)
class NeededAndPaid:
    """A run's calls of one model: all that its protocol needed, and those that it paid for itself."""

    needed: Spent
    paid: Spent


def read_needed_and_paid(ledger: Ledger, protocol: ProtocolConfig) -> dict[str, NeededAndPaid]:
    """What a run needed and paid, by model, at its own pool's prices."""
    found: dict[str, NeededAndPaid] = {}
    for total in ledger.call_totals():
        if total.purpose == Purpose.REPEAT:
            continue  # the audit's, not the labels'
        model = protocol.models.get(total.model)
        price: Callable[[Usage], float] = model.price.cost if model else lambda usage: 0.0
        spent = Spent(total.calls, price(total.usage))
        before = found.get(total.model, NeededAndPaid(Spent(), Spent()))
        found[total.model] = NeededAndPaid(before.needed + spent, before.paid + spent if total.paid else before.paid)
    return found
