"""The harness of question answering over a task file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stepdown.builder.config.validation import Strict, read_text, validated
from stepdown.builder.records import Instance, Message, Prefix, Response, Sample, digest
from stepdown.harnesses.base import Checkpoint, Episode, Harness
from stepdown.harnesses.qa.grading import LONGEST_PATTERN, SECONDS, GradingRule, JudgeRule, grader, grading_of
from stepdown.harnesses.qa.tasks import TaskLine, read
from stepdown.harnesses.selection import taken
from stepdown.harnesses.single_answer import JudgedAnswer, SingleAnswer, case_without_answer
from stepdown.harnesses.task_file import TaskFileSource
from stepdown.judges.case import EvidencePassage, Turn

BENCHMARK = "qa"
VERSION = "3"
"""Raised with every change of this package that can change a prefix, a case or a verdict."""
_INSTRUCTION = Path(__file__).parent / "instruction.txt"


class Options(Strict):
    """The harness's options."""

    grading: GradingRule | None = None
    """How answers are graded. A row may have rules of its own; that there is a judge is said here."""
    instruction: str | None = None
    """The system message before a `question`; "" for none. By default it asks for the answer alone."""


class QA(Harness):
    """Questions of one's own, answered once and graded by rule or by the judge."""

    name = BENCHMARK
    multi_step = False
    early_verdicts = True

    def __init__(self, **options: Any) -> None:
        """Raises BadInput for an unknown or wrong option."""
        self._options = validated(Options, options, field="options")
        given = self._options.instruction
        self._instruction = read_text(_INSTRUCTION).strip() if given is None else given.strip()
        grading = self._options.grading
        self.needs_judge = isinstance(grading, JudgeRule)
        parts = [self._instruction, grading.model_dump() if grading else None, SECONDS, LONGEST_PATTERN]
        self.version = f"{VERSION}+{digest(parts)[:12]}"

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        """The tasks of `source: {file, take}`. Raises BadInput."""
        wanted = validated(TaskFileSource, dict(source), field="source")
        rows = list(read(wanted.file, self._options.grading))
        ids = taken([row.id for _, row, _ in rows], wanted.take, field="source.take")
        yield from (self._instance(line, row, grading) for line, row, grading in rows if row.id in ids)

    def _instance(self, line: int, row: TaskLine, grading: GradingRule) -> Instance:
        data: dict[str, Any] = {
            "messages": self._messages(row),
            "grading": grading.model_dump(mode="json"),
            "answers": list(row.answers),
            "reference": row.answered_by(grading),
            "row": f"{row.id} (line {line})",
        }
        if isinstance(grading, JudgeRule):
            data["case"] = _case(row, data["messages"], grading)
        return Instance(BENCHMARK, row.id, data, group=row.group or row.id)

    def _messages(self, row: TaskLine) -> list[Message]:
        if row.messages is not None:
            return [message.model_dump() for message in row.messages]
        question = {"role": "user", "content": "\n\n".join([*row.context, row.question or ""])}
        return [{"role": "system", "content": self._instruction}, question] if self._instruction else [question]

    @contextmanager
    def open(self, instance: Instance, at: Checkpoint | None = None) -> Iterator[Episode]:
        """An episode of the instance. It holds no resource beyond memory."""
        grading = grading_of(instance.task["grading"])
        if isinstance(grading, JudgeRule):
            yield JudgedAnswer(instance, at)
        else:
            yield SingleAnswer(instance, at, grader(grading, instance.task["answers"], instance.task["row"]))

    def answer(self, name: str, instance: Instance, prefix: Prefix, sample: Sample) -> Response | None:
        """The pseudo-model `reference`; None for a name, or a row, without an answer."""
        reference = instance.task["reference"]
        return Response(reference) if name == "reference" and reference is not None else None


def _case(row: TaskLine, messages: list[Message], grading: JudgeRule) -> dict[str, Any]:
    """The evidence is the context; where there is none, the accepted answers are all that a judge can go by."""
    if row.question is not None:
        turns = [Turn(speaker="user", text=row.question)]
    else:
        turns = [Turn(speaker=message["role"], text=message["content"]) for message in messages]
    references = list(map(str, row.answers))
    label, texts = ("context", row.context) if row.context else ("an accepted answer", tuple(references))
    evidence = [EvidencePassage(label=label, text=text) for text in texts]
    return case_without_answer("question", turns, evidence, references, grading.note)
