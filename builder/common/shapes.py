"""What messages and tools of a prefix must look like, where a harness makes them and where a row is released."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from stepdown.builder.records import MESSAGE_FIELDS, Message, Tool

ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
FieldProblem = tuple[str, str]
"""A field within the message or the tools, and what is wrong with it."""


def message_problems(message: Message, calls: int) -> tuple[list[FieldProblem], int]:
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


def tool_problems(tools: Sequence[Tool]) -> Iterator[FieldProblem]:
    """What is wrong with the tools of a prefix."""
    for index, tool in enumerate(tools):
        function = tool.get("function")
        if (
            tool.get("type") != "function"
            or not isinstance(function, dict)
            or not isinstance(function.get("name"), str)
        ):
            yield f"tools.{index}", "must be a function with a name"
