"""Watches what probes say of a run's judges while it goes on, and ends it where a judge falls below its bar."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from stepdown.builder.config.protocol import JudgeConfig
from stepdown.builder.errors import JudgeBelowBar
from stepdown.judges.exam.tally import Tally, observations_of


class ExamWatch:
    """The observations of a run so far. Its threads share it."""

    def __init__(self, panel: JudgeConfig | None, gradings: Iterable[Any]) -> None:
        """`gradings` are those of the trials that the run has recorded."""
        self._panel, self._lock = panel, threading.Lock()
        self._tally = Tally(seen for grading in gradings for seen in observations_of(grading)) if panel else Tally()
        self._below = self._found()

    @property
    def below(self) -> JudgeBelowBar | None:
        """The judge that has fallen below its bar, once one has."""
        return self._below

    def note(self, grading: Any) -> JudgeBelowBar | None:
        """Count what a trial's grading says of judges, once the trial is recorded."""
        with self._lock:
            observed = list(observations_of(grading))
            for observation in observed:
                self._tally.add(observation)
            if observed and self._below is None:
                self._below = self._found()
            return self._below

    def _found(self) -> JudgeBelowBar | None:
        for judge in self._tally.judges if self._panel else ():
            if self._panel and (why := self._tally.below(judge, self._panel.bar)):
                return JudgeBelowBar(judge, why)
        return None
