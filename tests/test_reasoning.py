"""An API that wants a model's own reasoning back with its tool calls gets it, and nobody else does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from stepdown.builder.config.pool import Model
from stepdown.builder.engine.reasoning import own_reasoning
from stepdown.builder.errors import Technical
from stepdown.builder.models import Client
from stepdown.builder.records import Instance, Prefix, Reasoning, Response, Ruling, Step, ToolCall, Verdict
from stepdown.harnesses.base import Episode, Harness
from tests.conftest import Shop
from tests.provider import Answer, Fault, Provider, Request, error
from tests.test_client import ADD, operation
from tests.workshop import config

ASKED = Prefix.start([{"role": "user", "content": "add"}], [ADD])
CALL = ToolCall("math.add", '{"a": 1}')
MISSING = "thinking is enabled but reasoning_content is missing in assistant tool call message at index {}"
PASSED_BACK = "The `reasoning_content` in the thinking mode must be passed back to the API. ({})"


def thinker(missing: str = MISSING) -> Any:
    """An ability whose API wants reasoning with every message that calls tools."""

    def ability(request: Request) -> Answer | Fault:
        for index, message in enumerate(request["messages"]):
            if message.get("tool_calls") and not message.get("reasoning_content"):
                return error(400, missing.format(index))
        count = sum(bool(message.get("tool_calls")) for message in request["messages"])
        return Answer(None, (("math_add", '{"a": 1}'),), message={"reasoning_content": f"thought {count}"})

    return ability


class Round(Episode):
    """An agent that has to add three times."""

    def __init__(self) -> None:
        self._prefix, self._left, self._ruling = ASKED, 3, Ruling(Verdict.PASS)

    def prefix(self) -> Prefix:
        return self._prefix

    def advance(self, response: Response) -> bool:
        if not response.tool_calls:
            self._ruling = Ruling(Verdict.FAIL, "no call")
            return False
        self._left -= 1
        self._prefix = after(Step(self._prefix, response, ""))
        return self._left > 0

    def verdict(self) -> Ruling:
        return self._ruling


class Sums(Harness):
    """A workload with tools and several steps."""

    name, version = "sums", "1"

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        yield Instance(self.name, "one", {})

    @contextmanager
    def open(self, instance: Instance, at: Any = None) -> Iterator[Round]:
        yield Round()


def test_a_thinking_strong_model_labels_whole_instances_and_its_thoughts_reach_no_row(
    shop: Shop, provider: Callable[..., Provider]
) -> None:
    adder = Answer(None, (("math_add", '{"a": 7}'),), message={"reasoning_content": "another's secret"})
    abilities = {"novice": lambda request: Answer("no"), "hand": lambda request: adder, "master": thinker()}
    loopback = provider(abilities)
    settings = config(loopback.url, [])
    workload = {"harness": "tests.test_reasoning:Sums", "source": {}, "seeds": {"source": "collect"}}
    settings["protocol"]["workloads"] = [workload]
    assert shop.build(settings).code == 0
    assert shop.labels() == [["mid", "mid", "mid"]]
    assert "thought" not in (shop.run / "question_bank.jsonl").read_text()
    sent = [json.dumps(seen.body) for seen in loopback.requests if seen.model == "master"]
    assert any('"reasoning_content": "thought 1"' in body for body in sent)
    assert not any("secret" in body for body in sent)
    assert not any("thought" in json.dumps(seen.body) for seen in loopback.requests if seen.model != "master")


def after(step: Step) -> Prefix:
    prefix = step.prefix.respond(step.response)
    return prefix.extend([{"role": "tool", "tool_call_id": f"call_{prefix.calls}", "content": "2"}])


@pytest.mark.parametrize("missing", [MISSING, PASSED_BACK])
@pytest.mark.parametrize("family", ["openai", "openrouter", "hosted_vllm", "deepseek", "moonshot"])
def test_a_model_gets_its_own_reasoning_back_and_a_blank_for_the_steps_of_others(family: str, missing: str) -> None:
    model = Model(name="m", model=f"{family}/m", parameters={"temperature": 0})
    steps = [Step(ASKED, Response("", (CALL,), extra={"reasoning": "another's secret"}), "other")]
    with Provider({"m": thinker(missing)}) as provider, Client([model], operation(provider.url)) as client:
        for _ in range(3):
            prefix = after(steps[-1])
            reasoning = own_reasoning("m", prefix, steps)
            steps.append(Step(prefix, client.complete(model, prefix, reasoning=reasoning).response, "m"))
        assert provider.count() == 4, "it is known after the first refusal that this API wants it"
        messages = provider.requests[-1].body["messages"]
    sent = [message["reasoning_content"] for message in messages if message["role"] == "assistant"]
    assert sent == [" ", "thought 1", "thought 2"]
    assert "secret" not in json.dumps([seen.body for seen in provider.requests])
    assert all("reasoning" not in json.dumps(message) for message in after(steps[-1]).messages)


def test_an_api_that_does_not_ask_for_it_never_gets_it() -> None:
    model = Model(name="m", model="openai/m")
    step = Step(ASKED, Response("", (CALL,), extra={"reasoning": "hm"}), "m")
    prefix = after(step)
    with Provider({"m": lambda request: Answer("2")}) as provider, Client([model], operation(provider.url)) as client:
        client.complete(model, prefix, reasoning=own_reasoning("m", prefix, [step]))
        assert "reasoning_content" not in json.dumps(provider.requests[0].body)


def test_an_api_that_is_never_content_blocks_the_instance_and_is_asked_twice_at_most() -> None:
    model = Model(name="m", model="openai/m")
    step = Step(ASKED, Response("", (CALL,)), "m")
    refusal = error(400, MISSING.format(1))
    with Provider({"m": lambda request: refusal}) as provider, Client([model], operation(provider.url)) as client:
        with pytest.raises(Technical, match="reasoning_content is missing"):
            client.complete(model, after(step))
        assert provider.count() == 2


def test_reasoning_belongs_to_the_message_of_its_step_in_this_prefix() -> None:
    step = Step(ASKED, Response("", (CALL,), extra={"reasoning": "hm"}), "m")
    prefix = after(step)
    assert own_reasoning("m", prefix, [step]) == {1: Reasoning("hm")}
    assert own_reasoning("other", prefix, [step]) == {}
    assert own_reasoning("m", ASKED, [step]) == {}, "the step's message is not in it"
    elsewhere = Prefix.start([{"role": "user", "content": "else"}], [ADD]).respond(step.response)
    assert own_reasoning("m", elsewhere, [step]) == {}, "another conversation"
