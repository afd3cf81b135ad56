"""The pseudo-model `reference`: what an agent would answer that knows BFCL's accepted answers.

It reads the prefix, never the step's number, so that it goes on sensibly where another model made earlier steps.

Its responses pass the official predicate in every entry of every category with accepted answers, but for six in which
no response can: live_simple_106-63-0 and 112-68-0 (a required list without any accepted value), live_multiple_862-181-3
(an accepted parameter that the function does not have), live_multiple_964-207-0 (a required one that is not accepted),
simple_java_36 and 65 (numbers and booleans accepted in a list whose items the checker reads as text).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from stepdown.builder.records import Prefix, Response, ToolCall
from stepdown.harnesses.bfcl.literals import literal
from stepdown.harnesses.bfcl.tools import language_of
from stepdown.harnesses.bfcl.truth import Truth

CLOSING = "Done."
"""Ends a turn whose accepted calls have all been made."""


def all_calls(task: Mapping[str, Any]) -> Response:
    """The response to a single-turn instance: every accepted call, each value its first accepted alternative."""
    documents = {document["name"]: document["parameters"] for document in task["entry"]["function"]}
    language = language_of(task["category"])
    calls = []
    for accepted in task["accepted"]:
        for name, values in accepted.items():
            calls.append(ToolCall(name, json.dumps(_arguments(documents[name], values, language))))
    return Response(tool_calls=tuple(calls))


def next_call(truth: Truth, prefix: Prefix, max_steps: int) -> Response:
    """The response to a multi-turn prefix: the current turn's next accepted call, or the message that ends the turn.

    Calls of this turn that the prefix already holds, whoever made them, are not made again. A turn with more accepted
    calls than it may have steps (two have) gets them in one response.
    """
    starts = [index for index, message in enumerate(prefix.messages) if message["role"] == "user"]
    accepted = truth.turns[min(len(starts), len(truth.turns)) - 1].calls
    left = list(accepted)
    for message in prefix.messages[starts[-1] :]:
        for made in message.get("tool_calls", ()):
            call = truth.completed(made["function"]["name"], _read(made["function"]["arguments"]))
            completed = [truth.completed(other.name, other.arguments) for other in left]
            if call in completed:
                del left[completed.index(call)]
    if not left:
        return Response(CLOSING)
    chosen = left if len(accepted) > max_steps else left[:1]
    return Response(tool_calls=tuple(ToolCall(call.name, json.dumps(call.arguments)) for call in chosen))


def _read(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None


def _arguments(parameters: Mapping[str, Any], accepted: Mapping[str, Sequence[Any]], language: str) -> dict[str, Any]:
    """One accepted set of arguments: those that may be left out are, unless the function requires them."""
    required, given = parameters.get("required", ()), {}
    for name, alternatives in accepted.items():
        if "" in alternatives and name not in required:
            continue
        spec = parameters["properties"].get(name, {})
        value = _first(alternatives)
        given[name] = _settled(value, spec) if language == "python" else literal(_settled(value, spec), spec, language)
    return given


def _first(alternatives: Sequence[Any]) -> Any:
    """The first alternative that is a value; "" stands for one left out, where there is any other."""
    return next((value for value in alternatives if value != ""), "")


def _settled(value: Any, spec: Mapping[str, Any]) -> Any:
    """The value with alternatives chosen inside it: upstream lists them for the entries of dictionaries."""
    if isinstance(value, dict):
        return {key: _first(inner) for key, inner in value.items() if "" not in inner}
    if isinstance(value, list) and spec.get("items", {}).get("type") == "dict":
        return [_settled(item, {}) for item in value]
    return value
