"""Where a run stands, from its folder alone, also while a build is working on it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepdown.builder.common.text import without_particulars
from stepdown.builder.records import Verdict
from stepdown.builder.run.ledger import InstanceRecord, InstanceState, Ledger, Purpose
from stepdown.builder.run.nodes import NodesSeen, read_nodes
from stepdown.builder.run.reading import open_ledger
from stepdown.builder.run.spent import ModelSpent, Spent, read_spent, spent_by_model, spent_in_vain


@dataclass(frozen=True, slots=True)
class HeldBack:
    """An instance that has no labels, and why."""

    benchmark: str
    instance_id: str
    state: str
    """`blocked`: a resume tries it again; `dropped`: it stays without labels."""
    reason: str
    said: str = ""
    """The checker's own words on the last seed that it did not let pass; empty where there are none."""


@dataclass(frozen=True, slots=True)
class HeldBackGroup:
    """Instances of one workload that have no labels for one reason. Reasons that differ only in what they quote, or
    in numbers, are one."""

    state: str
    benchmark: str
    reason: str
    """As the first of the instances has it."""
    instances: tuple[str, ...]
    """Their ids, in the run's order."""
    said: Mapping[str, int]
    """The checker's words and how many instances they were said of, most frequent first."""


@dataclass(frozen=True, slots=True)
class ProbeStatus:
    """How far the labelled steps of a run have been probed with every model."""

    steps: str
    """Which of them: `all`, or the `last` of each trajectory."""
    cells: int
    """Steps times models, of instances that are done."""
    told: int
    """Cells that have an outcome, from a probe or from the search itself."""
    technical: int
    """Cells whose probe came to no verdict for technical reasons."""

    @property
    def left(self) -> int:
        """Cells that a resume would probe."""
        return self.cells - self.told


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
    paid_by_model: tuple[ModelSpent, ...]
    """What is booked of it: calls of trials that have ended."""
    in_vain: Spent
    """What of it went to trials that were executed ahead and were not needed, so far."""
    budget: Mapping[str, float | None]
    """`usd`, `calls` and `wall_clock` as the config has them; None where there is no limit."""
    errors_retried: int
    held_back: tuple[HeldBack, ...]
    nodes: NodesSeen | None
    """The machines of a cluster that work on it, or last did; None where none ever has."""
    probes: ProbeStatus | None = None
    """None where the protocol asks for no probes."""

    @property
    def is_finished(self) -> bool:
        """Whether a resume would find nothing to do."""
        if self.probes is not None and self.probes.left:
            return False
        return not self.instances[InstanceState.OPEN] and not self.instances[InstanceState.BLOCKED]

    @property
    def held_back_groups(self) -> tuple[HeldBackGroup, ...]:
        """What is held back, by reason: blocked instances first, the most frequent reason first."""
        return _grouped(self.held_back)


def read_status(folder: Path) -> RunStatus | None:
    """Where the run in a folder stands; None where it was never begun. Raises BadInput where no run is there."""
    with open_ledger(folder) as ledger:
        return _status(ledger, folder)


def _status(ledger: Ledger, folder: Path) -> RunStatus | None:
    run = ledger.meta.find_run()
    if run is None:
        return None
    counts, names, totals = ledger.counts(), run.tiers, ledger.call_totals()
    labels: dict[str, Counter[str]] = defaultdict(lambda: Counter(dict.fromkeys(names, 0)))
    for record in ledger.instances(InstanceState.DONE):
        labels[record.benchmark].update(names[lock.tier] for lock in record.locks)
    return RunStatus(
        pool=run.protocol["pool"]["version"],
        instances={state.value: counts.get(state, 0) for state in InstanceState},
        labels={benchmark: dict(tiers) for benchmark, tiers in sorted(labels.items())},
        paid=read_spent(folder, totals, run.prices),
        paid_by_model=spent_by_model(totals, run.prices),
        in_vain=spent_in_vain(ledger, run.prices),
        budget=run.operation["budget"],
        errors_retried=ledger.retried_errors(),
        held_back=tuple(
            HeldBack(
                record.benchmark, record.instance_id, record.state.value, record.reason, _checkers_words(ledger, record)
            )
            for record in ledger.instances(InstanceState.BLOCKED, InstanceState.DROPPED)
        ),
        nodes=read_nodes(folder),
        probes=_probes(ledger, run.protocol),
    )


def _probes(ledger: Ledger, protocol: Mapping[str, Any]) -> ProbeStatus | None:
    steps = protocol["rules"].get("probe", "none")
    if steps == "none":
        return None
    models = sum(len(tier["models"]) for tier in protocol["pool"]["tiers"])
    found = ledger.probed.of_instances(models, last=steps == "last")
    technical = sum(one.technical for one in found)
    told = sum(one.tried for one in found) - technical
    return ProbeStatus(steps, sum(one.cells for one in found), told, technical)


def _checkers_words(ledger: Ledger, record: InstanceRecord) -> str:
    """Why the last seed of a dropped instance did not pass, where its reason does not say it already."""
    if record.state is not InstanceState.DROPPED:
        return ""
    said = [
        trial.reason
        for trial in ledger.trials(record.id)
        if trial.purpose in (Purpose.SEED, Purpose.VERIFY)
        and trial.verdict not in (Verdict.PASS, Verdict.TECHNICAL)
        and trial.reason
    ]
    return said[-1] if said and said[-1] not in record.reason else ""


def _grouped(held_back: Iterable[HeldBack]) -> tuple[HeldBackGroup, ...]:
    groups: dict[tuple[str, str, str], list[HeldBack]] = defaultdict(list)
    for one in held_back:
        groups[one.state, one.benchmark, without_particulars(one.reason)].append(one)
    found = (
        HeldBackGroup(
            state,
            benchmark,
            members[0].reason,
            tuple(one.instance_id for one in members),
            dict(Counter(one.said for one in members if one.said).most_common()),
        )
        for (state, benchmark, _), members in groups.items()
    )
    return tuple(sorted(found, key=lambda group: (group.state, group.benchmark, -len(group.instances))))
