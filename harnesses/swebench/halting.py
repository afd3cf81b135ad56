"""How an agent says that it is done: by a command of its own, which is no tool operation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from stepdown.builder.records import Message
from stepdown.harnesses.swebench.trajectories import BLOCK, TOOL

_SUBMITS = re.compile(r"echo\s+\S*COMPLETE_TASK_AND_SUBMIT\S*")
_LONGEST = 20_000
"""Characters of a command that are looked at."""


def only_submits(message: Message) -> bool:
    """Whether a step's calls, or without any the commands in its text, do nothing but submit. It is hostile data.

    >>> submit = {"name": "bash", "arguments": '{"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}'}
    >>> only_submits({"tool_calls": [{"function": submit}]}), only_submits({"content": "Done."})
    (True, False)
    """
    commands = list(_commands(message))
    return bool(commands) and all(command is not None and _submits(command) for command in commands)


def _submits(command: str) -> bool:
    command = command[:_LONGEST]
    return "COMPLETE_TASK_AND_SUBMIT" in command and not _SUBMITS.sub("", command).strip(" \n;&|")


def _commands(message: Message) -> Iterator[str | None]:
    """Every command; None for a call that has none."""
    calls, content = message.get("tool_calls"), message.get("content")
    if not calls and isinstance(content, str):
        yield from BLOCK.findall(content[: 4 * _LONGEST])
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        yield _command(function) if isinstance(function, Mapping) and function.get("name") == TOOL else None


def _command(function: Mapping[str, object]) -> str | None:
    try:
        arguments = json.loads(str(function.get("arguments")))
    except (ValueError, RecursionError):
        return None
    command = arguments.get("command") if isinstance(arguments, Mapping) else None
    return command if isinstance(command, str) else None
