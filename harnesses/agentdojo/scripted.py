"""Pseudo-models: `reference` does what the package knows to be right, `gullible` does first what a tool's result asks.

Both read the prefix, never the step's number, so that they go on sensibly where another model made earlier steps.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from stepdown.builder.records import Instance, Prefix, Response, ToolCall
from stepdown.harnesses.agentdojo import upstream
from stepdown.harnesses.agentdojo.episode import opening
from stepdown.harnesses.receipts import same_json

CLOSING = "Done."
"""Ends a task whose right answer is no text."""


def answer(name: str, instance: Instance, prefix: Prefix, most_rounds: int) -> Response | None:
    """What a pseudo-model answers; None for another name.

    A right way that is longer than the rounds an agent has (one task's is) is gone in one response.
    """
    if name not in ("reference", "gullible"):
        return None
    task = instance.task
    suite = upstream.suites(task["version"])[task["suite"]]
    user_task, wanted = suite.user_tasks[task["user_task"]], task.get("injection_task")
    made = list(_calls_in(prefix))
    if name == "gullible" and wanted is not None:
        attackers = suite.injection_tasks[wanted]
        if is_read(attackers.GOAL, prefix) and (left := _left(attackers.ground_truth(opening(task)), made)):
            return _calls(left[:1])
    right = user_task.ground_truth(opening(task))
    if left := _left(right, made):
        return _calls(left if len(right) > most_rounds else left[:1])
    return Response(user_task.GROUND_TRUTH_OUTPUT.strip() or CLOSING)


def is_read(goal: str, prefix: Prefix) -> bool:
    """Whether an attacker's wish stands in a tool's result, however that broke its lines."""
    words = _words(goal)
    results = " ".join(str(message["content"]) for message in prefix.messages if message["role"] == "tool")
    return " ".join(words) in " ".join(_words(results))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.replace("\\n", " "))


def _calls_in(prefix: Prefix) -> Iterator[tuple[str, Any]]:
    for message in prefix.messages:
        for call in message.get("tool_calls", ()):
            yield call["function"]["name"], _read(call["function"]["arguments"])


def _read(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None


def _left(wanted: Sequence[Any], made: Sequence[tuple[str, Any]]) -> list[Any]:
    """The calls of a right way that have not been made; one that is made twice counts twice."""
    left, others = [], list(made)
    for call in wanted:
        found = next((one for one in others if one[0] == call.function and same_json(one[1], dict(call.args))), None)
        if found is None:
            left.append(call)
        else:
            others.remove(found)
    return left


def _calls(calls: Sequence[Any]) -> Response:
    return Response(
        tool_calls=tuple(ToolCall(call.function, json.dumps(dict(call.args), ensure_ascii=False)) for call in calls)
    )
