"""One question, one response: BFCL's single-turn protocol grades the first response and nothing after it."""

from __future__ import annotations

from dataclasses import dataclass

from stepdown.builder.records import Instance, Prefix, Response, Ruling, Verdict
from stepdown.harnesses.base import Episode
from stepdown.harnesses.bfcl.grading import graded
from stepdown.harnesses.bfcl.tools import language_of, tools_of


@dataclass(frozen=True, slots=True)
class SingleTurnCheckpoint:
    """All of a single-turn episode's state."""

    prefix: Prefix
    ruling: Ruling | None


class SingleTurn(Episode):
    """The episode of a single-turn instance. It halts at its first response."""

    def __init__(self, instance: Instance, at: SingleTurnCheckpoint | None) -> None:
        self._task = instance.task
        if at is None:
            entry = instance.task["entry"]
            tools = tools_of(entry["function"], language_of(instance.task["category"]))
            at = SingleTurnCheckpoint(Prefix.start(entry["question"][0], tools), None)
        self._prefix, self._ruling = at.prefix, at.ruling

    def prefix(self) -> Prefix:
        """The question, and the response once it has been made."""
        return self._prefix

    def advance(self, response: Response) -> bool:
        """Grade the response. The episode halts here."""
        if self._ruling is None:
            self._ruling = graded(self._task, response)
            self._prefix = self._prefix.respond(response)
        return False

    def doomed(self) -> Ruling | None:
        """The verdict as soon as it is known not to be pass."""
        return self._ruling if self._ruling is not None and self._ruling.verdict is not Verdict.PASS else None

    def verdict(self) -> Ruling:
        """The AST checker's verdict on the response."""
        return self._ruling or Ruling(Verdict.INCOMPLETE, "no response was made")

    def checkpoint(self) -> SingleTurnCheckpoint:
        """The state, which is immutable."""
        return SingleTurnCheckpoint(self._prefix, self._ruling)
