"""Answers in Anthropic's Messages form, through LiteLLM: why they ended, and what they took, as they were sent."""

from __future__ import annotations

from typing import Any

import pytest

from stepdown.builder.common import tokens
from stepdown.builder.config.pool import Model
from stepdown.builder.models import Client, Completion
from stepdown.builder.records import Prefix, Response, Stop, ToolCall, Usage
from tests.provider import Fault, Provider
from tests.test_client import HELLO, TOOLS, operation

MODEL = Model(name="m", model="anthropic/m", parameters={"max_tokens": 100})
HELLO_PART = {"type": "text", "text": "hello"}
CALL_PART = {"type": "tool_use", "id": "t", "name": "math_add", "input": {"a": 1}}


def answered(prefix: Prefix = TOOLS, **changes: Any) -> Response:
    """The response to an answer with these fields changed; None takes one out."""
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [HELLO_PART],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 11, "output_tokens": 3},
        **changes,
    }
    given = Fault(200, {name: value for name, value in body.items() if value is not None})
    with Provider({"m": lambda request: given}) as provider, Client([MODEL], operation(provider.url)) as client:
        completion: Completion = client.complete(MODEL, prefix)
        assert provider.count() == 1
    return completion.response


@pytest.mark.parametrize("prefix", [HELLO, TOOLS], ids=["words", "tools"])
def test_words_and_tokens_are_read(prefix: Prefix) -> None:
    response = answered(prefix)
    assert (response.content, response.usage, response.usage_is_estimated) == ("hello", Usage(11, 0, 0, 3), False)


@pytest.mark.parametrize("prefix", [HELLO, TOOLS], ids=["words", "tools"])
def test_a_gateway_of_this_form_that_tells_no_usage_is_estimated_and_marked(prefix: Prefix) -> None:
    response = answered(prefix, usage=None)
    assert response.content == "hello"
    assert response.usage == Usage(tokens.of_request(prefix.messages, response_tools(prefix)), 0, 0, 2)
    assert response.usage_is_estimated


def response_tools(prefix: Prefix) -> list[Any]:
    """The tools with the names that they are sent under."""
    return [{**tool, "function": {**tool["function"], "name": "math_add"}} for tool in prefix.tools]


def test_a_context_that_was_full_is_an_overflow() -> None:
    assert answered(stop_reason="model_context_window_exceeded").stop is Stop.OVERFLOW


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("end_turn", Stop.END), ("stop_sequence", Stop.END), ("max_tokens", Stop.LENGTH), ("refusal", Stop.REFUSED)],
)
def test_an_answer_ends_as_the_provider_says(reason: str, stop: Stop) -> None:
    assert answered(stop_reason=reason).stop is stop


def test_calls_are_read_beside_words_and_what_is_cached_counts() -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5, "output_tokens": 3}
    response = answered(content=[HELLO_PART, CALL_PART], stop_reason="tool_use", usage=usage)
    assert (response.content, response.tool_calls) == ("hello", (ToolCall("math.add", '{"a": 1}'),))
    assert response.usage == Usage(105, 90, 5, 3)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "tool_use", "name": None, "input": {}},
        {"type": "tool_use", "name": "math_add", "input": "[1"},
        {"type": "tool_use", "name": 7, "input": 7},
    ],
)
def test_a_call_that_is_none_fails(part: dict[str, Any]) -> None:
    assert answered(content=[part], stop_reason="tool_use", usage=None).malformed
