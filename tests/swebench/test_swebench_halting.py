"""A step that only submits is the agent's word that it is done, whatever it looks like to others."""

from __future__ import annotations

import json

import pytest

from stepdown.harnesses.roles import Role, role_of
from stepdown.harnesses.swebench.harness import SWEBench

SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def step(*commands: str) -> dict[str, object]:
    calls = [{"function": {"name": "bash", "arguments": json.dumps({"command": command})}} for command in commands]
    return {"role": "assistant", "content": "", "tool_calls": calls}


@pytest.mark.parametrize(
    ("commands", "role"),
    [
        ([SUBMIT], Role.SUMMARIZE_ANSWER),
        ([f"  {SUBMIT};\n"], Role.SUMMARIZE_ANSWER),
        ([f"cat patch.txt && {SUBMIT}"], Role.READ_RETRIEVE),
        ([f"git add -A && git diff --cached > patch.txt && {SUBMIT} && cat patch.txt"], Role.CODE_PATCH),
        ([SUBMIT, "ls"], Role.EXPLORE_SEARCH),
        (["ls"], Role.EXPLORE_SEARCH),
    ],
)
def test_its_role_is_an_answer_only_where_it_does_nothing_else(commands: list[str], role: Role) -> None:
    assert role_of(step(*commands), SWEBench) is role
    text = "\n".join(f"```bash\n{command}\n```" for command in commands)
    assert role_of({"role": "assistant", "content": text}, SWEBench) is role


@pytest.mark.parametrize(
    "message",
    [{}, {"tool_calls": [3, {"function": {"name": "bash", "arguments": "[" * 9_999}}]}, {"tool_calls": "x"}],
)
def test_hostile_messages_are_none(message: dict[str, object]) -> None:
    assert SWEBench.step_role(message) is None
