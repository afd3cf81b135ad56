"""Seeds in every form that chat exports write are read alike; what is no sound answer is refused, as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.config.pool import Pool
from stepdown.builder.engine.seeds import SeedFile
from stepdown.builder.errors import BadInput
from stepdown.builder.records import ToolCall
from tests.conftest import Shop
from tests.provider import Provider
from tests.workshop import config

POOL = Pool.model_validate(
    {
        "version": "p",
        "tiers": [
            {"name": "low", "id": 0, "models": [{"name": "small", "model": "openai/small"}]},
            {"name": "high", "id": 1, "models": [{"name": "big", "model": "openai/big"}]},
        ],
    }
)
ARGUMENTS = {"base": 10, "height": 5}
CALL = {"name": "area", "arguments": json.dumps(ARGUMENTS)}


def nested(**more: Any) -> dict[str, Any]:
    return {"id": "call_9", "type": "function", "function": CALL, **more}


def written(folder: Path, answer: dict[str, Any], form: str = "messages", **beside: Any) -> Path:
    chat = [{"role": "user", "content": "q"}, {"role": "assistant", **answer}, {"role": "tool", "content": "50"}]
    steps: dict[str, Any] = {"messages": chat} if form == "messages" else {"steps": [answer]}
    path = folder / "seeds.jsonl"
    path.write_text(json.dumps({"instance_id": "i", "model": "big", **steps, **beside}) + "\n")
    return path


READ: dict[str, tuple[dict[str, Any], str, dict[str, Any] | None]] = {
    "content as parts": ({"content": [{"type": "text", "text": "I "}, {"text": "do."}]}, "I do.", None),
    "parts that are texts": ({"content": ["I ", "do."]}, "I do.", None),
    "parts of the newer API": (
        {"content": [{"type": "output_text", "text": "I do.", "annotations": []}]},
        "I do.",
        None,
    ),
    "thought among the parts": (
        {"content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "I do."}]},
        "I do.",
        None,
    ),
    "parts and calls": ({"content": [{"type": "text", "text": "So."}], "tool_calls": [nested()]}, "So.", ARGUMENTS),
    "calls among the parts": (
        {
            "content": [
                {"type": "text", "text": "So."},
                {"type": "tool_use", "id": "t", "name": "area", "input": ARGUMENTS},
            ]
        },
        "So.",
        ARGUMENTS,
    ),
    "index": ({"content": None, "tool_calls": [nested(index=0)]}, "", ARGUMENTS),
    "a provider's fields": (
        {"tool_calls": [nested(provider_specific_fields={"thought_signature": "abc"})], "refusal": None},
        "",
        ARGUMENTS,
    ),
    "more in the function": (
        {"tool_calls": [{"function": {**CALL, "parsed_arguments": None, "strict": True}}]},
        "",
        ARGUMENTS,
    ),
    "flat, with more": (
        {"tool_calls": [{"type": "function", "call_id": "c", "status": "completed", **CALL}]},
        "",
        ARGUMENTS,
    ),
    "an object": ({"tool_calls": [{"name": "area", "arguments": ARGUMENTS}]}, "", ARGUMENTS),
    "args": ({"tool_calls": [{"name": "area", "args": ARGUMENTS, "id": "1", "type": "tool_call"}]}, "", ARGUMENTS),
    "function_call": ({"content": None, "function_call": CALL}, "", ARGUMENTS),
    "function_call beside no tool_calls": ({"content": "", "tool_calls": [], "function_call": CALL}, "", ARGUMENTS),
    "function_call null": ({"tool_calls": [nested()], "function_call": None}, "", ARGUMENTS),
    "reasoning beside": ({"content": "I do.", "reasoning_content": "hm", "role": "assistant"}, "I do.", None),
    **{
        f"arguments {value!r}": ({"tool_calls": [{"function": {"name": "area", "arguments": value}}]}, "", {})
        for value in (None, "", "  ", "null", "{}", {})
    },
    "no arguments": ({"tool_calls": [{"id": "x", "type": "function", "function": {"name": "area"}}]}, "", {}),
    "no arguments of the one call": ({"function_call": {"name": "area"}}, "", {}),
}


@pytest.mark.parametrize("form", ["messages", "steps"])
@pytest.mark.parametrize("name", READ)
def test_a_chat_export_is_read(name: str, form: str, tmp_path: Path) -> None:
    answer, words, arguments = READ[name]
    (imported,) = SeedFile(written(tmp_path, answer, form), POOL, "work").read("i")
    (response,) = imported.responses
    assert response.content == words
    calls = () if arguments is None else (ToolCall("area", json.dumps(arguments)),)
    assert response.tool_calls == calls


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "an image as an answer": (
        {"content": [{"type": "image_url", "image_url": "u"}]},
        "content: a part that is no text",
    ),
    "a part that is a number": ({"content": [7]}, "content: a part that is no text"),
    "text that is no text": ({"content": [{"type": "text", "text": {"a": 1}}]}, "content: a part that is no text"),
    "no part": ({"content": []}, "content: a list without a part"),
    "a number as content": ({"content": 7}, "content"),
    "cut arguments": ({"tool_calls": [{"name": "f", "arguments": "{"}]}, "tool_calls: no sound call"),
    "arguments as a list": (
        {"tool_calls": [{"name": "f", "arguments": [1]}]},
        "tool_calls.0.arguments: must be an object",
    ),
    "arguments as text of a list": ({"tool_calls": [{"name": "f", "arguments": "[1]"}]}, "tool_calls: no sound call"),
    "NaN": ({"tool_calls": [{"name": "f", "arguments": '{"a": NaN}'}]}, "tool_calls: no sound call"),
    "a huge number": ({"tool_calls": [{"name": "f", "arguments": '{"a": 1e999}'}]}, "tool_calls: no sound call"),
    "NUL": ({"tool_calls": [{"name": "f", "arguments": {"a": "\0"}}]}, "tool_calls: no sound call"),
    "a surrogate in a name": ({"tool_calls": [{"name": "f\ud800", "arguments": "{}"}]}, "tool_calls"),
    "deep arguments": (
        {"tool_calls": [{"name": "f", "arguments": '{"a":' * 99 + "1" + "}" * 99}]},
        "tool_calls: no sound",
    ),
    "no name": ({"tool_calls": [{"function": {"arguments": "{}"}}]}, "tool_calls.0.name"),
    "an empty name": ({"function_call": {"name": "", "arguments": "{}"}}, "function_call.name"),
    "an empty call": ({"tool_calls": [{}]}, "tool_calls.0.name"),
    "a call that is text": ({"tool_calls": ["f()"]}, "tool_calls.0: a call must be an object"),
    "calls that are text": ({"tool_calls": "f()"}, "tool_calls"),
    "another kind of call": (
        {"tool_calls": [{"type": "custom", "custom": {"name": "f", "input": "x"}}]},
        "tool_calls.0",
    ),
    "a slip": (
        {"tool_calls": [{"name": "f", "argument": {"a": 1}}]},
        "tool_calls.0: unknown key 'argument': did you mean",
    ),
}


@pytest.mark.parametrize("form", ["messages", "steps"])
@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_sound_answer_is_refused_with_its_place(name: str, form: str, tmp_path: Path) -> None:
    answer, words = HOSTILE[name]
    with pytest.raises(BadInput) as refused:
        SeedFile(written(tmp_path, answer, form), POOL, "work")
    place = "messages.1" if form == "messages" else "steps.0"
    assert str(refused.value).startswith(f"seeds.jsonl:1: {place}.{words}")


def test_the_tools_beside_a_chat_and_a_byte_order_mark_do_no_harm(tmp_path: Path) -> None:
    path = written(tmp_path, {"content": "I do."}, tools=[{"type": "function"}])
    path.write_text("\ufeff" + path.read_text() * 2)
    first, second = SeedFile(path, POOL, "work").read("i")
    assert first == second
    assert first.responses[0].content == "I do."


def test_an_export_labels_like_plain_steps(shop: Shop, provider: Callable[..., Provider]) -> None:
    chat = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": [{"type": "text", "text": "made "}, {"type": "text", "text": "1"}]},
    ]
    line = {"instance_id": "job-0", "model": "master", "messages": chat}
    (shop.folder / "seeds.jsonl").write_text("\ufeff" + json.dumps(line))
    settings = config(provider().url, [[0]])
    settings["protocol"]["workloads"][0]["seeds"] = {"source": "import", "file": "seeds.jsonl"}
    assert shop.build(settings).code == 0
    assert shop.labels() == [["low"]]
