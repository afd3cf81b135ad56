"""The messages of a row: their shape, the numbering of calls, and what their texts must not hold.

Rows of an instance mostly repeat the messages of the row before. Those were checked there, and are not checked again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stepdown.builder.records import MESSAGE_FIELDS, Message
from stepdown.releases.problems import FieldProblem
from stepdown.releases.texts import Watch, texts_of

ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is known after a message: calls so far, and the pool models that were named."""

    calls: int
    names: frozenset[str]


class Prefixes:
    """Checks the messages of one row after the other; those that the row before had are not checked again."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._messages: list[Message] = []
        self._seen: list[_Seen] = []
        self._tools: Any = None

    def check(self, messages: list[Message], tools: list[dict[str, Any]] | None) -> Iterator[FieldProblem]:
        """What is wrong with the row's messages and tools, but for what the row before had already."""
        if not messages:
            yield "messages", "must not be empty"
        same = 0
        for old, new in zip(self._messages, messages, strict=False):
            if old != new:
                break
            same += 1
        del self._seen[same:]
        for index in range(same, len(messages)):
            message = messages[index]
            before = self._seen[-1] if self._seen else _Seen(0, frozenset())
            found, calls = _shape(message, before.calls)
            for name, problem in found:
                yield f"messages.{index}{name}", problem
            names = before.names
            texts = texts_of(message)
            for problem in self._watch.in_message(texts):
                yield f"messages.{index}", problem
            if message.get("role") == "assistant":
                names |= self._watch.names_in(texts.joined)
            elif isinstance(message.get("name"), str):
                names |= self._watch.names_in(message["name"])
            for name in sorted(names - before.names - self._watch.allowed_names):
                yield f"messages.{index}", f"names a model of the pool: {name}"
            self._seen.append(_Seen(before.calls + calls, names))
        self._messages = messages
        if tools is not None and tools != self._tools:
            yield from _tools(tools)
            for problem in self._watch.in_message(texts_of(tools)):
                yield "tools", problem
        self._tools = tools

    @property
    def names(self) -> frozenset[str]:
        """Names of pool models in the row that was looked at last."""
        return self._seen[-1].names if self._seen else frozenset()


def _shape(message: Message, calls: int) -> tuple[list[FieldProblem], int]:
    """What is wrong with a message that comes after `calls` tool calls, and how many it makes itself."""
    found: list[FieldProblem] = []
    for key in message:
        if key not in MESSAGE_FIELDS:
            found.append(("", f"{key[:100]!r} is no field of a message"))
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or role not in ROLES:
        found.append((".role", "must be one of " + ", ".join(sorted(ROLES))))
    if not isinstance(content, (str, list)) and ("content" in message or not message.get("tool_calls")):
        found.append((".content", "must be text or a list of parts"))
    if "name" in message and not isinstance(message["name"], str):
        found.append((".name", "must be text"))
    made = message.get("tool_calls")
    count = 0
    if "tool_calls" in message:
        if role != "assistant" or not isinstance(made, list) or not made:
            found.append((".tool_calls", "must be a list of calls in an assistant's message"))
        else:
            count = len(made)
            for index, call in enumerate(made):
                found += [(f".tool_calls.{index}{name}", problem) for name, problem in _call(call, calls + index + 1)]
    if role == "tool" or "tool_call_id" in message:
        found += _answer(message.get("tool_call_id"), role, calls)
    return found, count


def _call(call: Any, number: int) -> Iterator[FieldProblem]:
    if not isinstance(call, dict) or set(call) != {"id", "type", "function"} or call["type"] != "function":
        yield "", "must have id, type `function` and function"
        return
    if call["id"] != f"call_{number}":
        yield ".id", f"must be call_{number}: calls are numbered, whatever ids a provider gave them"
    function = call["function"]
    if not isinstance(function, dict) or set(function) != {"name", "arguments"}:
        yield ".function", "must have name and arguments"
        return
    if not isinstance(function["name"], str) or not function["name"]:
        yield ".function.name", "must be text"
    try:
        if not isinstance(function["arguments"], str) or not isinstance(json.loads(function["arguments"]), dict):
            raise ValueError
    except (ValueError, RecursionError):
        yield ".function.arguments", "must be the text of one JSON object"


def _answer(answered: Any, role: Any, calls: int) -> Iterator[FieldProblem]:
    if role != "tool":
        yield ".tool_call_id", "belongs to a tool's message"
        return
    number = answered.removeprefix("call_") if isinstance(answered, str) else ""
    if not (number.isascii() and number.isdecimal() and len(number) < 10 and 1 <= int(number) <= calls) or (
        answered != f"call_{int(number)}"
    ):
        yield ".tool_call_id", "answers no call that was made before"


def _tools(tools: list[dict[str, Any]]) -> Iterator[FieldProblem]:
    for index, tool in enumerate(tools):
        function = tool.get("function")
        if (
            tool.get("type") != "function"
            or not isinstance(function, dict)
            or not isinstance(function.get("name"), str)
        ):
            yield f"tools.{index}", "must be a function with a name"
