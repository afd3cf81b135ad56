"""Runs a page's own grader: `python -I grade.py GRADER TRANSCRIPT WORKSPACE`. It imports nothing of stepdown.

GRADER is a Python file with `grade(transcript, workspace_path)`. The scores are the last line that is printed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def main() -> None:
    grader, transcript, workspace = sys.argv[1:]
    own: dict[str, Any] = {"__name__": "grader"}
    exec(compile(Path(grader).read_text(encoding="utf-8"), grader, "exec"), own)  # noqa: S102 - the user's own code
    events = list(events_of(json.loads(Path(transcript).read_text(encoding="utf-8"))))
    scores = own["grade"](events, workspace)
    kept = {str(name): float(score) for name, score in scores.items() if isinstance(score, (int, float))}
    print("\n" + json.dumps({"scores": kept or {"no score": 0.0}}))


def events_of(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The conversation as graders read it: a message an event, without the system's.

    >>> [event["message"]["role"] for event in events_of([{"role": "system"}, {"role": "user", "content": "hello"}])]
    ['user']
    """
    for message in messages:
        role, text = message["role"], message.get("content") or ""
        parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        if role == "assistant":
            parts += [called(call) for call in message.get("tool_calls") or ()]
        told: dict[str, Any] = {"role": "toolResult" if role == "tool" else role, "content": parts}
        if role == "tool":
            told["toolCallId"] = message["tool_call_id"]
        if role != "system":
            yield {"type": "message", "message": told}


def called(call: dict[str, Any]) -> dict[str, Any]:
    """A tool call. Its arguments have two names: programs write the first, some graders read the second."""
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = {}
    return {
        "type": "toolCall",
        "id": call["id"],
        "name": function["name"],
        "arguments": arguments,
        "params": arguments,
    }


if __name__ == "__main__":
    main()
