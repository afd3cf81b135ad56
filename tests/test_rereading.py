"""Answers that were kept before the rules of reading changed are read by today's, without a new call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.actions.rereading import reread
from stepdown.builder.cache.question import Question
from stepdown.builder.cache.responses import Cache
from stepdown.builder.cache.store import DiskStore
from stepdown.builder.config.pool import Model
from stepdown.builder.records import FIRST, Prefix, Response, Stop, ToolCall, Usage

TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"properties": {"command": {"type": "string"}}}}}
PREFIX = Prefix.start([{"role": "user", "content": "go"}], [TOOL])
CALL = ToolCall("bash", '{"command": "ls"}')
LEFT = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>'
SPENT = Usage(prompt=100, completion=10)


@pytest.mark.parametrize(
    ("actions", "kept", "content", "calls", "malformed"),
    [
        ("tools", Response(LEFT), LEFT, (), True),
        ("tools", Response("Done."), "Done.", (), False),
        ("tools", Response("so\n</think>\n", (CALL,)), "", (CALL,), False),
        ("tools", Response("so\n</think>\n\nDone."), "Done.", (), False),
        ("tools", Response("bash(</think>)", malformed=True), "bash(</think>)", (), True),
        ("text", Response(LEFT), LEFT, (), False),
        ("text", Response("so\n</think>\n\nDone."), "Done.", (), False),
        ("json_schema", Response("<think>a</think>{}", malformed=True), "{}", (), True),
        (
            "json_schema",
            Response('<think>a</think>{"function": "bash", "arguments": {"command": "ls"}}', malformed=True),
            *("", (CALL,), False),
        ),
    ],
)
def test_a_kept_answer_is_read_by_today_s_rules(
    actions: Any, kept: Response, content: str, calls: tuple[ToolCall, ...], malformed: bool
) -> None:
    found = reread(actions, PREFIX, kept)
    assert found is not None
    assert (found.content, found.tool_calls, found.malformed) == (content, calls, malformed)
    assert reread(actions, PREFIX, found) == found


def test_what_can_not_be_told_is_asked_again() -> None:
    assert reread("text", PREFIX, Response("<think>\nor\n</think>\n\nno", (CALL,))) is None
    assert reread("tools", PREFIX, Response(usage=Usage(prompt=100))) is None


@pytest.mark.parametrize("stop", [Stop.OVERFLOW, Stop.REFUSED, Stop.LENGTH])
def test_an_empty_answer_with_a_reason_stays(stop: Stop) -> None:
    kept = Response(stop=stop, usage=Usage(prompt=100))
    assert reread("tools", PREFIX, kept) == kept


def question(model: str = "openai/m") -> Question:
    return Question("w", "1", "i", 1, Model(name="m", model=model), PREFIX, FIRST)


def test_the_cache_serves_old_entries_read_anew_and_new_ones_as_they_are(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    cache, asked = Cache(store, "run"), question()
    entry = cache.put(asked, Response(LEFT, usage=SPENT))
    found = cache.get(asked)
    assert found is not None
    assert not found.response.malformed
    old = {name: value for name, value in entry.to_json().items() if name != "reading"}
    store.put(asked.key(), old)
    found = cache.get(asked)
    assert found is not None
    assert (found.response.malformed, found.response.usage, found.run) == (True, SPENT, "run")
    pseudo = question("workload/m")
    store.put(pseudo.key(), old)
    found = cache.get(pseudo)
    assert found is not None
    assert not found.response.malformed
    cache.close()
