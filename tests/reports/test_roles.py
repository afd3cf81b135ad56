"""A step's role follows from its response alone; a compound step takes the first of the fixed order."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepdown.builder.errors import BadInput
from stepdown.builder.records import Message
from stepdown.harnesses.roles import Role, role_of
from tests.workshop import Workshop

EDIT, CHECK, EXPLORE = Role.CODE_PATCH, Role.TEST_VERIFY_DEBUG, Role.EXPLORE_SEARCH
READ, TOOL, PROSE = Role.READ_RETRIEVE, Role.TOOL_API, Role.SUMMARIZE_ANSWER


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def step(*calls: dict[str, object], content: str = "") -> dict[str, object]:
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {})}


@pytest.mark.parametrize(
    ("command", "role"),
    [
        ("ls -la", EXPLORE),
        ("cd src && grep -rn 'def f' .", EXPLORE),
        ("find . -name '*.py' | head -20", EXPLORE),
        ("git log --oneline", EXPLORE),
        ("cat setup.py", READ),
        ("sed -n '1,80p' sympy/core/add.py", READ),
        ("nl -ba x.py | sed -n '10,20p'", READ),
        ("python -m pytest tests/test_x.py -q", CHECK),
        ("PYTHONPATH=. timeout 60 pytest -x 2>&1 | tail -5", CHECK),
        ("python3 -c \"print('a > b')\"", CHECK),
        ("python - <<'EOF'\nopen('x', 'w').write('>')\nEOF", CHECK),
        ("./run_tests.sh", CHECK),
        ("sed -i 's/a/b/' x.py", EDIT),
        ("cat > fix.py <<'EOF'\nimport os\nEOF", EDIT),
        ("cat <<EOF | tee x.py\nEOF", EDIT),
        ("git apply fix.diff", EDIT),
        ("echo hello > notes.txt", EDIT),
        ("ls > /dev/null", EXPLORE),
        ("grep -n x y.py 2>/dev/null", EXPLORE),
        ("curl http://localhost", TOOL),
        ("echo done", TOOL),
        ("cd src", TOOL),
        ("", TOOL),
    ],
)
def test_a_shell_command_is_told_by_what_it_runs(command: str, role: Role) -> None:
    assert role_of(step(call("bash", command=command))) is role
    assert role_of(step(content=f"I will look.\n\n```bash\n{command}\n```")) is role


@pytest.mark.parametrize(
    ("command", "role"),
    [
        ("cat x.py && sed -i s/a/b/ x.py && pytest", EDIT),
        ("cat x.py; grep y z; pytest", CHECK),
        ("cat x.py | grep y", EXPLORE),
        ("echo hi && cat x.py", READ),
    ],
)
def test_a_compound_command_takes_the_first_role_of_the_order(command: str, role: Role) -> None:
    assert role_of(step(call("bash", command=command))) is role


def test_several_calls_are_one_compound_step() -> None:
    look, change = call("bash", command="ls"), call("bash", command="rm x")
    assert role_of(step(look, change)) is role_of(step(change, look)) is EDIT


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("get_stock_price", TOOL),
        ("TwitterAPI.post_tweet", TOOL),
        ("edit_file", EDIT),
        ("createFile", EDIT),
        ("run_tests", CHECK),
        ("search_web", EXPLORE),
        ("grep", EXPLORE),
        ("search_flights", TOOL),
        ("list_friends", TOOL),
        ("read_file", READ),
        ("fetch_url", READ),
    ],
)
def test_other_tools_are_told_by_their_names(name: str, role: Role) -> None:
    assert role_of(step(call(name, x=1))) is role


def test_an_editor_that_only_looks_does_not_edit() -> None:
    assert role_of(step(call("str_replace_editor", command="view", path="x"))) is READ
    assert role_of(step(call("str_replace_editor", command="insert", path="x"))) is EDIT


def test_a_response_without_a_call_is_prose() -> None:
    assert role_of(step(content="Run `pytest` and you will see.")) is PROSE
    assert role_of(step(content="```python\nopen('x', 'w')\n```")) is PROSE


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"content": None},
        {"content": ["x"]},
        {"tool_calls": "x"},
        {"tool_calls": [None, {"function": 3}, {"function": {"name": 4, "arguments": [1]}}]},
        {"tool_calls": [{"function": {"name": "bash", "arguments": "[" * 9_999}}]},
    ],
)
def test_hostile_responses_have_a_role_too(message: dict[str, object]) -> None:
    assert role_of(message) in Role


class Odd(Workshop):
    """A workload that knows a role of its own, which no table has."""

    @classmethod
    def step_role(cls, message: Message) -> str | None:
        return "dreaming"


def test_a_workload_can_not_invent_a_role() -> None:
    with pytest.raises(BadInput, match=r"Odd\.step_role says 'dreaming', which is none of code_patch, "):
        role_of(step(content="x"), Odd)


@given(st.text(max_size=300))
def test_any_command_has_a_role(command: str) -> None:
    assert role_of(step(call("bash", command=command))) in Role
