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
from stepdown.runs import build
from tests.conftest import Shop, stepdown
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


NO_ARGUMENTS: tuple[Any, ...] = (None, "", "  ", "null", "{}", {})
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
        for value in NO_ARGUMENTS
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


def seeds_for(shop: Shop, provider: Callable[..., Provider], *names: str) -> dict[str, Any]:
    """A config with one job, and seeds for instances of these names."""
    lines = [{"instance_id": name, "model": "master", "steps": [{"content": "made 1"}]} for name in names]
    (shop.folder / "seeds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    settings = config(provider().url, [[0]])
    settings["protocol"]["workloads"][0]["seeds"] = {"source": "import", "file": "seeds.jsonl"}
    return settings


UNPLACED = (
    "the seed file has seeds for 9 instances; 8 of them are not in the source: Job-0, job-1, job-2, job-3, job-4, ..."
)


def test_seeds_for_an_instance_that_is_not_there_are_counted_and_named(
    shop: Shop, provider: Callable[..., Provider]
) -> None:
    settings = seeds_for(shop, provider, "Job-0", "job-0", "job-0", *(f"job-{number}" for number in range(1, 8)))
    looked_at = stepdown("doctor", str(shop.write(settings)))
    assert (looked_at.code, f"none seeds of workshop: {UNPLACED}\n" in looked_at.out) == (0, True), looked_at
    built = shop.build(settings)
    assert (built.code, shop.labels()) == (0, [["low"]])
    assert f"stepdown: warning: protocol.workloads.0.seeds: {UNPLACED}\n" in built.err
    told: list[str] = []
    build(shop.write(settings), shop.folder / "again", tell=told.append)
    assert f"warning: protocol.workloads.0.seeds: {UNPLACED}" in told


def test_seeds_that_all_have_their_instance_are_no_matter(shop: Shop, provider: Callable[..., Provider]) -> None:
    settings = seeds_for(shop, provider, "job-0")
    assert "ok   seeds of workshop" in stepdown("doctor", str(shop.write(settings))).out
    assert "warning" not in shop.build(settings).err


def test_seeds_that_can_not_be_read_are_refused_by_the_doctor_too(
    shop: Shop, provider: Callable[..., Provider]
) -> None:
    settings = seeds_for(shop, provider, "job-0")
    (shop.folder / "seeds.jsonl").write_text('{"instance_id": "job-0", "model": "nobody", "steps": []}\n')
    looked_at = stepdown("doctor", str(shop.write(settings)))
    assert looked_at.code == 2
    assert "seeds.jsonl:1: model: 'nobody' is no model of the pool's strong tier" in looked_at.out


@pytest.mark.parametrize("form", ["messages", "steps"])
@pytest.mark.parametrize(
    ("beside", "text", "fields"),
    [
        ({"reasoning_content": "hm"}, "hm", {}),
        ({"reasoning": "hm", "reasoning_details": [{"data": "x"}]}, "hm", {"reasoning_details": [{"data": "x"}]}),
        ({"thinking_blocks": [{"signature": "s"}]}, "", {"thinking_blocks": [{"signature": "s"}]}),
        (
            {"content": [{"type": "thinking", "signature": "s"}, {"type": "text", "text": "I do."}]},
            "",
            {"thinking_blocks": [{"type": "thinking", "signature": "s"}]},
        ),
        (
            {"tool_calls": [nested(extra_content={"google": {"thought_signature": "s"}})]},
            "",
            {"tool_calls": [{"extra_content": {"google": {"thought_signature": "s"}}}]},
        ),
        ({"reasoning": 5, "thinking_blocks": "x"}, "", None),
        ({}, "", None),
    ],
)
def test_what_the_strong_model_thought_is_kept_for_its_api(
    beside: dict[str, Any], text: str, fields: dict[str, Any] | None, form: str, tmp_path: Path
) -> None:
    (seed,) = SeedFile(written(tmp_path, {"content": "I do.", **beside}, form), POOL, "w").read("i")
    (response,) = seed.responses
    assert response.content == "I do."
    assert response.reasoning.text == text
    assert (json.loads(response.reasoning.sealed) if response.reasoning.sealed else {}) == (fields or {})
    assert all("hm" not in str(response.content) for response in seed.responses)
