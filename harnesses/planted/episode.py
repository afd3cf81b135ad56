"""A live episode of a planted instance: it keeps count of the steps made, and of whether all is well so far."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from stepdown.builder.records import Message, Prefix, Response, Ruling, Verdict
from stepdown.harnesses.base import Episode
from stepdown.harnesses.planted.models import Made, read
from stepdown.harnesses.planted.source import STRONG

_CLOCK = re.compile(r"clock \d+")
_ticks = itertools.count(1)


def mask(text: str) -> str:
    """Observations show a clock where the workload is volatile; it reads otherwise at every look."""
    return _CLOCK.sub("clock", text)


@dataclass(frozen=True, slots=True)
class PlantedState:
    """All that an episode is: its own checkpoint."""

    prefix: Prefix
    step: int
    """The planted step to be made next. Not the number of calls: one call may make two."""
    downgraded: frozenset[int] = frozenset()
    """Steps made by a model below the strong tier."""
    lost: str = ""
    """Why the episode has failed; empty while it has not."""


@dataclass(frozen=True, slots=True)
class Laws:
    """What the workload's options mean to an episode."""

    early_verdicts: bool
    volatile: bool
    effects: Collection[frozenset[int]]
    checkpoints: bool


class PlantedEpisode(Episode):
    """A model passes a step iff its tier is at least the planted one, and the episode passes iff every step did."""

    def __init__(self, instance: str, tiers: Sequence[int], laws: Laws, at: PlantedState | None = None) -> None:
        self._tiers, self._laws = tiers, laws
        self._state = at or PlantedState(self._start(instance), step=1)

    def _start(self, instance: str) -> Prefix:
        system = {"role": "system", "content": f"Planted instance {instance}: make {len(self._tiers)} steps in order."}
        return Prefix.start([system, self._order(1)], mask=mask if self._laws.volatile else None)

    def _order(self, step: int) -> Message:
        clock = f" It is clock {next(_ticks)}." if self._laws.volatile else ""
        return {"role": "user", "content": f"Step {step} of {len(self._tiers)} is next.{clock}"}

    def prefix(self) -> Prefix:
        return self._state.prefix

    def advance(self, response: Response) -> bool:
        state, made = self._state, read(response)
        done = range(state.step, state.step + (made.steps if made else 1))
        downgraded = state.downgraded
        if made is not None and made.tier < STRONG:
            downgraded = downgraded.union(done)
        going = done.stop <= len(self._tiers)
        prefix = state.prefix.respond(response, [self._order(done.stop)] if going else ())
        self._state = PlantedState(prefix, done.stop, downgraded, state.lost or self._wrong(made, done, downgraded))
        return going

    def _wrong(self, made: Made | None, done: range, downgraded: frozenset[int]) -> str:
        """What is wrong with the steps that a response made; empty where nothing is."""
        if made is None or done.stop > len(self._tiers) + 1:
            return f"step {done.start}: not an answer"
        if made.slipped:
            return f"step {done.start}: a slip"
        for step in done:
            if made.tier < self._tiers[step - 1]:
                return f"step {step}: tier {made.tier} is not enough"
        if any(pair <= downgraded for pair in self._laws.effects):
            return f"step {done.start}: a downgrade too many"
        return ""

    def doomed(self) -> Ruling | None:
        return Ruling(Verdict.FAIL, self._state.lost) if self._laws.early_verdicts and self._state.lost else None

    def verdict(self) -> Ruling:
        return Ruling(Verdict.FAIL if self._state.lost else Verdict.PASS, self._state.lost)

    def checkpoint(self) -> PlantedState | None:
        return self._state if self._laws.checkpoints else None
