"""What changed between two runs, step by step. A label has moved only where the prefix is the same, byte for byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from stepdown.audit.verdict_basis import VerdictBasis, carries_over, models_below
from stepdown.builder.config.pool import Tier
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.records import Lock, Trajectory
from stepdown.builder.run.ledger import InstanceRecord, InstanceState, Ledger, Purpose, TrialRecord


class Change(StrEnum):
    """What became of a step."""

    NONE = "none"
    MOVED = "label moved"
    PREFIX = "prefix changed"
    """The router is asked another question, so the two labels cannot be compared."""
    GONE = "step gone"
    NEW = "step new"


class Fate(StrEnum):
    """What became of an instance's rows."""

    KEPT = "kept"
    LOST = "lost"
    GAINED = "gained"


@dataclass(frozen=True, slots=True)
class StepLabel:
    """A step's label in one of the runs, and the trials that decide it, in order.

    They are the trials of the locked model, those of the tier below, and where the other run has a lower label those of
    its tier: the label is what it is because the former was accepted and the latter were not.
    """

    tier: str
    tier_id: int
    model: str
    decided_by: tuple[TrialRecord, ...]
    tiers: tuple[str, ...]
    """The names of the run's tiers. A trial names its tier by the index."""


@dataclass(frozen=True, slots=True)
class StepChange:
    """A step, as each of the two runs has it; None where a run has no such step."""

    id: str
    change: Change
    old: StepLabel | None
    new: StepLabel | None
    audit_carries: bool
    """Whether an audit verdict on the old row holds for the new one: prefix, label and the tier below are the same."""


@dataclass(frozen=True, slots=True)
class InstanceChange:
    """An instance that has rows in at least one of the runs. `reason` says why it has none in the other."""

    id: str
    fate: Fate
    reason: str = ""
    steps: tuple[StepChange, ...] = ()


@dataclass(slots=True)
class Totals:
    """How many differences there are of each kind."""

    instances: Counter[Fate] = field(default_factory=Counter)
    steps: Counter[Change] = field(default_factory=Counter)
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Steps of equal prefix by old and new tier; those whose label stayed are counted too."""
    audit_carries: int = 0

    def add(self, instance: InstanceChange) -> None:
        self.instances[instance.fate] += 1
        for step in instance.steps:
            self.steps[step.change] += 1
            self.audit_carries += step.audit_carries
            if step.old and step.new and step.change in (Change.NONE, Change.MOVED):
                self.moves[step.old.tier, step.new.tier] += 1


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs."""

    ledger: Ledger
    protocol: ProtocolConfig

    @property
    def tiers(self) -> tuple[Tier, ...]:
        return self.protocol.pool.tiers


def differences(old: Side, new: Side) -> Iterator[InstanceChange]:
    """Every instance that has rows in one of the runs: the old run's in its order, then the others in the new one's.

    One instance of each run is in memory at a time.
    """
    for record in old.ledger.instances():
        other = _find_record(new.ledger, record)
        if record.state is InstanceState.DONE and other is not None and other.state is InstanceState.DONE:
            yield _compare(old, new, record, other)
        elif record.state is InstanceState.DONE:
            yield InstanceChange(_name(record), Fate.LOST, _why_none(other, "new"))
        elif other is not None and other.state is InstanceState.DONE:
            yield InstanceChange(_name(other), Fate.GAINED, _why_none(record, "old"))
    for record in new.ledger.instances(InstanceState.DONE):
        if _find_record(old.ledger, record) is None:
            yield InstanceChange(_name(record), Fate.GAINED, _why_none(None, "old"))


def _name(record: InstanceRecord) -> str:
    return f"{record.benchmark}/{record.instance_id}"


def _find_record(ledger: Ledger, like: InstanceRecord) -> InstanceRecord | None:
    try:
        return ledger.instance(like.benchmark, like.instance_id)
    except KeyError:
        return None


def _why_none(record: InstanceRecord | None, which: str) -> str:
    if record is None:
        return f"the {which} config does not select it"
    return f"{record.state.value} in the {which} run" + (f": {record.reason}" if record.reason else "")


def _compare(old: Side, new: Side, before: InstanceRecord, after: InstanceRecord) -> InstanceChange:
    was, now = _Labelled(old, before), _Labelled(new, after)
    steps = (_step(f"{_name(before)}/{i}", i, was, now) for i in range(1, max(was.length, now.length) + 1))
    return InstanceChange(_name(before), Fate.KEPT, steps=tuple(steps))


def _step(row_id: str, index: int, was: _Labelled, now: _Labelled) -> StepChange:
    if index > now.length:
        return StepChange(row_id, Change.GONE, was.label(index), None, False)
    if index > was.length:
        return StepChange(row_id, Change.NEW, None, now.label(index), False)
    old, new = was.label(index, now.tier_name(index)), now.label(index, was.tier_name(index))
    seen_before, seen_now = was.audited(index), now.audited(index)
    if seen_before.prefix_digest != seen_now.prefix_digest:
        change = Change.PREFIX
    else:
        moved = (old.tier, old.tier_id) != (new.tier, new.tier_id)
        change = Change.MOVED if moved else Change.NONE
    return StepChange(row_id, change, old, new, carries_over(seen_before, seen_now))


class _Labelled:
    """A finished instance of one of the runs."""

    def __init__(self, side: Side, record: InstanceRecord) -> None:
        if record.final is None:
            raise ValueError(f"instance {record.instance_id!r} is finished without a trajectory")
        self._tiers, self._locks = side.tiers, record.locks
        self._trajectory: Trajectory = side.ledger.trajectories.read(record.final)
        self._trials: dict[int, list[TrialRecord]] = {}
        for trial in side.ledger.trials(record.id):
            if trial.purpose is Purpose.SEARCH and not trial.superseded:
                self._trials.setdefault(trial.trial.step, []).append(trial)

    @property
    def length(self) -> int:
        return len(self._locks)

    def tier_name(self, index: int) -> str:
        return self._tiers[self._locks[index - 1].tier].name

    def label(self, index: int, other: str | None = None) -> StepLabel:
        """A step's label; `other` names the tier that the other run's label has."""
        lock = self._locks[index - 1]
        tier = self._tiers[lock.tier]
        trials = tuple(
            trial
            for trial in self._trials.get(index, ())
            if _decides(trial, lock) or (trial.trial.tier < lock.tier and self._tiers[trial.trial.tier].name == other)
        )
        return StepLabel(tier.name, tier.id, lock.model, trials, tuple(tier.name for tier in self._tiers))

    def audited(self, index: int) -> VerdictBasis:
        """What a reviewer of the step is asked about."""
        lock = self._locks[index - 1]
        tier = self._tiers[lock.tier]
        below = models_below(self._tiers, lock.tier)
        return VerdictBasis(self._trajectory[index - 1].prefix.exact, tier.name, tier.id, below)


def _decides(trial: TrialRecord, lock: Lock) -> bool:
    tried = trial.trial
    return tried.tier == lock.tier - 1 or (tried.tier == lock.tier and tried.model == lock.model)
