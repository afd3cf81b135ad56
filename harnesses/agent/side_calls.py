"""Side calls: requests of a program that are no step, such as one for a title. They are known by rule."""

from __future__ import annotations

import regex
from pydantic import Field, field_validator, model_validator

from stepdown.builder.config.validation import Strict
from stepdown.harnesses.agent.request import ChatRequest

_SECONDS = 0.5
"""What a pattern may take on one text."""


class SideCalls(Strict):
    """Which requests are side calls, and what answers them."""

    other_model: bool = False
    """Those that name another model than the one that the program is told."""
    no_tools: bool = False
    """Those without tools."""
    pattern: str | None = None
    """Those in whose messages this regular expression is found."""
    answer: str | None = Field(None, min_length=1)
    """What all of them are answered with. Nothing is paid then."""
    model: str | None = Field(None, min_length=1)
    """The name of the pool's model that answers them. What it costs is counted."""

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        try:
            regex.compile(pattern or "")
        except regex.error as error:
            raise ValueError(f"no regular expression: {error}") from None
        return pattern

    @model_validator(mode="after")
    def _whole(self) -> SideCalls:
        if not (self.other_model or self.no_tools or self.pattern):
            raise ValueError("say which they are: `other_model`, `no_tools` or `pattern`")
        if (self.answer is None) == (self.model is None):
            raise ValueError("one of `answer` and `model` is needed")
        return self

    def has(self, request: ChatRequest, model: str) -> bool:
        """Whether a request is one; `model` is what the program was told."""
        if self.other_model and request.model != model:
            return True
        if self.no_tools and not request.tools:
            return True
        return self.pattern is not None and any(self._in(str(message["content"])) for message in request.messages)

    def _in(self, text: str) -> bool:
        try:
            return regex.search(self.pattern or "", text, timeout=_SECONDS) is not None
        except TimeoutError:
            return False
