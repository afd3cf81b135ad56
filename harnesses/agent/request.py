"""A chat request as an agent program's client wrote it, read into what a router sees: messages and tools.

What else a request holds (temperature, max_tokens, response_format, tool_choice) is the pool's to say: the step may be
made by any of its models. The request is hostile data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stepdown.builder.actions.forms import Unparsable, plain_text, read_json
from stepdown.builder.records import Message, Tool, exact_digest

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
"""As clients write them; `developer` is a newer name of `system` that few models know."""
_TEXTS = ("text", "input_text", "output_text")


class BadRequest(Exception):
    """A request that no server of this form would take. `param` names the field."""

    def __init__(self, problem: str, param: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.param = problem, param


@dataclass(frozen=True, eq=False)
class ChatRequest:
    """One request for a chat completion."""

    model: str
    messages: tuple[Message, ...]
    """With call ids numbered in order, whatever ids the program kept, and contents as text."""
    tools: tuple[Tool, ...]
    stream: bool = False
    include_usage: bool = False
    """Whether a stream ends with the tokens that were used."""

    @cached_property
    def digest(self) -> str:
        """Of what was asked: the same for a request that a client sends again."""
        return exact_digest([self.model, self.messages, self.tools])


def read_request(body: bytes) -> ChatRequest:
    """The request that a body holds. Raises BadRequest."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequest("the body is not JSON") from None
    if not isinstance(data, dict):
        raise BadRequest("the body must be an object")
    if data.get("n") not in (None, 1):
        raise BadRequest("only one choice can be given", "n")
    messages = data.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("must be a list of at least one message", "messages")
    stream = data.get("stream") is True
    options = data.get("stream_options")
    return ChatRequest(
        model=_text(data.get("model"), "model"),
        messages=_numbered([_message(message, f"messages.{place}") for place, message in enumerate(messages)]),
        tools=tuple(_tools(data.get("tools"))),
        stream=stream,
        include_usage=stream and isinstance(options, dict) and options.get("include_usage") is True,
    )


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise BadRequest("must be text", field)
    return plain_text(value)


def _message(data: Any, field: str) -> Message:
    if not isinstance(data, dict):
        raise BadRequest("must be an object", field)
    role = _ROLES.get(str(data.get("role")))
    if role is None:
        raise BadRequest(f"no such role; there are {', '.join(_ROLES)}", f"{field}.role")
    message: Message = {"role": role, "content": _content(data.get("content"), f"{field}.content")}
    if role == "assistant" and (calls := data.get("tool_calls")):
        if not isinstance(calls, list):
            raise BadRequest("must be a list", f"{field}.tool_calls")
        message["tool_calls"] = [_call(call, f"{field}.tool_calls.{place}") for place, call in enumerate(calls)]
    if role == "tool":
        message["tool_call_id"] = _text(data.get("tool_call_id"), f"{field}.tool_call_id")
    if isinstance(name := data.get("name"), str) and name:
        message["name"] = plain_text(name)
    return message


def _content(content: Any, field: str) -> str:
    """The words of a content: a text, or parts, which are joined line by line."""
    if content is None:
        return ""
    if isinstance(content, str):
        return plain_text(content)
    if not isinstance(content, list):
        raise BadRequest("must be text, or a list of parts", field)
    words = []
    for place, part in enumerate(content):
        kind = part.get("type", "text") if isinstance(part, dict) else "text"
        if kind not in _TEXTS:
            raise BadRequest(f"a part of type {str(kind)[:40]!r}: only text can be answered", f"{field}.{place}.type")
        words.append(_text(part.get("text") if isinstance(part, dict) else part, f"{field}.{place}.text"))
    return "\n".join(words)


def _call(data: Any, field: str) -> dict[str, Any]:
    function = data.get("function") if isinstance(data, dict) else None
    if not isinstance(function, dict):
        raise BadRequest("must be an object with a `function`", field)
    return {
        "id": _text(data.get("id"), f"{field}.id"),
        "type": "function",
        "function": {
            "name": _text(function.get("name"), f"{field}.function.name"),
            "arguments": _text(function.get("arguments", "{}"), f"{field}.function.arguments"),
        },
    }


def _numbered(messages: list[Message]) -> tuple[Message, ...]:
    """The messages with call ids counted from 1: rows must not tell how a program, or a model, makes up ids."""
    ids: dict[str, str] = {}
    count = 0
    out = []
    for message in messages:
        if calls := message.get("tool_calls"):
            numbered = []
            for call in calls:
                count += 1
                ids[call["id"]] = f"call_{count}"
                numbered.append({**call, "id": f"call_{count}"})
            message = {**message, "tool_calls": numbered}
        elif (own := message.get("tool_call_id")) is not None:
            message = {**message, "tool_call_id": ids.get(own, own)}
        out.append(message)
    return tuple(out)


def _tools(value: Any) -> list[Tool]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadRequest("must be a list", "tools")
    tools = []
    for place, tool in enumerate(value):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, Mapping) or tool.get("type", "function") != "function":
            raise BadRequest("only tools of type `function` can be offered", f"tools.{place}")
        name = _text(function.get("name"), f"tools.{place}.function.name")
        kept: dict[str, Any] = {"name": name}
        if isinstance(description := function.get("description"), str):
            kept["description"] = plain_text(description)
        kept["parameters"] = _schema(function.get("parameters"), f"tools.{place}.function.parameters")
        tools.append({"type": "function", "function": kept})
    return tools


def _schema(value: Any, field: str) -> Any:
    """A tool's parameters: hostile JSON within bounds, as a model's arguments are."""
    if value is None:
        return {"type": "object", "properties": {}}
    try:
        return read_json(json.dumps(value))
    except (Unparsable, ValueError, RecursionError) as error:
        raise BadRequest(str(error), field) from None
