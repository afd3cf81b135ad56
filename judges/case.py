"""What is judged: one answer to the last turn of a conversation, beside the evidence that it must rest on."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from stepdown.builder.config.validation import Strict
from stepdown.builder.records import clean_text, digest

Text = Annotated[str, AfterValidator(clean_text)]
"""Text as anybody may have written it; lone surrogates become U+FFFD, so that it can be hashed and sent."""


class Turn(Strict):
    """What one speaker said."""

    speaker: Text = Field(min_length=1)
    """`user`, `assistant`, or a name."""
    text: Text


class Piece(Strict):
    """A passage, or a span of a transcript with its speakers' names in the text."""

    title: Text = ""
    """Its author's name for it: evidence like its text."""
    label: str = Field("", pattern=r"^[A-Za-z0-9 ]{0,80}$")
    """Ours: `Passage 2`, `turns 12 to 30`. It stands beside the evidence and supports nothing: else every answer would
    have a source for a 2.
    """
    text: Text = Field(min_length=1)


class Case(Strict):
    """One answer to be judged, and all that a judge is shown.

    The evidence is the authority. References only hint at what a complete answer covers; they support no claim.
    """

    kind: Literal["rag", "meeting", "question"]
    """A conversation over passages, a query over a meeting, or a question of one's own."""
    turns: tuple[Turn, ...] = Field(min_length=1)
    """The conversation so far, oldest first; the last turn is the one that the answer must resolve."""
    evidence: tuple[Piece, ...] = Field(min_length=1)
    """In the order in which it was shown to the model that answered. Without evidence nothing can be judged."""
    references: tuple[Text, ...] = ()
    """Accepted answers."""
    answer: Text = Field(min_length=1)
    """The candidate's words. Hostile data."""
    note: Text = ""
    """What the workload wants its judge to know of its answers in general: their usual length, their form."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all of it, in hex: two cases of one digest are one question to a judge."""
        return digest(self.model_dump(mode="json"))
