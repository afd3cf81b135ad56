"""Generation tasks of MTRAG and MTRAG-UN: one a line, with `input`, `contexts`, `targets` and answerability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from stepdown.builder.common.text import printable
from stepdown.builder.config.validation import validated
from stepdown.builder.errors import BadInput
from stepdown.harnesses.task_file import Ids, UpstreamRecord, check_id, lines_of
from stepdown.judges.case import Text

SEPARATOR = "<::>"
"""What separates the conversation's id from the turn's number in a task's id."""
_YES, _NO = "yes", "no"


class Utterance(UpstreamRecord):
    """One turn of a conversation."""

    speaker: Literal["user", "agent"]
    text: Text


class Vote(UpstreamRecord):
    """One annotator's vote on a passage."""

    value: str


class Feedback(UpstreamRecord):
    """The annotators' votes on a passage, by annotator."""

    relevant: dict[str, Vote] = Field(default_factory=dict)


class Passage(UpstreamRecord):
    """A retrieved passage."""

    text: Text
    title: Text | None = None
    feedback: Feedback | None = None

    @property
    def is_voted_on(self) -> bool:
        """Whether anybody voted on its relevance."""
        return self.feedback is not None and bool(self.feedback.relevant)

    @property
    def is_relevant(self) -> bool:
        """Whether more people voted it relevant than not relevant."""
        values = [vote.value.strip().lower() for vote in self.feedback.relevant.values()] if self.feedback else []
        return values.count(_YES) > values.count(_NO)


class Task(UpstreamRecord):
    """One generation task: the conversation up to a user's turn, the passages, and the accepted answer."""

    task_id: str
    conversation_id: str | None = None
    input: tuple[Utterance, ...] = Field(min_length=1)
    contexts: tuple[Passage, ...] = ()
    targets: tuple[Utterance, ...] = ()
    answerability: Annotated[
        tuple[str, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
    ] = Field(min_length=1, validation_alias=AliasChoices("answerability", "Answerability"))

    @property
    def conversation(self) -> str:
        """The id of the conversation, which its tasks share."""
        return self.conversation_id or self.task_id.split(SEPARATOR)[0]

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The passages that have text."""
        return tuple(passage for passage in self.contexts if passage.text.strip())


def read(file: Path) -> Iterator[Task]:
    """Read the tasks of a file. Raises BadInput that names line and field."""
    ids = Ids(file, "task_id")
    for number, value in lines_of(file):
        task = validated(Task, value, file=file, line=number)
        ids.add(task.task_id, number)
        check_id(task.conversation, file, number, "conversation_id")
        last = len(task.input) - 1
        if task.input[last].speaker != "user":
            problem = "the last turn must be the user's"
            raise BadInput(problem, file=file, line=number, field=f"input.{last}.speaker")
        for index, turn in enumerate(task.input):
            if not turn.text.strip():
                raise BadInput("a turn without words", file=file, line=number, field=f"input.{index}.text")
        yield task


def carries_feedback(tasks: Sequence[Task]) -> bool:
    """Whether the format of a file has people's votes on its passages. Some of MTRAG's do, MTRAG-UN's do not."""
    return any(passage.is_voted_on for task in tasks for passage in task.contexts)


def why_dropped(task: Task, voted: bool) -> str | None:
    """The structural pre-filter (paper, judge hardening): the first reason to drop a task, or None.

    `voted` says that the file carries people's votes: then one of the passages must have been found relevant.
    """
    kinds = sorted({kind.strip().lower() for kind in task.answerability})
    if kinds != ["answerable"]:
        return printable(f"not answerable from its passages: {', '.join(kinds)}", longest=100)
    if not task.passages:
        return "no passages"
    if voted and not any(passage.is_relevant for passage in task.passages):
        return "no passage that people found relevant"
    return None
