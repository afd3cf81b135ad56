"""A recorded step in the forms that chat APIs and their exports write it in, read as a response."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    field_validator,
    model_validator,
)

from stepdown.builder.actions.forms import plain_text, tool_call
from stepdown.builder.common.text import nearest
from stepdown.builder.config.validation import Strict
from stepdown.builder.models.reasoning import sealed
from stepdown.builder.records import REASONING, SEALED_REASONING, Reasoning, Response, ToolCall, clean_text

_REASONING = ("reasoning", "reasoning_content", "reasoning_details", "thinking_blocks")
ASSISTANT_FIELDS = ("content", "tool_calls", "function_call", *_REASONING)
"""What of an assistant's message says what it answered, and thought. The rest is a provider's, and is passed over."""
_BESIDE = ("role", "name", "refusal", "annotations", "audio", "images", "provider_specific_fields", *_REASONING)
"""What else an assistant's message may hold. In a step another name is a slip."""
_WORDS, _CALL, _NO_WORDS = (
    {"text", "output_text"},
    "tool_use",
    {"refusal", "thinking", "redacted_thinking", "reasoning"},
)
"""Kinds of parts of a content: its words, a call, and what is no answer."""
_OTHER_NAMES = ("args", "input", "parameters")
"""How some exports name the `arguments` of a call."""


class RecordedCall(BaseModel):
    """A tool call, flat or as chat APIs nest it. What else stands in it is a provider's, and is passed over.

    >>> RecordedCall.model_validate({"index": 0, "function": {"name": "f", "arguments": None}}).read()
    ToolCall(name='f', arguments='{}')
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str = Field(min_length=1)
    arguments: dict[str, Any] | str = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, data: Any) -> Any:
        function = data.get("function") or data if isinstance(data, Mapping) else data
        if not isinstance(function, Mapping):
            raise ValueError("a call must be an object with `name` and `arguments`")
        if "arguments" in function:
            return function
        other = next((name for name in _OTHER_NAMES if name in function), None)
        if other is None and (misspelt := nearest("arguments", map(str, function))):
            raise ValueError(f"unknown key {misspelt!r}: did you mean `arguments`?")
        return {**function, "arguments": function[other] if other else None}

    @field_validator("arguments", mode="before")
    @classmethod
    def _none_are_an_empty_object(cls, value: Any) -> Any:
        if value is None or (isinstance(value, str) and value.strip() in ("", "null")):
            return {}
        if not isinstance(value, (dict, str)):
            raise ValueError("must be an object, or its JSON text")
        return value

    def read(self) -> ToolCall:
        """The call, as a live model's is read: a seed may hold only what a client accepts. Raises Unparsable."""
        arguments = self.arguments
        return tool_call(self.name, arguments if isinstance(arguments, str) else json.dumps(arguments))


class RecordedStep(Strict):
    """What the assistant answered at one step.

    >>> RecordedStep.model_validate({"content": [{"type": "text", "text": "So."}]}).response().content
    'So.'
    """

    content: str | None = None
    tool_calls: tuple[RecordedCall, ...] | None = None
    function_call: RecordedCall | None = None
    """The one call of older chat APIs."""
    _reasoning: Reasoning = PrivateAttr(default=Reasoning())
    """What the model thought, which its API may want back with later requests."""

    @model_validator(mode="wrap")
    @classmethod
    def _with_reasoning(cls, data: Any, made: ModelWrapValidatorHandler[RecordedStep]) -> RecordedStep:
        step = made(data)
        if isinstance(data, Mapping):
            step._reasoning = _reasoning_of(data)
        return step

    @model_validator(mode="before")
    @classmethod
    def _its_own(cls, data: Any) -> Any:
        """What the step answered. Calls may stand among the parts of the content, as one provider writes them."""
        if not isinstance(data, Mapping):
            return data
        data = {name: value for name, value in data.items() if name not in _BESIDE}
        if data.get("tool_calls") or not isinstance(data.get("content"), list):
            return data
        parts = [part for part in data["content"] if isinstance(part, Mapping) and part.get("type") == _CALL]
        return {**data, "tool_calls": parts} if parts else data

    @field_validator("content", mode="before")
    @classmethod
    def _joined(cls, content: Any) -> Any:
        if not isinstance(content, list):
            return content
        if not content:
            raise ValueError("a list without a part")
        return "".join(map(_words, content))

    def response(self) -> Response:
        """The step as a response. Raises ValueError and RecursionError where a call is not sound."""
        calls = self.tool_calls or ([self.function_call] if self.function_call else [])
        return Response(
            content=clean_text(self.content or ""),
            tool_calls=tuple(call.read() for call in calls),
            extra={
                name: value
                for name, value in ((REASONING, self._reasoning.text), (SEALED_REASONING, self._reasoning.sealed))
                if value
            },
        )


def _reasoning_of(message: Mapping[str, Any]) -> Reasoning:
    """What a recorded message holds of its model's reasoning, in the fields or among the parts of its content."""
    parts = message.get("content")
    blocks = [part for part in parts if _is_thinking(part)] if isinstance(parts, list) else []
    text = message.get("reasoning_content") or message.get("reasoning")
    return Reasoning(
        plain_text(text) if isinstance(text, str) else "",
        sealed({**message, "thinking_blocks": message.get("thinking_blocks") or blocks}),
    )


def _is_thinking(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") in ("thinking", "redacted_thinking")


def _words(part: Any) -> str:
    """The words of one part of a content. Raises ValueError for one that a step can not have answered."""
    if isinstance(part, str):
        return part
    kind = part.get("type", "text") if isinstance(part, Mapping) else None
    if kind == _CALL or kind in _NO_WORDS:
        return ""
    text = part.get("text") if kind in _WORDS else None
    if not isinstance(text, str):
        raise ValueError(f"a part that is no text ({kind})" if isinstance(kind, str) else "a part that is no text")
    return text
