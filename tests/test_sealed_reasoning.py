"""Signed and encrypted reasoning goes back to the API that made it, as it came, and to nobody else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from stepdown.builder.config.pool import Model
from stepdown.builder.engine.reasoning import own_reasoning
from stepdown.builder.errors import Technical
from stepdown.builder.models import Client
from stepdown.builder.records import WITHOUT_THINKING, Reasoning, Response, Step
from tests.conftest import Shop
from tests.provider import Answer, Fault, Provider, Request, error
from tests.test_client import operation
from tests.test_reasoning import ASKED, CALL, after
from tests.workshop import config

Start = Callable[..., Provider]
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096}
NO_BLOCK = (
    "messages.{}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is "
    "enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` "
    "and `tool_result` blocks). To avoid this requirement, disable `thinking`."
)


def claude(name: str = "m", strict: bool = False) -> Any:
    """An ability that speaks Anthropic's Messages form and checks its own signatures, as that API does: before the
    latest tool call, or before every one where `strict`.
    """

    def refusal(text: str) -> Fault:
        return Fault(400, {"type": "error", "error": {"type": "invalid_request_error", "message": text}})

    def ability(request: Request) -> Fault:
        thinks = "thinking" in request
        calling = [
            (index, message["content"])
            for index, message in enumerate(request["messages"])
            if message["role"] == "assistant" and any(part["type"] == "tool_use" for part in message["content"])
        ]
        for index, content in calling if strict else calling[-1:]:
            first = content[0]
            if thinks and first["type"] != "thinking":
                return refusal(NO_BLOCK.format(index))
            if thinks and first["signature"] != f"{name} signed: {first['thinking']}":
                return refusal(f"messages.{index}.content.0: Invalid `signature` in `thinking` block")
        if not thinks and any(part["type"] == "thinking" for _, content in calling for part in content):
            return refusal("When thinking is disabled, an `assistant` message cannot contain `thinking`")
        thought = f"thought {len(calling)}"
        block = {"type": "thinking", "thinking": thought, "signature": f"{name} signed: {thought}"}
        call = {"type": "tool_use", "id": f"toolu_{len(calling)}", "name": "math_add", "input": {"a": 1}}
        return Fault(
            200,
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": name,
                "content": [*([block] if thinks else []), call],
                "stop_reason": "tool_use",
                "stop_sequence": None,
                "usage": {"input_tokens": 11, "output_tokens": 3},
            },
        )

    return ability


def router(request: Request) -> Answer | Fault:
    """An ability behind OpenRouter, whose provider wants the parts of its reasoning back."""
    count = 0
    for message in request["messages"]:
        if message.get("tool_calls"):
            parts = message.get("reasoning_details") or [{}]
            if parts[0].get("data") != f"sealed {count}":
                upstream = {"error": {"message": "reasoning_details of a tool call must be passed back unchanged"}}
                return Fault(
                    400,
                    {"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps(upstream)}}},
                )
            count += 1
    parts = [{"type": "reasoning.encrypted", "data": f"sealed {count}", "format": "x-v1", "index": 0}]
    return Answer(None, (("math_add", '{"a": 1}'),), message={"reasoning": "hm", "reasoning_details": parts})


def gemini(request: Request) -> Answer | Fault:
    """An ability that speaks Gemini's OpenAI form: the first call of each message wants a signature, or none at all."""
    count = 0
    for message in request["messages"]:
        if message.get("tool_calls"):
            given = message["tool_calls"][0].get("extra_content", {}).get("google", {}).get("thought_signature")
            if given not in (f"signature {count}", "skip_thought_signature_validator"):
                return error(
                    400, "Function call is missing a thought_signature in functionCall parts. This is required."
                )
            count += 1
    body = Answer(None, (("math_add", '{"a": 1}'),)).body("m")
    body["choices"][0]["message"]["tool_calls"][0]["extra_content"] = {
        "google": {"thought_signature": f"signature {count}"}
    }
    return Fault(200, body)


def played(
    model: Model, ability: Any, before: tuple[Step, ...] = (), calls: int = 3
) -> tuple[list[Step], Provider, list[str]]:
    """So many further steps by a model, the provider that saw them, and what was told a person."""
    steps, told = list(before), list[str]()
    with Provider({model.model.split("/")[-1]: ability}) as provider:
        with Client([model], operation(provider.url), notify=told.append) as client:
            for _ in range(calls):
                prefix = after(steps[-1]) if steps else ASKED
                reasoning = own_reasoning(model.name, prefix, steps)
                steps.append(Step(prefix, client.complete(model, prefix, reasoning=reasoning).response, model.name))
        return steps, provider, told


OTHERS = (Step(ASKED, Response("", (CALL,), extra={"reasoning": "hm", "sealed_reasoning": '{"x": 1}'}), "other"),)
CLAUDE = Model(name="m", model="anthropic/claude-sonnet-4-5", parameters=THINKING)
"""LiteLLM looks the name up: of models that it does not know it takes no `thinking`."""


def test_anthropic_gets_its_signed_blocks_back_with_its_tool_calls() -> None:
    steps, provider, told = played(CLAUDE, claude(strict=True))
    assert provider.count() == 3, "none was refused"
    assert all(step.response.tool_calls == (CALL,) for step in steps)
    assert not told
    stored = Response.from_json(json.loads(json.dumps(steps[1].response.to_json())))
    assert stored.reasoning == steps[1].response.reasoning
    assert "thought 1" in stored.reasoning.sealed
    assert all("thought" not in json.dumps(message) for message in after(steps[-1]).messages)


def test_after_another_s_step_anthropic_answers_without_thinking() -> None:
    steps, provider, told = played(CLAUDE, claude(), OTHERS)
    assert all(step.response.extra[WITHOUT_THINKING] for step in steps[1:])
    assert ["thinking" in seen.body for seen in provider.requests] == [True, False, False, False]
    (line,) = told
    assert line.startswith("m answers without `thinking` after steps that other models made")


@pytest.mark.parametrize(("strict", "asked_with"), [(False, [True]), (True, [True, False])])
def test_an_own_step_after_another_s_is_enough_where_the_api_takes_it(strict: bool, asked_with: list[bool]) -> None:
    block = {"type": "thinking", "thinking": "first", "signature": "claude-sonnet-4-5 signed: first"}
    sealed = json.dumps({"thinking_blocks": [block]})
    own = Step(after(OTHERS[0]), Response("", (CALL,), extra={"sealed_reasoning": sealed}), "m")
    ability = claude("claude-sonnet-4-5", strict)
    steps, provider, _ = played(CLAUDE, ability, (*OTHERS, own), calls=1)
    assert ["thinking" in seen.body for seen in provider.requests] == asked_with
    assert (WITHOUT_THINKING in steps[-1].response.extra) is strict


def test_openrouter_gets_its_reasoning_details_back() -> None:
    _, provider, _ = played(Model(name="m", model="openrouter/m"), router)
    assert provider.count() == 3
    last = provider.requests[-1].body["messages"]
    assert [one["reasoning_details"][0]["data"] for one in last if one["role"] == "assistant"] == [
        "sealed 0",
        "sealed 1",
    ]


@pytest.mark.parametrize("before", [(), OTHERS])
def test_gemini_s_signatures_stand_on_its_own_calls_and_a_stand_in_on_others(before: tuple[Step, ...]) -> None:
    steps, provider, _ = played(Model(name="m", model="openai/m"), gemini, before)
    assert provider.count() == 3 + len(before), "it is known after one refusal that others' calls want a stand-in"
    sent = [
        message["tool_calls"][0]["extra_content"]["google"]["thought_signature"]
        for message in provider.requests[-1].body["messages"]
        if message.get("tool_calls")
    ]
    assert sent[: len(before)] == ["skip_thought_signature_validator"] * len(before)
    assert sent[-1] == f"signature {len(steps) - 2}"


def test_a_server_that_takes_no_such_field_back_does_not_get_it_again() -> None:
    def ability(request: Request) -> Answer | Fault:
        if any("reasoning_details" in message for message in request["messages"]):
            return error(400, "messages.1.reasoning_details: Extra inputs are not permitted")
        return Answer(None, (("math_add", '{"a": 1}'),), message={"reasoning_details": [{"type": "reasoning.text"}]})

    _, provider, _ = played(Model(name="m", model="openai/m"), ability, calls=4)
    assert provider.count() == 5


def test_an_api_that_no_form_contents_blocks_the_instance() -> None:
    refusal = error(400, NO_BLOCK.format(1))
    with pytest.raises(Technical, match="must start with a thinking block"):
        played(CLAUDE, lambda request: refusal, OTHERS)


@pytest.mark.parametrize(
    "sealed", ["", "[]", "nonsense", "1" * 5000, "[" * 5000, '{"tool_calls": 5}', '{"tool_calls": [{}, {}]}']
)
def test_what_is_no_sealed_reasoning_is_not_sent(sealed: str) -> None:
    with Provider({"m": lambda request: Answer("2")}) as provider:
        model, prefix = Model(name="m", model="openai/m"), after(Step(ASKED, Response("", (CALL,)), "m"))
        with Client([model], operation(provider.url)) as client:
            client.complete(model, prefix, reasoning={1: Reasoning(sealed=sealed)})
        sent = provider.requests[0].body["messages"][1]
    assert set(sent) - {"content"} == {"role", "tool_calls"}
    assert set(sent["tool_calls"][0]) == {"id", "type", "function"}


@pytest.mark.parametrize("odd", [5, "x", [5], [{"a": float("nan")}], [{"text": "\ud800"}], {"a": None}], ids=repr)
def test_whatever_stands_where_reasoning_should_is_an_answer_like_another(odd: Any) -> None:
    given = Answer(None, (("math_add", '{"a": 1}'),), message={"reasoning_details": odd})
    steps, _, _ = played(Model(name="m", model="openai/m"), lambda request: given, calls=2)
    assert all(step.response.tool_calls == (CALL,) for step in steps)
    json.dumps(steps[0].response.to_json()).encode()


def test_a_build_keeps_sealed_reasoning_out_of_rows_and_from_other_models(shop: Shop, provider: Start) -> None:
    adder = Answer(None, (("math_add", '{"a": 7}'),))
    loopback = provider({"novice": lambda request: Answer("no"), "hand": lambda request: adder, "master": router})
    settings = config(loopback.url, [])
    settings["protocol"]["workloads"] = [
        {"harness": "tests.test_reasoning:Sums", "source": {}, "seeds": {"source": "collect"}}
    ]
    for tier in settings["protocol"]["pool"]["tiers"]:
        for model in tier["models"]:
            model["model"] = f"openrouter/{model['name']}"
    settings["protocol"]["rules"] = {"cascade": 1}
    shop.build(settings)
    sent: Mapping[str, list[str]] = {
        name: [json.dumps(seen.body) for seen in loopback.requests if seen.model == name]
        for name in ("novice", "hand", "master")
    }
    assert any('"data": "sealed 1"' in body for body in sent["master"])
    assert not any("sealed" in body for name in ("novice", "hand") for body in sent[name])
    assert not any(b"sealed" in file for file in shop.files().values())
