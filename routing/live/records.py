"""What a live run keeps: a step, a task's end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from stepdown.builder.records import Usage, Verdict


class TaskState(StrEnum):
    """Where a task of one policy stands."""

    OPEN = "open"
    DONE = "done"
    """It has a verdict: resolved where that is pass, else unresolved."""
    TECHNICAL = "technical"
    """The apparatus failed. It is shown and executed again; it never counts as unresolved."""


@dataclass(frozen=True, slots=True)
class LiveStep:
    """One call of a task, as it was made."""

    step: int
    model: str
    tier: str
    at: float
    """When the call was begun, in seconds since the epoch."""
    seconds: float
    """What it took."""
    usage: Usage
    """As charged: its prompt divided into what the provider's cache read and wrote."""
    usd: float
    paid: bool
    """Whether this run paid for it; else its response was in the cache."""
    reason: str = ""
    """The policy's."""
    fell_back: bool = False
    """Whether the policy had no answer, and the strong tier's first model made the call."""


@dataclass(frozen=True, slots=True)
class LiveTask:
    """One task under one policy."""

    policy: str
    benchmark: str
    instance: str
    group: str
    state: TaskState
    verdict: Verdict | None = None
    reason: str = ""
    steps: tuple[LiveStep, ...] = ()

    @property
    def resolved(self) -> bool:
        return self.verdict is Verdict.PASS

    @property
    def usd(self) -> float:
        """List price of its calls."""
        return sum(step.usd for step in self.steps)
