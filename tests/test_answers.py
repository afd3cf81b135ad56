"""What providers answer, read by the client: thought in the text, calls as text, tokens that are not told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stepdown.builder.common import tokens
from stepdown.builder.config.pool import Model
from stepdown.builder.errors import Technical
from stepdown.builder.models import Client
from stepdown.builder.records import Response, Stop, ToolCall, Usage
from tests.provider import Ability, Answer, Fault, Provider
from tests.test_client import HELLO, ROADS, TOOLS, asked, operation, requests_of

PROMPT = tokens.of_request(HELLO.messages)
THOUGHT = [
    ("Sydney is larger.\n</think>\n\nCanberra", "Canberra", "Sydney is larger."),
    ("\n<think>\n17 + 20 = 37, plus 5.\n</think>\n\n42", "42", "17 + 20 = 37, plus 5."),
    ("<think>\nLet me see", "", "Let me see"),
    ("The tag </think> ends a thought.", "The tag </think> ends a thought.", None),
]
NO_COUNTS: tuple[Any, ...] = ("many", "", None, [1], {}, float("nan"))


def body_of(**changes: Any) -> Fault:
    """A chat completion with these fields changed, as it stands on the wire."""
    return Fault(200, {**Answer("42").body("m"), **changes})


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
@pytest.mark.parametrize(("text", "answer", "thought"), THOUGHT)
@pytest.mark.parametrize("prefix", [HELLO, TOOLS], ids=["words", "tools"])
def test_the_answer_is_what_follows_the_thought(
    text: str, answer: str, thought: str | None, prefix: Any, family: str
) -> None:
    response = asked(Answer(text), prefix, family=family)[0].response
    assert (response.content, response.malformed) == (answer, False)
    # LiteLLM takes out what is well formed at the very beginning.
    assert thought in (response.extra.get("thought"), response.extra.get("reasoning"))


@pytest.mark.parametrize("family", ROADS)
def test_a_thought_that_never_ends_has_the_end_that_it_came_with(family: str) -> None:
    response = asked(Answer("<think>\nLet me see", finish="length"), family=family)[0].response
    assert (response.content, response.stop) == ("", Stop.LENGTH)


def test_a_command_in_a_thought_is_not_run() -> None:
    text = "I could\n```mswea_math.add_command\n1\n```\nbut no.\n</think>\n\nDone."
    model = Model(name="m", model="openai/m", actions="text")
    with Provider({"m": lambda request: Answer(text)}) as provider, Client([model], operation(provider.url)) as client:
        response = client.complete(model, TOOLS).response
    assert (response.content, response.tool_calls) == ("Done.", ())


def called(*texts: str, actions: Any = "tools") -> tuple[list[Response], list[str]]:
    """The responses to these answers, and what was told a person meanwhile."""
    left = list(texts)
    ability: Ability = lambda request: Answer(left.pop(0))  # noqa: E731
    model = Model(name="m", model="openai/m", actions=actions)
    told: list[str] = []
    provider = Provider({"m": ability})
    with provider, Client([model], operation(provider.url), notify=told.append) as client:
        return [client.complete(model, TOOLS).response for _ in texts], told


def test_a_call_that_the_server_left_as_text_fails_and_one_warning_names_the_cure() -> None:
    text = '<tool_call>\n{"name": "math_add", "arguments": {"a": 1}}\n</tool_call>'
    responses, told = called(text, text[:30], "The sum is 3.", text)
    assert [response.malformed for response in responses] == [True, True, False, True]
    assert [response.content for response in responses] == [text, text[:30], "The sum is 3.", text]
    assert not any(response.tool_calls for response in responses)
    (warning,) = told
    assert warning.startswith("m at http://127.0.0.1:")
    assert "tool parser" in warning
    assert "`actions: text`" in warning


def test_models_that_get_no_native_tools_may_write_such_markers() -> None:
    (response,), told = called("<tool_call>{}</tool_call>", actions="text")
    assert not response.malformed
    assert not told


@pytest.mark.parametrize("family", ROADS)
def test_without_tools_on_offer_such_a_text_is_an_answer(family: str) -> None:
    assert not asked(Answer('<tool_call>{"name": "f", "arguments": {}}</tool_call>'), family=family)[
        0
    ].response.malformed


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
def test_a_pseudo_tool_stays_one_call_of_a_tool_that_does_not_exist(family: str) -> None:
    uses = '{"tool_uses": [{"recipient_name": "functions.math_add", "parameters": {"a": 3}}]}'
    given = Answer(None, (("math_add", '{"a": 1}'), ("multi_tool_use.parallel", uses)))
    response = asked(given, TOOLS, family=family)[0].response
    assert response.tool_calls == (ToolCall("math.add", '{"a": 1}'), ToolCall("multi_tool_use.parallel", uses))


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
@pytest.mark.parametrize("text", [None, ""])
def test_an_answer_of_no_tokens_is_technical(text: str | None, family: str) -> None:
    usage = {"prompt_tokens": 56447, "completion_tokens": 0, "total_tokens": 56447}
    with pytest.raises(Technical, match="nothing was generated") as raised:
        asked(Answer(text, usage=usage), TOOLS, family=family)
    assert requests_of(raised.value) == 3


def test_an_empty_answer_of_some_tokens_is_the_model_s_own() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
    assert asked(Answer("", usage=usage))[0].response == Response(
        usage=Usage(10, 0, 0, 1), extra={"id": "chatcmpl-loopback", "model": "m", "finish_reason": "stop"}
    )


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "malformed_tool_call"])
@pytest.mark.parametrize("family", ROADS)
def test_a_call_that_the_provider_could_not_read_is_the_model_s_own_failure(reason: str, family: str) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 0, "total_tokens": 10}
    response = asked(Answer(None, finish=reason, usage=usage), TOOLS, family=family)[0].response
    assert (response.content, response.tool_calls, response.stop) == ("", (), Stop.END)


@pytest.mark.parametrize("family", ROADS)
def test_a_refusal_of_no_tokens_is_a_refusal(family: str) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 0, "total_tokens": 10}
    assert asked(Answer(None, finish="content_filter", usage=usage), family=family)[0].response.stop is Stop.REFUSED


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
@pytest.mark.parametrize(
    "usage",
    [
        *(None, 5, "x", [1], True, {}, {"prompt_tokens": -5}, {"prompt_tokens": 0, "completion_tokens": 0}),
        *({"prompt_tokens": odd, "completion_tokens": odd} for odd in NO_COUNTS),
    ],
    ids=repr,
)
def test_tokens_that_nobody_told_are_estimated_and_marked(usage: Any, family: str) -> None:
    response = asked(body_of(usage=usage), family=family)[0].response
    assert response.usage == Usage(prompt=PROMPT, completion=1)
    assert response.usage_is_estimated
    assert Response.from_json(json.loads(json.dumps(response.to_json()))).usage_is_estimated


@pytest.mark.parametrize("family", ROADS)
def test_what_is_known_is_counted_and_the_rest_estimated(family: str) -> None:
    response = asked(body_of(usage={"total_tokens": 110}), family=family)[0].response
    assert (response.usage, response.usage_is_estimated) == (Usage(prompt=109, completion=1), True)
    response = asked(body_of(usage={"completion_tokens": 7}), family=family)[0].response
    assert (response.usage, response.usage_is_estimated) == (Usage(prompt=PROMPT, completion=7), True)


@pytest.mark.parametrize("family", ROADS)
def test_tokens_under_other_names_are_counted_and_not_marked(family: str) -> None:
    usage = {"input_tokens": 100, "output_tokens": 10}
    response = asked(body_of(usage=usage), family=family)[0].response
    assert (response.usage, response.usage_is_estimated) == (Usage(prompt=100, completion=10), False)


def test_what_a_gateway_says_that_a_call_cost_is_kept() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110, "cost": 0.00125}
    response = asked(body_of(usage=usage), family="openrouter")[0].response
    assert response.reported_usd == 0.00125
    assert asked(Answer("x"))[0].response.reported_usd is None
