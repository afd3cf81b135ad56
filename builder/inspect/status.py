"""Where a run stands, from its folder alone, also while a build is working on it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stepdown.builder.run.ledger import InstanceState, Ledger
from stepdown.builder.run.reading import open_ledger
from stepdown.builder.run.spent import Spent, read_spent


@dataclass(frozen=True, slots=True)
class HeldBack:
    """An instance that has no labels, and why."""

    benchmark: str
    instance_id: str
    state: str
    """`blocked`: a resume tries it again; `dropped`: it stays without labels."""
    reason: str


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Where a run stands."""

    pool: str
    """Its version."""
    instances: Mapping[str, int]
    """By state: open, done, blocked, dropped."""
    labels: Mapping[str, Mapping[str, int]]
    """Labelled steps by workload and tier, of instances that are done."""
    paid: Spent
    budget: Mapping[str, float | None]
    """`usd`, `calls` and `wall_clock` as the config has them; None where there is no limit."""
    errors_retried: int
    held_back: tuple[HeldBack, ...]

    @property
    def is_finished(self) -> bool:
        """Whether a resume would find nothing to do."""
        return not self.instances[InstanceState.OPEN] and not self.instances[InstanceState.BLOCKED]


def read_status(folder: Path) -> RunStatus | None:
    """Where the run in a folder stands; None where it was never begun. Raises BadInput where no run is there."""
    with open_ledger(folder) as ledger:
        return _status(ledger, folder)


def _status(ledger: Ledger, folder: Path) -> RunStatus | None:
    run = ledger.meta.find_run()
    if run is None:
        return None
    counts, names = ledger.counts(), run.tiers
    labels: dict[str, Counter[str]] = defaultdict(lambda: Counter(dict.fromkeys(names, 0)))
    for record in ledger.instances(InstanceState.DONE):
        labels[record.benchmark].update(names[lock.tier] for lock in record.locks)
    return RunStatus(
        pool=run.protocol["pool"]["version"],
        instances={state.value: counts.get(state, 0) for state in InstanceState},
        labels={benchmark: dict(tiers) for benchmark, tiers in sorted(labels.items())},
        paid=read_spent(folder, ledger, run.prices),
        budget=run.operation["budget"],
        errors_retried=ledger.retried_errors(),
        held_back=tuple(
            HeldBack(record.benchmark, record.instance_id, record.state.value, record.reason)
            for record in ledger.instances(InstanceState.BLOCKED, InstanceState.DROPPED)
        ),
    )
