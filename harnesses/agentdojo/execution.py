"""Runs a model's calls in an environment, by the package's own executor. Whatever a model wrote is only data to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from stepdown.builder.records import ToolCall, clean_text
from stepdown.harnesses.agentdojo import upstream
from stepdown.harnesses.agentdojo.settling import Settled
from stepdown.harnesses.receipts import ToolReceipt

LIMITS = {
    "calls": 32,  # that one response may have executed; the longest accepted way has 18 in all
    "arguments": 65_536,  # characters of one call's arguments
    "written": 400_000,  # characters of all arguments of an episode, which tools read again; the longest way has 917
    "depth": 16,  # of nesting in them
    "observation": 200_000,  # characters of a result; what is longer is cut
}


class ExecutedCall(NamedTuple):
    """What came of one call: what the model is told, and the receipt."""

    told: str
    receipt: ToolReceipt


def execute(suite: upstream.Suite, env: upstream.Environment, call: ToolCall, before: int) -> ExecutedCall:
    """Run one call, which may change the environment; `before` calls were run already. Never raises for what a model
    wrote: an argument that is wrong is told as the package tells it.
    """
    try:
        arguments = _read(call.arguments)
    except (ValueError, RecursionError) as error:
        return ExecutedCall(f"ValidationError: {error}", ToolReceipt(call.name, {}, failed=True))
    told, failed, given = _run(suite, env, call.name, arguments, before)
    if len(told) > LIMITS["observation"]:
        told = f"{told[: LIMITS['observation']]} … (cut)"
    return ExecutedCall(clean_text(told), ToolReceipt(call.name, given, failed))


def _run(
    suite: upstream.Suite, env: upstream.Environment, name: str, arguments: dict[str, Any], before: int
) -> tuple[str, bool, Mapping[str, Any]]:
    """What the package's executor tells, whether the call failed, and the arguments as it has read them."""
    from agentdojo.agent_pipeline.tool_execution import ToolsExecutor
    from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime

    # Not validated: a mapping that looks like a call would become one, and be executed in passing.
    call = FunctionCall.model_construct(function=name, args=arguments)
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    runtime = Settled(FunctionsRuntime(suite.tools), before)
    try:
        *_, messages, _ = ToolsExecutor().query("", runtime, env, [message])
    except Exception as error:  # the executor reads lists out of texts and writes results as YAML
        return f"{type(error).__name__}: {error}", True, arguments
    result = messages[-1]
    text = "\n".join(block["content"] or "" for block in result["content"])
    return result["error"] or text, result["error"] is not None, call.args


def _read(text: str) -> dict[str, Any]:
    """The arguments of a call. Raises ValueError or RecursionError for what no tool shall be given."""
    if len(text) > LIMITS["arguments"]:
        raise ValueError(f"the arguments have more than {LIMITS['arguments']} characters")
    arguments = json.loads(text, parse_constant=_no_number)
    if not isinstance(arguments, dict):
        raise ValueError("the arguments are no object")
    if _depth(arguments) > LIMITS["depth"]:
        raise ValueError(f"the arguments nest deeper than {LIMITS['depth']}")
    return arguments


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _depth(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, parts)) if parts else 1
