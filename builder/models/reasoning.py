"""Reasoning that an API wants back with a model's tool calls: how it is kept from an answer and put into a request.

Texts (`reasoning_content`) are sent only where an API turns out to want them. What is sealed - signed or encrypted by
the API that made it - goes back as it came with the model's own steps, and never to another model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from stepdown.builder.actions.forms import Unparsable, read_json
from stepdown.builder.records import Message, Reasoning

TEXT = "reasoning_content"
"""The field of an answer's message that holds a model's reasoning, and of a request's that gives it back."""
_SEALED = ("thinking_blocks", "reasoning_details")
"""Anthropic's blocks as LiteLLM has them; OpenRouter's parts."""
_SEALED_IN_CALLS = ("extra_content", "provider_specific_fields", "thought_signature")
"""Where Gemini's signatures stand: in its own OpenAI form, and as LiteLLM has them."""
_BLANK = " "
"""What stands in for a text that is not the model's own; an empty one counts as missing."""
_UNCHECKED: Mapping[str, Any] = {"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}}
"""What stands in for Gemini's signature on other models' calls, as its documentation has it."""
_THINKING = ("thinking", "reasoning_effort", "reasoning")
"""The parameters that ask for thinking."""
_OWN_FORM = ("anthropic/", "bedrock/", "gemini/", "vertex_ai/", "vertex_ai_beta/")
"""Providers whose requests LiteLLM writes out of the messages. From others' messages it drops what it does not know."""

NAMES = frozenset({TEXT, "thinking", "redacted_thinking", "tool_use", "thought_signature"})
"""Names of fields by which errors about reasoning are known."""
_START = r"\A[^'\"`]{0,160}"
"""Such an error speaks of a message by its place, and after that may repeat the message's own words."""
_TEXT_WANTED = re.compile(
    r"reasoning_content\b.{0,80}\b(is missing|is required|must be (passed|sent|provided|included)|cannot be empty)"
    r"|missing (the )?(required )?(field )?reasoning_content",
    re.IGNORECASE,
)
_BLOCKS_WANTED = re.compile(
    _START + r"(expected .?thinking.? or .?redacted_thinking"
    r"|messages\.\d+\.content\.\d+\S* invalid .?signature.? in .?thinking"
    r"|messages\.\d+\.content\.\d+\S* .?thinking.? or .?redacted_thinking.? blocks .{0,60}cannot be modified"
    r"|messages\.\d+\.content\.\d+\.thinking\.signature\b)",
    re.IGNORECASE,
)
_SIGNATURE_WANTED = re.compile(_START + r"missing an? .?thought_?signature", re.IGNORECASE)
_UNKNOWN = re.compile(
    _START + r"\b(thinking_blocks|reasoning_details|extra_content|provider_specific_fields)\b.{0,40}"
    r"(not (permitted|allowed|supported)|unsupported|unknown|unexpected|unrecogni[sz]ed|extra (inputs|fields))",
    re.IGNORECASE,
)


class ReasoningWanted(Enum):
    """What an API says that it wants of the messages that call tools."""

    TEXT = auto()
    """The reasoning behind each, as text."""
    BLOCKS = auto()
    """Its own signed blocks before the latest of them, or no thinking in this answer (Anthropic)."""
    SIGNATURE = auto()
    """A signature on each call (Gemini)."""
    NOTHING = auto()
    """None of the fields in which it gave its reasoning."""


def wanted(words: str, messages: Sequence[str]) -> ReasoningWanted | None:
    """What an error wants: by the provider's own words, or by how one of its messages begins. None: it is another."""
    if _TEXT_WANTED.search(words):
        return ReasoningWanted.TEXT
    for pattern, kind in (
        (_BLOCKS_WANTED, ReasoningWanted.BLOCKS),
        (_SIGNATURE_WANTED, ReasoningWanted.SIGNATURE),
        (_UNKNOWN, ReasoningWanted.NOTHING),
    ):
        if any(pattern.search(message) for message in messages):
            return kind
    return None


# From an answer


def sealed(message: Any) -> str:
    """The fields of an answer's message that only its API can read or check, as JSON text; empty where there are none.

    Those of its calls stand under `tool_calls`, one object for each.
    """
    fields = {name: value for name in _SEALED if (value := _field(message, name)) and isinstance(value, list)}
    calls = _field(message, "tool_calls")
    if isinstance(calls, (list, tuple)):
        of_calls = [{name: value for name in _SEALED_IN_CALLS if (value := _field(call, name))} for call in calls]
        if any(of_calls):
            fields["tool_calls"] = of_calls
    try:
        return json.dumps(fields, allow_nan=False) if fields else ""
    except (TypeError, ValueError, RecursionError):  # nothing that came from JSON
        return ""


def _field(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


# Into a request


@dataclass(frozen=True, slots=True)
class Form:
    """A request as an API may want it."""

    request: Mapping[str, Any]
    without_thinking: bool = False
    """Whether it does not ask for the thinking that the model's parameters name."""


def forms(
    model: str, request: Mapping[str, Any], reasoning: Mapping[int, Reasoning], want: ReasoningWanted | None
) -> Iterator[Form]:
    """The request with the model's own reasoning as an API wants it; where there are several, later ones are for an API
    that refuses the first. `model` is LiteLLM's name, `reasoning` is by the place of the messages.
    """
    messages: list[Message] = [dict(message) for message in request["messages"]]
    own = {place: fields for place, one in reasoning.items() if (fields := _unsealed(one.sealed))}
    calling = [place for place, message in enumerate(messages) if message.get("tool_calls")]
    if want is ReasoningWanted.NOTHING:
        yield Form(request)
        return
    if want is not ReasoningWanted.BLOCKS or (calling and calling[-1] in own):
        for place, fields in own.items():
            messages[place] = _with_fields(messages[place], fields)
        if want is ReasoningWanted.TEXT:
            for place in {*calling, *reasoning}:
                messages[place][TEXT] = (reasoning[place].text if place in reasoning else "") or _BLANK
        if want is ReasoningWanted.SIGNATURE:
            for place in calling:
                messages[place] = _with_signature(messages[place])
        yield Form(_with_messages(model, request, messages))
    if want is ReasoningWanted.BLOCKS:
        bare = {name: value for name, value in request.items() if name not in _THINKING}
        yield Form(bare, without_thinking=len(bare) < len(request))


def _unsealed(text: str) -> Mapping[str, Any]:
    """The fields that `sealed` kept; none where the text is anything else, since a cache may be anybody's."""
    try:
        fields = read_json(text) if text else {}
    except Unparsable:
        return {}
    return fields if isinstance(fields, dict) else {}


def _with_fields(message: Message, fields: Mapping[str, Any]) -> Message:
    """A message with what was sealed of it. Where its calls are not those that came, they get nothing."""
    made = message | {name: fields[name] for name in _SEALED if name in fields}
    calls, given = message.get("tool_calls", []), fields.get("tool_calls")
    if isinstance(given, list) and len(given) == len(calls) and all(isinstance(one, dict) for one in given):
        made["tool_calls"] = [
            call | {name: one[name] for name in _SEALED_IN_CALLS if name in one}
            for call, one in zip(calls, given, strict=True)
        ]
    return made


def _with_signature(message: Message) -> Message:
    """A message whose first call has a signature, be it one that stands in."""
    first, *others = message["tool_calls"]
    if any(call.get(name) for call in (first, *others) for name in _SEALED_IN_CALLS):
        return message
    return message | {"tool_calls": [{**first, **_UNCHECKED}, *others]}


def _with_messages(model: str, request: Mapping[str, Any], messages: list[Message]) -> Mapping[str, Any]:
    if messages == request["messages"]:
        return request
    if model.startswith(_OWN_FORM):
        return {**request, "messages": messages}
    # LiteLLM drops such fields from messages, so they are put into the body.
    return {**request, "extra_body": {"messages": messages}}
