"""A script's own calls with something changed: what a model does that has nearly understood its task."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from stepdown.builder.records import Response, ToolCall

SOMETHING_ELSE = Response("Something else.")
_OF_ANOTHER_TYPE: dict[str, Any] = {"null": None, "a number": 7, "text": "x", "a list": [["x"]], "an object": {"x": 1}}


def other_answers(response: Response) -> list[Response]:
    """Sound answers in place of this one: its calls with other values of the same types, and words."""
    others = [SOMETHING_ELSE]
    for index, call in enumerate(response.tool_calls):
        arguments = _arguments(call)
        for name, value in arguments.items():
            others.append(_with(response, index, {**arguments, name: _other(value)}))
    return others


def broken_answers(response: Response) -> Iterator[tuple[str, Response]]:
    """This answer's calls with one argument left out, or of another type, by what they are."""
    for index, call in enumerate(response.tool_calls):
        arguments = _arguments(call)
        for name, value in arguments.items():
            left = {key: other for key, other in arguments.items() if key != name}
            yield f"its own call of {call.name} without `{name}`", _with(response, index, left)
            for what, other in _OF_ANOTHER_TYPE.items():
                if type(other) is not type(value):
                    changed = _with(response, index, {**arguments, name: other})
                    yield f"its own call of {call.name} with {what} as `{name}`", changed


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _with(response: Response, index: int, arguments: dict[str, Any]) -> Response:
    calls = list(response.tool_calls)
    calls[index] = ToolCall(calls[index].name, json.dumps(arguments))
    return Response(response.content, tuple(calls))


def _other(value: Any) -> Any:
    """Another value of the same type."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "x"
        case list():
            return value[1:] if value else ["x"]
        case dict():
            return {} if value else {"x": "x"}
        case _:
            return "x"
