"""What a response calls, or that it calls nothing, as upstream decodes the native function-calling path."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from stepdown.builder.records import Response, ToolCall


@dataclass(frozen=True, slots=True)
class DecodedCall:
    """A call whose arguments have been read."""

    name: str
    arguments: dict[str, Any]


def decoded(response: Response) -> tuple[DecodedCall, ...]:
    """The calls of a response; none where one of them cannot be read, for then upstream executes none of them."""
    calls = []
    for call in response.tool_calls:
        arguments = _object(call)
        if arguments is None:
            return ()
        calls.append(DecodedCall(call.name, arguments))
    return tuple(calls)


def as_text(response: Response) -> Response:
    """The response with its unreadable calls put into its text, so that no call stays unanswered in later messages."""
    if not response.tool_calls:
        return response
    written = [f"{call.name}({call.arguments})" for call in response.tool_calls]
    return replace(response, content="\n".join(part for part in (response.content, *written) if part), tool_calls=())


def _object(call: ToolCall) -> dict[str, Any] | None:
    """The arguments as an object; None where they are no JSON object, or one too deep or with too long a number."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None
