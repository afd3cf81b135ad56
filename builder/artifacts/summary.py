"""What a run has labelled and what it held back, by workload."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from stepdown.builder.run.ledger import InstanceState, Ledger


@dataclass(slots=True)
class Summary:
    """What a run's files hold and what is held back, by workload."""

    labels: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Rows by tier name."""
    instances: Counter[str] = field(default_factory=Counter)
    drops: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Instances that will have no rows, by reason."""
    blocked: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Instances that wait for a resume, by reason."""
    unfinished: int = 0
    seed_models: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    @property
    def rows(self) -> int:
        return sum(sum(counts.values()) for counts in self.labels.values())


def count_held_back(ledger: Ledger, summary: Summary) -> None:
    """Add the instances without rows to the summary, by reason."""
    for record in ledger.instances(InstanceState.DROPPED, InstanceState.BLOCKED, InstanceState.OPEN):
        if record.state is InstanceState.DROPPED:
            summary.drops[record.benchmark][record.reason] += 1
        elif record.state is InstanceState.BLOCKED:
            summary.blocked[record.benchmark][record.reason] += 1
        else:
            summary.unfinished += 1
