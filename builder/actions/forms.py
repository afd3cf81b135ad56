"""What adapters share: the request, the raw answer, the parsed one, and the reading of hostile JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from stepdown.builder.records import Message, Tool, ToolCall, clean_text

LONGEST_ARGUMENTS = 1_000_000
"""Characters of one call's arguments; no model means to write more."""
DEEPEST_ARGUMENTS = 64
"""Levels of nesting. Far below the interpreter's own limit, so that it never depends on the stack who fails."""


@dataclass(frozen=True, slots=True)
class Request:
    """The part of a request that depends on the adapter. `response_format` and `tools` are left out where empty."""

    messages: list[Message]
    tools: list[Tool] = field(default_factory=list)
    response_format: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Raw:
    """A model's answer as its provider gave it: text, and calls as (name, argument text) with nothing checked."""

    content: str = ""
    calls: tuple[tuple[str | None, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Parsed:
    """An answer in the canonical action form; `malformed` is that of `builder.records.Response`.

    `left_as_text` marks a malformed answer whose call its server should have read.
    """

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    malformed: bool = False
    left_as_text: bool = False


class Unparsable(ValueError):
    """The text is not what a well-formed call consists of."""


def plain_text(text: str) -> str:
    """The text without what storage and terminals choke on: lone surrogates and NUL become U+FFFD."""
    return clean_text(text).replace("\0", "\ufffd")


def read_json(text: str) -> Any:
    """The JSON value of hostile text. Raises Unparsable, also for what JSON permits and nothing downstream can bear.

    >>> read_json('{"a": NaN}')
    Traceback (most recent call last):
    stepdown.builder.actions.forms.Unparsable: NaN is not JSON
    """
    if len(text) > LONGEST_ARGUMENTS:
        raise Unparsable(f"{len(text)} characters")
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise Unparsable("nested too deeply") from None
    except ValueError as error:  # json.JSONDecodeError, and integers of thousands of digits
        raise Unparsable(str(error)) from None
    _check(value)
    return value


def _no_constant(name: str) -> Any:
    raise Unparsable(f"{name} is not JSON")


def _check(value: Any) -> None:
    """Level by level, so that depth costs no stack."""
    level: list[Any] = [value]
    for _ in range(DEEPEST_ARGUMENTS):
        below: list[Any] = []
        for item in level:
            if isinstance(item, str):
                if plain_text(item) != item:
                    raise Unparsable("a lone surrogate or NUL")
            elif isinstance(item, float):
                if item - item != 0:
                    raise Unparsable("a number that is too large")
            elif isinstance(item, dict):
                below += item.keys()
                below += item.values()
            elif isinstance(item, list):
                below += item
        if not below:
            return
        level = below
    raise Unparsable("nested too deeply")


def tool_call(name: object, arguments: object) -> ToolCall:
    """The call in canonical form; `arguments` is JSON text or a value already read. Raises Unparsable."""
    if not isinstance(name, str) or not name.strip() or plain_text(name) != name:
        raise Unparsable("a call without a name")
    value = read_json(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(value, dict):
        raise Unparsable("arguments that are not an object")
    return ToolCall(name, json.dumps(value, ensure_ascii=False, allow_nan=False))


def kept_as_text(content: str, calls: Iterable[tuple[str | None, str]]) -> Parsed:
    """A malformed answer: all of its text is the assistant's words, and the next request stays valid."""
    parts = [content, *(f"{name or ''}({arguments})" for name, arguments in calls)]
    return Parsed(plain_text("\n".join(part for part in parts if part)), malformed=True)
