"""What a reviewer is shown of a sampled step, read from the run's ledger one step at a time. It names no model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stepdown.builder.artifacts.queue import LowerAnswer, NameMask, read_lower_answers, shown_response
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Message, Tool, Trajectory
from stepdown.builder.run.folder import open_for_reading
from stepdown.builder.run.ledger import InstanceRecord, InstanceState, Ledger


@dataclass(frozen=True, slots=True)
class ReviewCase:
    """A step as its reviewer sees it."""

    id: str
    benchmark: str
    instance_id: str
    step_index: int
    total_steps: int
    messages: tuple[Message, ...]
    """The prefix, exactly as a router would see it."""
    tools: tuple[Tool, ...]
    prefix_digest: str
    """The prefix's exact digest. A verdict is recorded with it."""
    tier: str
    """The label."""
    tier_id: int
    below: str | None
    """The tier that the reviewer is asked about, one below the label. None where the label is the lowest."""
    response: Message
    """The response that was locked at the label's tier."""
    lower: tuple[LowerAnswer, ...]
    """What the trials one tier lower answered, in the cascade's order. Technical trials are left out."""


class CaseReader:
    """Reads the cases of a run. Threads may share one. Made by `open_cases`."""

    def __init__(self, ledger: Ledger, protocol: ProtocolConfig, run: Path) -> None:
        self._ledger, self._run = ledger, run
        self._pool = protocol.pool
        self._mask = NameMask(protocol.models.values())
        self._latest: tuple[int, Trajectory] = (0, ())

    def read(self, benchmark: str, instance_id: str, step_index: int) -> ReviewCase:
        """Read the case of a step of a finished instance. Raises BadInput where the run has no such row."""
        record = self._read_record(benchmark, instance_id, step_index)
        trajectory = self._read_trajectory(record)
        step, lock = trajectory[step_index - 1], record.locks[step_index - 1]
        tiers = self._pool.tiers
        return ReviewCase(
            id=f"{benchmark}/{instance_id}/{step_index}",
            benchmark=benchmark,
            instance_id=instance_id,
            step_index=step_index,
            total_steps=len(trajectory),
            messages=step.prefix.messages,
            tools=step.prefix.tools,
            prefix_digest=step.prefix.exact,
            tier=tiers[lock.tier].name,
            tier_id=tiers[lock.tier].id,
            below=tiers[lock.tier - 1].name if lock.tier else None,
            response=shown_response(step.response),
            lower=tuple(
                read_lower_answers(
                    self._ledger, self._ledger.trials(record.id), step_index, lock.tier, self._pool, self._mask
                )
            ),
        )

    def read_prefix_digest(self, benchmark: str, instance_id: str, step_index: int) -> str:
        """Read the exact digest of a step's prefix. Raises BadInput where the run has no such row."""
        record = self._read_record(benchmark, instance_id, step_index)
        return self._read_trajectory(record)[step_index - 1].prefix.exact

    def _read_trajectory(self, record: InstanceRecord) -> Trajectory:
        # Steps are mostly read in the run's order, so the next step is likely to be of the same trajectory.
        number, trajectory = self._latest
        if number != record.id:
            trajectory = self._ledger.trajectories.read(record.final or 0)
            self._latest = (record.id, trajectory)
        return trajectory

    def _read_record(self, benchmark: str, instance_id: str, step_index: int) -> InstanceRecord:
        try:
            record = self._ledger.instance(benchmark, instance_id)
        except KeyError:
            record = None
        if record is None or record.state is not InstanceState.DONE or not 1 <= step_index <= len(record.locks):
            raise BadInput(f"the run has no row {f'{benchmark}/{instance_id}/{step_index}'[:200]!r}", file=self._run)
        return record


@contextmanager
def open_cases(run_folder: Path) -> Iterator[CaseReader]:
    """Open the cases of a run, also while a build works on it. Raises BadInput where there is no run."""
    with open_for_reading(run_folder) as (ledger, protocol):
        yield CaseReader(ledger, protocol, run_folder)
