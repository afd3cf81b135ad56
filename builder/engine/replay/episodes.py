"""The episodes of one instance: opened under its mask, and ruled on by the judge or by the workload's own predicate."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from stepdown.builder.config.pool import Pool
from stepdown.builder.engine.calls import Calls
from stepdown.builder.engine.replay.outcomes import outcome_of
from stepdown.builder.engine.volatile import InstanceMask
from stepdown.builder.errors import Interrupted, Technical
from stepdown.builder.records import (
    Instance,
    Outcome,
    OutcomeState,
    Prefix,
    Response,
    Ruling,
    Sample,
    Step,
    Verdict,
    outcome_state,
)
from stepdown.harnesses.base import Checkpoint, Episode, Harness
from stepdown.harnesses.checked import opened
from stepdown.judges.case import JudgeCase, RefusalCase

_BESIDE = Sample("beside")
"""What an episode asks beside its steps is asked once, whatever trial it is asked in."""

Judge = Callable[[JudgeCase | RefusalCase], Ruling]
"""Gives a verdict on a case; technical where that is not possible. Of a refusal: whether it is one."""


class Signal(Protocol):
    """Says whether to stop: an event, or something that watches several."""

    def is_set(self) -> bool: ...


class Episodes:
    """Opens the episodes of one instance and rules on how they ended. Used by one thread."""

    def __init__(
        self,
        instance: Instance,
        harness: Harness,
        pool: Pool,
        calls: Calls,
        judge: Judge | None,
        stop: Signal | None,
        mask: InstanceMask | None,
    ) -> None:
        """`judge` is asked about the cases of episodes that have one. Once `stop` is set, no further step is begun."""
        self._instance, self._harness, self._pool, self._calls = instance, harness, pool, calls
        self._judge, self._stop = judge, stop or threading.Event()
        self.mask = mask or InstanceMask(harness)

    @contextmanager
    def open(self, at: Checkpoint | None = None) -> Iterator[Episode]:
        """An episode of the instance, under its mask and with models for what it asks beside its steps."""
        with opened(self._harness, self._instance, at, self.mask.mask) as episode:
            episode.answer_beside(self._ask_beside)
            yield episode

    def _ask_beside(self, name: str, prefix: Prefix) -> Response:
        """A model's answer to a call that is no step: cached and counted, and the same wherever the call is."""
        mask = self.mask.mask
        shown = prefix if mask is None else Prefix.start(prefix.messages, prefix.tools, mask)
        model = self._pool.by_name[name]
        return self._calls.fetch(self._calls.question(model, shown, 0, _BESIDE)).response

    def check_stop(self) -> None:
        """Raises Interrupted where the run is to stop: the trial is not recorded, and its answers are in the cache."""
        if self._stop.is_set():
            raise Interrupted("stopped")

    def rule(self, episode: Episode, own: Callable[[], Ruling]) -> Ruling:
        """Rule on an episode that has ended: by the judge where it has a case for one, else by its own predicate."""
        case = episode.case()
        if case is None:
            return own()
        if self._judge is None:
            raise Technical("the workload has a case to be judged and the config has no judge")
        ruling = self._judge(case)
        if ruling.verdict is Verdict.TECHNICAL:
            raise Technical(ruling.reason)
        return ruling

    def outcome(self, episode: Episode, ruling: Ruling, steps: Sequence[Step], cut_off: bool = False) -> Outcome:
        """What an execution came to that ends with a ruling, and in which state, where the workload tells.

        Where nothing else shows, whether the task was refused is asked of the judge, if there is one.
        """
        if not self._harness.tells_states:
            return outcome_of(ruling, steps, cut_off)
        state = outcome_state(ruling.verdict, episode.signs())
        if state is OutcomeState.INCOMPLETE and self._judge is not None and (case := episode.refusal()) is not None:
            told = self._judge(case)
            ruling = replace(ruling, grading={**(ruling.grading or {}), **(told.grading or {})})
            state = outcome_state(told.verdict) if told.verdict is Verdict.REFUSED else state
        return outcome_of(ruling, steps, cut_off, state)
