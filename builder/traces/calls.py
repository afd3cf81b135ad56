"""One call of a model as a trace tells of it, and messages as they are compared: by what they say."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from stepdown.builder.actions.forms import Unparsable, kept_as_text, plain_text
from stepdown.builder.engine.recorded import ASSISTANT_FIELDS, RecordedStep

Step = dict[str, Any]
"""A step as seed files have it."""


class LeftOut(Exception):
    """Something in a sound file that can be no part of a seed, with the reason."""


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A call with the messages that it sent and the message that answered it, as the OpenAI chat API has them."""

    messages: Sequence[Mapping[str, Any]]
    answer: Mapping[str, Any]
    model: str
    """As the trace names it; empty where it does not."""
    trace: str = ""
    """What the tool puts together calls by: a trace, a conversation; empty where calls stand alone."""
    at: float | None = None
    """When it began, in seconds; None where that is not known, and the file's order holds."""
    record: Mapping[str, Any] = field(default_factory=dict)
    """What the trace says of it, for the id of its task."""


_ROLES = {"developer": "system", "human": "user", "ai": "assistant", "function": "tool"}


def role_of(message: Mapping[str, Any]) -> str:
    """The role of a message under the name that most tools give it."""
    role = str(message.get("role") or "")
    return _ROLES.get(role, role)


def step_of(message: Mapping[str, Any]) -> Step:
    """An assistant's message as a step. A call that no client lets through stays as text. Raises LeftOut."""
    fields = {key: message[key] for key in ASSISTANT_FIELDS if message.get(key) not in (None, "", [], ())}
    try:
        read = RecordedStep.model_validate(fields)
    except (ValidationError, RecursionError):
        raise LeftOut("calls whose answer can not be read") from None
    thought = {key: value for key, value in fields.items() if key not in ("content", "tool_calls", "function_call")}
    try:
        response = read.response()
    except (Unparsable, ValueError, RecursionError):
        made = read.tool_calls or ([read.function_call] if read.function_call else [])
        texts = [(one.name, one.arguments if isinstance(one.arguments, str) else str(one.arguments)) for one in made]
        return {"content": kept_as_text(read.content or "", texts).content}
    if not response.content and not response.tool_calls:
        raise LeftOut("calls without an answer")
    step: Step = {"content": plain_text(response.content), **thought}
    if response.tool_calls:
        step["tool_calls"] = [{"name": call.name, "arguments": call.arguments} for call in response.tool_calls]
    return step


def said(message: Mapping[str, Any]) -> str:
    """What a message says, as text that is equal for messages that clients hold for the same.

    A client sends an answer back in a form of its own: other ids of calls, other spaces in arguments, no words beside
    calls, no thought.
    """
    role = role_of(message)
    if role == "assistant":
        try:
            step = step_of(message)
        except LeftOut:
            step = {"content": ""}
        if calls := step.get("tool_calls"):
            made = [[call["name"], json.loads(call["arguments"])] for call in calls]
            return json.dumps([role, made], sort_keys=True)
        return json.dumps([role, str(step["content"]).strip()])
    return json.dumps([role, text_of(message.get("content"))])


def text_of(content: Any) -> str:
    """The words of a content; of parts that are none, their JSON."""
    if isinstance(content, str):
        return content.strip()
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content, sort_keys=True, default=str)
    parts = []
    for part in content:
        text = part if isinstance(part, str) else part.get("text") if isinstance(part, Mapping) else None
        parts.append(text if isinstance(text, str) else json.dumps(part, sort_keys=True, default=str))
    return "".join(parts).strip()


def grown(link: bytes, text: str) -> bytes:
    """The digest of a conversation that goes on with one more message."""
    return hashlib.sha256(link + text.encode("utf-8", "surrogatepass")).digest()


def seconds(value: Any) -> float | None:
    """A time as exports write it, in seconds: a number (of seconds, milliseconds or nanoseconds) or ISO 8601.

    >>> seconds("2026-01-01T00:00:00Z") == seconds(1767225600) == seconds("1767225600000000000")
    True
    """
    if isinstance(value, str) and value.isdecimal() and len(value) < 24:
        value = int(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value / 1e9 if value > 1e17 else value / 1e6 if value > 1e14 else value / 1e3 if value > 1e11 else value
    if not isinstance(value, str):
        return None
    try:
        read = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
