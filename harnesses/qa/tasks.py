"""The user's own task file: one question a line, with its accepted answers and, if it has one, a grading of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from stepdown.builder.config.validation import Strict, validated
from stepdown.builder.errors import BadInput, Technical
from stepdown.builder.records import Verdict
from stepdown.harnesses.qa.grading import Answer, Contains, GradingRule, JudgeRule, Regex, grader
from stepdown.harnesses.task_file import Ids, check_id, lines_of
from stepdown.judges.case import Text


def _said(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value


Words = Annotated[Text, AfterValidator(_said)]
"""Text that is not blank."""


def _listed(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else [value]


class ChatMessage(Strict):
    """A message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: Words


class TaskLine(Strict):
    """One line of the file."""

    id: str
    question: Words | None = None
    messages: tuple[ChatMessage, ...] | None = Field(None, min_length=1)
    """The whole prefix, in place of `question`. Nothing is added to it."""
    context: Annotated[tuple[Words, ...], BeforeValidator(_listed)] = ()
    """What the question is to be answered from: put before `question`, and a judge's evidence."""
    answers: Annotated[tuple[Answer, ...], BeforeValidator(_listed)] = ()
    """The accepted answers; patterns where the grading is `regex`. One may stand without a list."""
    reference: Words | None = None
    """What the pseudo-model `reference` answers; by default the first accepted answer, or all that are needed."""
    grading: GradingRule | None = None
    """By default the workload's option."""
    group: str | None = None
    """What an honest evaluation holds out together with this task: a document, a topic."""

    @model_validator(mode="after")
    def _one_form(self) -> TaskLine:
        if (self.question is None) == (self.messages is None):
            raise ValueError("one of `question` and `messages` is needed")
        if self.messages is not None and self.messages[-1].role != "user":
            raise ValueError("messages: the last one must be the user's")
        return self

    def answered_by(self, grading: GradingRule) -> str | None:
        """What the pseudo-model `reference` answers."""
        if self.reference is not None or isinstance(grading, Regex) or not self.answers:
            return self.reference
        texts = list(map(str, self.answers))
        return " ".join(texts) if isinstance(grading, Contains) and grading.need == "all" else texts[0]


def read(file: Path, default: GradingRule | None) -> Iterator[tuple[int, TaskLine, GradingRule]]:
    """Read the rows of a file with their lines and gradings, and try each grading.

    Raises BadInput that names line and field.
    """
    ids = Ids(file, "id")
    for number, value in lines_of(file):
        row = validated(TaskLine, value, file=file, line=number)
        ids.add(row.id, number)
        if row.group is not None:
            check_id(row.group, file, number, "group")
        grading = row.grading or default
        if grading is None:
            problem = "there is none, here or in the workload's options"
            raise BadInput(problem, file=file, line=number, field="grading")
        if isinstance(grading, JudgeRule) and not isinstance(default, JudgeRule):
            problem = "only the option `grading` can call for the judge; rows beside it may have rules of their own"
            raise BadInput(problem, file=file, line=number, field="grading")
        try:
            _try(row, grading)
        except BadInput as error:
            raise BadInput(str(error), file=file, line=number) from None
        yield number, row, grading


def _try(row: TaskLine, grading: GradingRule) -> None:
    """Raises BadInput where the row cannot be graded, or its own reference does not pass."""
    if isinstance(grading, JudgeRule):
        if not row.context and not row.answers:
            raise BadInput("a judge needs evidence: `context`, or at least `answers`", field="context")
        return
    if not row.answers:
        raise BadInput(f"grading by {grading.by} needs at least one", field="answers")
    grade = grader(grading, row.answers, row.id)
    reference = row.answered_by(grading)
    if reference is None:
        return
    try:
        ruling = grade(reference)
    except Technical as error:
        raise BadInput(error.reason, field="answers") from None
    if ruling.verdict is not Verdict.PASS:
        raise BadInput(f"what should be a right answer does not pass: {ruling.reason}", field="reference")
