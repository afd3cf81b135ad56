"""What labelling an instance needs of a ledger, wherever that is: in this process, or at the head of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stepdown.builder.records import Lock, Mask, Receipt, Trajectory
from stepdown.builder.run.ledger.entries import TrialEntry
from stepdown.builder.run.ledger.schema import TrialRecord


class TrajectoryReader(Protocol):
    """Reads back what trials came to."""

    def read(self, trial: int, mask: Mask | None = None) -> Trajectory: ...


class LabellingLedger(Protocol):
    """The part of `Ledger` that work on instances writes and reads. What is written stands when a method returns."""

    @property
    def trajectories(self) -> TrajectoryReader: ...

    def trials(self, instance: int) -> list[TrialRecord]: ...

    def record(self, entry: TrialEntry) -> int: ...

    def book_ahead(self, instance: int, receipt: Receipt) -> None: ...

    def hint(self, instance: int, step: int) -> tuple[bool, int | None]: ...

    def record_hint(self, instance: int, step: int, tier: int | None, receipt: Receipt) -> None: ...

    def shapes(self, instance: int) -> tuple[str, ...]: ...

    def keep_shapes(self, instance: int, shapes: Sequence[str]) -> None: ...

    def set_seed(self, instance: int, trial: int) -> None: ...

    def finish(self, instance: int, final: int, locks: Sequence[Lock]) -> None: ...

    def drop(self, instance: int, reason: str) -> None: ...

    def block(self, instance: int, reason: str) -> None: ...
