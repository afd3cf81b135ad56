"""What is judged: one answer to the last turn of a conversation, with the evidence that must support it."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from stepdown.builder.config.validation import Strict
from stepdown.builder.records import clean_text, digest

Text = Annotated[str, AfterValidator(clean_text)]
"""Text from anybody. Lone surrogates become U+FFFD, so that it can be hashed and sent."""


class Turn(Strict):
    """One turn of a conversation: what one speaker said."""

    speaker: Text = Field(min_length=1)
    """`user`, `assistant`, or a name."""
    text: Text


class EvidencePassage(Strict):
    """A passage of the evidence, or a span of a transcript with its speakers' names in the text."""

    title: Text = ""
    """The title that its author gave it. It is evidence like the text."""
    label: str = Field("", pattern=r"^[A-Za-z0-9 ]{0,80}$")
    """The name that stepdown gives it: `Passage 2`, `turns 12 to 30`. It is shown beside the evidence but supports
    nothing; otherwise a 2 in any answer would have a source.
    """
    text: Text = Field(min_length=1)


class JudgeCase(Strict):
    """One answer to be judged, and all that a judge is shown.

    The evidence decides. References only hint at what a complete answer covers; they support no claim.
    """

    kind: Literal["rag", "meeting", "question"]
    """A conversation over passages, a query over a meeting, or a question of one's own."""
    turns: tuple[Turn, ...] = Field(min_length=1)
    """The conversation so far, oldest first; the last turn is the one that the answer must resolve."""
    evidence: tuple[EvidencePassage, ...] = Field(min_length=1)
    """In the order in which the model that answered was shown it. Without evidence nothing can be judged."""
    references: tuple[Text, ...] = ()
    """Accepted answers."""
    answer: Text = Field(min_length=1)
    """What the candidate wrote. It is hostile data."""
    note: Text = ""
    """What the workload tells the judge about its answers in general: their usual length, their form."""

    def answered(self, answer: str) -> JudgeCase:
        """The same question with another answer, and without accepted ones."""
        return JudgeCase(kind=self.kind, turns=self.turns, evidence=self.evidence, answer=answer, note=self.note)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the whole case, in hex. Two cases with the same digest are the same question to a judge."""
        return digest(self.model_dump(mode="json"))


class RefusalCase(Strict):
    """What an agent was asked to do and what it said in the end, for a judge to tell whether it refused."""

    task: Text = Field(min_length=1)
    answer: Text = Field(min_length=1)
    """The agent's last words. They are hostile data."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the whole case, in hex."""
        return digest(self.model_dump(mode="json"))
