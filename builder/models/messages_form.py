"""An answer in Anthropic's Messages form, as a chat completion.

LiteLLM makes one too, but hides why the answer ended, and fails where a gateway of this form tells no usage.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_THINKING = ("thinking", "redacted_thinking")


def as_chat_completion(body: str) -> Mapping[str, Any] | None:
    """The body as a chat completion; None where it is no answer of this form. Any field may be of another type.

    >>> body = '{"type": "message", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}'
    >>> as_chat_completion(body)["choices"][0]["message"]["content"]
    'hi'
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, Mapping) or data.get("type") != "message" or not isinstance(data.get("content"), list):
        return None
    parts = [part for part in data["content"] if isinstance(part, Mapping)]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(_texts(parts, "text")),
        "reasoning_content": "".join(_texts(parts, "thinking")),
        "thinking_blocks": [part for part in parts if part.get("type") in _THINKING],
    }
    if calls := [_call(part) for part in parts if part.get("type") == "tool_use"]:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": data.get("stop_reason")}
    return {"id": data.get("id"), "model": data.get("model"), "choices": [choice], "usage": data.get("usage")}


def _texts(parts: list[Mapping[str, Any]], kind: str) -> list[str]:
    """What parts of a kind say; each holds it under its kind's name."""
    return [text for part in parts if part.get("type") == kind and isinstance(text := part.get(kind), str)]


def _call(part: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": part.get("id"), "function": {"name": part.get("name"), "arguments": part.get("input")}}
