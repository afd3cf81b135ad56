"""What all questions to a panel share: where answers come from, which draws there are, and when they decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from stepdown.builder.cache.question import Question
from stepdown.builder.cache.responses import Answer
from stepdown.builder.config.pool import Model
from stepdown.builder.config.protocol import JudgeConfig
from stepdown.builder.records import Verdict

WORKLOAD = "judge"
"""The name under which questions to judges are cached, whichever workload the answer belongs to."""


class ResponseSource(Protocol):
    """Where responses come from: in a run, `builder.engine.calls.Calls`."""

    def fetch(self, question: Question) -> Answer:
        """The answer to a question: the cache's, or a new one. Raises Technical."""
        ...

    def note_failed(self, attempts: Sequence[str]) -> None:
        """Record the attempts of a call that gave no response."""
        ...


def draws(panel: JudgeConfig) -> Iterator[tuple[Model, int]]:
    """Every model of the panel with the number of its draw, in the order in which they are asked."""
    for draw in range(panel.samples):
        for model in panel.models:
            yield model, draw


def panel_verdict(verdicts: Sequence[Verdict], panel: JudgeConfig) -> Verdict | None:
    """The panel's verdict once no opinion that is still to come, or technical, can change it; before that None."""
    draws = len(panel.models) * panel.samples
    needed = draws if panel.rule == "unanimous" else draws // 2 + 1
    if verdicts.count(Verdict.PASS) >= needed:
        return Verdict.PASS
    if verdicts.count(Verdict.FAIL) > draws - needed:
        return Verdict.FAIL
    return None
