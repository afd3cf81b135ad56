"""The episodes of one instance: opened under its mask, and ruled on by the judge or by the workload's own predicate."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from stepdown.builder.config.pool import Pool
from stepdown.builder.engine.calls import Calls
from stepdown.builder.engine.volatile import InstanceMask
from stepdown.builder.errors import Interrupted, Technical
from stepdown.builder.records import Instance, OutcomeState, Prefix, Response, Ruling, Sample, Verdict, outcome_state
from stepdown.harnesses.base import Checkpoint, Episode, Harness
from stepdown.harnesses.checked import opened
from stepdown.judges.case import JudgeCase

_BESIDE = Sample("beside")
"""What an episode asks beside its steps is asked once, whatever trial it is asked in."""

Judge = Callable[[JudgeCase], Ruling]
"""Gives a verdict on a case; technical where that is not possible."""


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

    def state(self, episode: Episode, verdict: Verdict) -> OutcomeState | None:
        """What an episode that ends with a verdict has come to; None where the workload does not tell."""
        return outcome_state(verdict, episode.signs()) if self._harness.tells_states else None
