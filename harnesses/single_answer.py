"""Workloads of one question and one answer, which a grader or a judge decides on.

A task of such a workload holds `messages`, the whole prefix. What else the verdict needs is up to the workload.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stepdown.builder.errors import Technical
from stepdown.builder.records import Instance, Prefix, Response, Ruling, Verdict
from stepdown.harnesses.base import Checkpoint, Episode
from stepdown.judges.case import EvidencePassage, JudgeCase, Turn


@dataclass(frozen=True, slots=True)
class AnswerState:
    """The whole state of an episode, which is also its checkpoint."""

    prefix: Prefix
    response: Response | None = None
    ruling: Ruling | None = None
    """None before there is a response, and where a judge decides."""


GradeAnswer = Callable[[str], Ruling]
"""Grades an answer's text, which is hostile data. Raises Technical where it can be graded neither right nor wrong."""


class SingleAnswer(Episode):
    """An episode that halts at its first response. Without a grader, a judge decides on every well-formed answer."""

    def __init__(self, instance: Instance, at: Checkpoint | None, grader: GradeAnswer | None = None) -> None:
        assert at is None or isinstance(at, AnswerState)
        self._state = at or AnswerState(Prefix.start(instance.task["messages"]))
        self._grader = grader

    def prefix(self) -> Prefix:
        """The question, and the response once it has been made."""
        return self._state.prefix

    def advance(self, response: Response) -> bool:
        """Grade the response. The episode halts here."""
        if self._state.response is None:
            self._state = AnswerState(self._state.prefix.respond(response), response, self._graded(response))
        return False

    def _graded(self, response: Response) -> Ruling | None:
        if response.malformed:
            return Ruling(Verdict.FAIL, "a tool call that cannot be parsed")
        if response.tool_calls:
            return Ruling(Verdict.FAIL, "a tool call, though there are no tools")
        return self._grader(response.content) if self._grader else None

    def doomed(self) -> Ruling | None:
        """The verdict as soon as it is known not to be pass."""
        ruling = self._state.ruling
        return ruling if ruling is not None and ruling.verdict is not Verdict.PASS else None

    def verdict(self) -> Ruling:
        """The grader's ruling. Raises Technical where a judge has to decide."""
        if self._state.response is None:
            return Ruling(Verdict.INCOMPLETE, "no response was made")
        if self._state.ruling is None:
            raise Technical("the answer needs a judge, and the run has none")
        return self._state.ruling

    def checkpoint(self) -> AnswerState:
        """The state, which is immutable."""
        return self._state


class JudgedAnswer(SingleAnswer):
    """A single answer for a judge. The task's `case` is the judge's case without the answer, as JSON."""

    def __init__(self, instance: Instance, at: Checkpoint | None) -> None:
        super().__init__(instance, at)
        self._case = instance.task["case"]

    def case(self) -> JudgeCase | None:
        """The case to be judged; None where there is no answer to judge."""
        if self._state.response is None or self._state.ruling is not None:
            return None
        return JudgeCase.model_validate({**self._case, "answer": self._state.response.content})


def case_without_answer(
    kind: str, turns: list[Turn], evidence: list[EvidencePassage], references: list[str], note: str = ""
) -> dict[str, Any]:
    """The `case` of a task. `JudgedAnswer` adds the answer to it."""
    return {
        "kind": kind,
        "turns": [turn.model_dump() for turn in turns],
        "evidence": [passage.model_dump() for passage in evidence],
        "references": references,
        "note": note,
    }
