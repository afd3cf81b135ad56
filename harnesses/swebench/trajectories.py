"""mini-swe-agent's trajectory files as seeds: what the model answered at every step, in the workload's action form.

Version 1 (`mini-swe-agent-1`) has text with one command in a fenced block; version 2 (`mini-swe-agent-1.1`) has tool
calls, the output items of the Responses API, or text. A bare list of messages is read as well. Every command becomes a
call of the tool `bash`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from stepdown.builder.actions.forms import Unparsable, tool_call
from stepdown.builder.config.validation import read_text, validated
from stepdown.builder.errors import BadInput
from stepdown.builder.records import clean_text
from stepdown.harnesses.base import NotASeed

SUFFIX = ".traj.json"
TOOL = "bash"

BLOCK = re.compile(r"```(?:bash|mswea_bash_command)[ \t]*\n(.*?)\n```", re.DOTALL)
_OLD_MARKER, _MARKER = "MINI_SWE_AGENT_FINAL_OUTPUT", "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""What submits a patch. Version 1 knew an older word for it as well, which version 2 does not."""


class _Loose(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Model(_Loose):
    model_name: str | None = None


class _Config(_Loose):
    model: _Model | None = None


class _Info(_Loose):
    exit_status: str | None = None
    config: _Config | None = None

    def model_name(self) -> str | None:
        """The model that made it, where it is named."""
        model = self.config.model if self.config is not None else None
        return model.model_name if model is not None else None


class _File(_Loose):
    trajectory_format: Literal["mini-swe-agent-1", "mini-swe-agent-1.1"]
    messages: tuple[dict[str, Any], ...] = Field(min_length=1)
    info: _Info
    instance_id: str | None = Field(None, min_length=1)


class _Function(_Loose):
    name: str = Field(min_length=1)
    arguments: str


class _Call(_Loose):
    function: _Function


class _Part(_Loose):
    text: str = ""


class _Answer(_Loose):
    """An assistant's message of a chat API."""

    content: str | tuple[_Part, ...] | None = None
    tool_calls: tuple[_Call, ...] | None = None


class _Item(_Loose):
    """An output item of the Responses API."""

    type: str
    name: str = ""
    arguments: str = ""
    content: tuple[_Part, ...] | None = None


def seed_of(path: Path, model: str | None) -> dict[str, Any]:
    """The line of a seed file that a trajectory makes; `model` is the pool's name of the model that made it.

    Raises NotASeed where it did not submit, or where a person took part; BadInput, naming file and field, where it is
    no sound trajectory.
    """
    try:
        data = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON: {error}", file=path) from None
    if isinstance(data, list) and data:
        data = _bare(data)
    if not isinstance(data, dict) or "trajectory_format" not in data:
        raise BadInput("not a trajectory of mini-swe-agent: it has no `trajectory_format`", file=path)
    read = validated(_File, data, file=path)
    if read.info.exit_status != "Submitted":
        raise NotASeed(f"it ended with {read.info.exit_status or 'nothing'}, not Submitted")
    name = model or read.info.model_name()
    if not name:
        raise BadInput(
            "it does not name its model: say which of the pool's strong models it was, with --model NAME",
            file=path,
            field="info.config.model.model_name",
        )
    steps = list(_steps(read, path))
    if not steps:
        raise BadInput("no step in it was made by a model", file=path, field="messages")
    if read.trajectory_format == "mini-swe-agent-1":
        steps[-1] = _with_new_marker(steps[-1])
    instance_id = read.instance_id or path.name.removesuffix(SUFFIX).removesuffix(".json")
    return {"instance_id": instance_id, "model": name, "steps": steps}


def _bare(messages: list[Any]) -> dict[str, Any]:
    """A list of messages as a file has it. That it was submitted shows in the last answer, which gives the command."""
    answers = [each for each in messages if isinstance(each, dict) and each.get("role") == "assistant"]
    last = json.dumps(answers[-1]) if answers else ""
    submitted = any(marker in last for marker in (_OLD_MARKER, _MARKER))
    info = {"exit_status": "Submitted" if submitted else "an answer that does not submit"}
    return {"trajectory_format": "mini-swe-agent-1", "messages": messages, "info": info}


def _steps(read: _File, path: Path) -> Iterator[dict[str, Any]]:
    for index, message in enumerate(read.messages):
        place = {"file": path, "field": f"messages.{index}"}
        extra = message.get("extra")
        extra = extra if isinstance(extra, dict) else {}
        if message.get("object") == "response" or message.get("role") == "assistant":
            yield _step(message, extra, place)
        elif extra.get("interrupt_type") == "FormatError":
            # The answer that could not be parsed is not among the messages, but beside the complaint about it.
            yield _step(_rejected(extra, place), {}, place)
        elif extra.get("interrupt_type") or extra.get("actions"):
            raise NotASeed("a person took part in it")


def _rejected(extra: Mapping[str, Any], place: dict[str, Any]) -> dict[str, Any]:
    response = extra.get("response")
    if isinstance(response, dict) and isinstance(response.get("output"), list):
        return response
    try:
        message = response["choices"][0]["message"]  # type: ignore[index]
        if isinstance(message, dict):
            return message
    except (TypeError, KeyError, IndexError):
        pass
    if isinstance(extra.get("model_response"), str):
        return {"content": extra["model_response"]}
    raise BadInput("the answer that was rejected here is not in the file", **place)


def _step(message: Mapping[str, Any], extra: Mapping[str, Any], place: dict[str, Any]) -> dict[str, Any]:
    if isinstance(message.get("output"), list):
        return _from_items(validated(tuple[_Item, ...], message["output"], **_within(place, "output")))
    answer = validated(_Answer, dict(message), **place)
    content = answer.content or ""
    text = content if isinstance(content, str) else "\n".join(part.text for part in content)
    if answer.tool_calls:
        return _made(text, [(call.function.name, call.function.arguments) for call in answer.tool_calls], place)
    return _from_text(text, extra, place)


def _from_items(items: tuple[_Item, ...]) -> dict[str, Any]:
    parts = [part.text for item in items if item.type == "message" for part in item.content or ()]
    calls = [(item.name, item.arguments) for item in items if item.type == "function_call"]
    return _made("\n".join(parts), calls, {})


def _from_text(text: str, extra: Mapping[str, Any], place: dict[str, Any]) -> dict[str, Any]:
    """A text with exactly one fenced command makes a call; any other one made none then either."""
    blocks = list(BLOCK.finditer(text))
    actions = extra.get("actions")
    if len(blocks) != 1:
        if actions:
            raise BadInput("its text does not hold the one command that was executed", **place)
        return _made(text, [], place)
    [block] = blocks
    around = f"{text[: block.start()].rstrip()}\n{text[block.end() :].lstrip()}".strip()
    return _made(around, [(TOOL, json.dumps({"command": block[1].strip()}, ensure_ascii=False))], place)


def _made(text: str, calls: list[tuple[str, str]], place: dict[str, Any]) -> dict[str, Any]:
    """A step as seed files have it. A call whose arguments are no JSON object was rejected: it stays as text.

    So does one with what no client lets through (a lone surrogate, NUL, NaN): no step of any other model has it either.
    """
    made = []
    for name, arguments in calls:
        try:
            tool_call(name, arguments)
        except Unparsable:
            return {"content": clean_text("\n".join([text, *(part for _, part in calls)]).strip())}
        made.append({"name": name, "arguments": arguments})
    step: dict[str, Any] = {"content": clean_text(text)}
    return {**step, "tool_calls": made} if made else step


def _with_new_marker(step: dict[str, Any]) -> dict[str, Any]:
    calls = [
        {**call, "arguments": call["arguments"].replace(_OLD_MARKER, _MARKER)} for call in step.get("tool_calls", ())
    ]
    return {**step, "tool_calls": calls} if calls else step


def _within(place: dict[str, Any], name: str) -> dict[str, Any]:
    return {**place, "field": f"{place['field']}.{name}"}
