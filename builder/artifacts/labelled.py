"""A run's finished instances, out of its ledger, and the row of each of their steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stepdown.builder.artifacts.rows import Row
from stepdown.builder.config.pool import Pool
from stepdown.builder.records import Lock, Trajectory
from stepdown.builder.run.ledger import InstanceRecord, InstanceState, Ledger, TrialRecord


@dataclass(frozen=True, slots=True)
class LabelledInstance:
    """A finished instance as the ledger has it."""

    record: InstanceRecord
    trajectory: Trajectory
    locks: tuple[Lock, ...]
    trials: tuple[TrialRecord, ...]
    hints: Mapping[int, int]


def read_labelled_instances(ledger: Ledger) -> Iterator[LabelledInstance]:
    """Every finished instance, in the run's order, one in memory at a time."""
    for record in ledger.instances(InstanceState.DONE):
        if record.final is None:
            raise ValueError(f"instance {record.instance_id!r} is finished without a trajectory")
        trials = tuple(trial for trial in ledger.trials(record.id) if not trial.superseded)
        yield LabelledInstance(
            record, ledger.trajectories.read(record.final), record.locks, trials, ledger.hints(record.id)
        )


def row_of(instance: LabelledInstance, index: int, pool: Pool) -> Row:
    """The row of a step."""
    step, lock, record = instance.trajectory[index - 1], instance.locks[index - 1], instance.record
    tier = pool.tiers[lock.tier]
    return Row(
        id=f"{record.benchmark}/{record.instance_id}/{index}",
        benchmark=record.benchmark,
        instance_id=record.instance_id,
        step_index=index,
        total_steps=len(instance.trajectory),
        messages=list(step.prefix.messages),
        target_tier=tier.name,
        target_tier_id=tier.id,
        tools=list(step.prefix.tools) or None,
    )
