"""The error table, row by row, against a real server on loopback; what is sent, and how often."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.config.pool import Model
from stepdown.builder.errors import Interrupted, RunStopped, Technical
from stepdown.builder.models import Client, Completion
from stepdown.builder.records import Prefix, Sample, Stop, ToolCall, Usage
from tests.provider import FAULTS, Ability, Answer, Failing, Fault, Provider, error, logged, spawned

ADD = {
    "type": "function",
    "function": {
        "name": "math.add",
        "description": "Adds.",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    },
}
HELLO = Prefix.start([{"role": "user", "content": "hi"}])
TOOLS = Prefix.start([{"role": "user", "content": "hi"}], [ADD])
ROADS = ("openai", "custom_openai")
"""Families of the OpenAI form: one is asked directly, one by LiteLLM."""
KEY = "sk-not-a-real-key-000"  # fits no provider's shape by length


def operation(url: str, **changes: Any) -> OperationConfig:
    endpoint = {"api_base": url, "timeout": 30, **changes.pop("endpoint", {})}
    retries = {"attempts": 3, "first_wait": 0, "longest_wait": 0.2, **changes.pop("retries", {})}
    return OperationConfig.model_validate({"endpoints": {"default": endpoint}, "retries": retries, **changes})


def always(given: Answer | Fault) -> Ability:
    return lambda request: given


def asked(given: Ability | Answer | Fault, prefix: Prefix = HELLO, **changes: Any) -> tuple[Completion, Provider]:
    """The completion that a provider of one ability gives; the provider with what it saw."""
    parameters = changes.pop("parameters", {})
    family = changes.pop("family", "openai")
    model = Model(name="m", model=f"{family}/m", parameters=parameters)
    with Provider({"m": given if callable(given) else always(given)}) as provider:
        try:
            with Client([model], operation(provider.url, **changes)) as client:
                return client.complete(model, prefix), provider
        except Exception as error:
            error.add_note(str(provider.count()))
            raise


def requests_of(error: BaseException) -> int:
    return int(error.__notes__[0])


TRANSIENT = [
    "payload_200",
    "payload_200_code_401",
    "payload_200_text",
    "choice_error",
    "error_beside_choices",
    "rate_limit",
    "server_500",
    "server_502",
    "server_503",
    "overloaded_529",
    "drop",
    "cut",
    "not_json",
    "half_json",
    "empty_body",
    "json_list",
    "json_null",
    "no_choices",
    "missing_choices",
    "null_message",
]


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
@pytest.mark.parametrize("fault", TRANSIENT)
def test_the_transport_s_failures_are_retried_and_then_technical(fault: str, family: str) -> None:
    with pytest.raises(Technical) as raised:
        asked(FAULTS[fault], family=family)
    assert requests_of(raised.value) == 3, "no retry of the library's, none missing"
    assert len(raised.value.attempts) == 2
    assert "\n" not in raised.value.reason
    assert len(raised.value.reason) <= 310


@pytest.mark.parametrize("family", ROADS)
@pytest.mark.parametrize("fault", ["hang", "trickle"])
def test_a_time_out_is_technical_also_where_the_body_trickles_in(fault: str, family: str) -> None:
    with pytest.raises(Technical) as raised:
        asked(
            FAULTS[fault], endpoint={"timeout": 0.3}, retries={"attempts": 2 if fault == "hang" else 1}, family=family
        )
    assert requests_of(raised.value) == (2 if fault == "hang" else 1)


@pytest.mark.parametrize("family", ROADS)
@pytest.mark.parametrize("fault", ["payload_200", "rate_limit", "server_500", "drop", "not_json"])
def test_a_call_that_recovers_keeps_the_errors_before_it(fault: str, family: str) -> None:
    completion, provider = asked(Failing(2, FAULTS[fault], always(Answer("well"))), family=family)
    assert completion.response.content == "well"
    assert len(completion.attempts) == 2
    assert provider.count() == 3


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai", "anthropic"])
@pytest.mark.parametrize("fault", ["unauthorized", "no_credit", "forbidden", "unknown_model", "unknown_model_400"])
def test_a_wrong_key_credit_or_model_stops_the_run_at_once(
    fault: str, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_OWN_VARIABLE", KEY)
    with pytest.raises(RunStopped, match=rf"'m', {family}/m: .*MY_OWN_VARIABLE") as raised:
        asked(FAULTS[fault], family=family, endpoint={"api_key": "MY_OWN_VARIABLE"})
    assert requests_of(raised.value) == 1
    assert KEY not in str(raised.value)


@pytest.mark.parametrize("family", ROADS)
def test_an_exhausted_quota_stops_the_run_though_it_comes_as_429(family: str) -> None:
    with pytest.raises(RunStopped, match="no credit"):
        asked(FAULTS["quota_429"], family=family)


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai", "anthropic"])
@pytest.mark.parametrize("fault", [name for name in FAULTS if name.startswith("overflow")])
def test_a_prefix_that_does_not_fit_is_an_overflow(fault: str, family: str) -> None:
    completion, provider = asked(FAULTS[fault], family=family)
    assert completion.response.stop is Stop.OVERFLOW
    assert provider.count() == 1


@pytest.mark.parametrize("family", ROADS)
@pytest.mark.parametrize(
    "given",
    [
        FAULTS["policy_400"],
        FAULTS["azure_policy_400"],
        FAULTS["moderation_403"],
        Answer("par", finish="content_filter"),
        Answer(None, message={"refusal": "I will not."}),
    ],
)
def test_refusals_are_refusals_and_not_retried(given: Answer | Fault, family: str) -> None:
    completion, provider = asked(given, family=family)
    assert completion.response.stop is Stop.REFUSED
    assert provider.count() == 1


@pytest.mark.parametrize("family", ROADS)
@pytest.mark.parametrize("fault", ["bad_request", "unprocessable"])
def test_another_4xx_is_technical_without_a_retry(fault: str, family: str) -> None:
    with pytest.raises(Technical) as raised:
        asked(FAULTS[fault], family=family)
    assert requests_of(raised.value) == 1


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai", "anthropic"])
@pytest.mark.parametrize("fault", [name for name in FAULTS if name.startswith("quoted")])
def test_what_an_error_quotes_of_the_request_says_nothing_of_the_model(fault: str, family: str) -> None:
    with pytest.raises(Technical) as raised:
        asked(FAULTS[fault], family=family)
    assert requests_of(raised.value) == 1


OVERFLOWS = [
    "input length and `max_tokens` exceed context limit: 199759 + 20000 > 200000, decrease input length",
    "Input is too long for requested model.",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000",
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 9000 `inputs` tokens",
    "The prompt is too long: 9000, model maximum context length: 8192",
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    "However, the model is loaded with context length of only 4096 tokens, which is not enough.",
    "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
    "Requested token count exceeds the model's maximum context length of 131072 tokens.",
    "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
    "the input length exceeds the context length",
    "Current length is 9000 while limit is 8192",
    "The sum of input token length and max_tokens exceeds the maximum allowed length (8192)",
    "Requested tokens (2500) exceed context window of 2048",
]
REFUSALS = [
    "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again",
    "Output blocked by content filtering policy",
    "Input data may contain inappropriate content.",
    "Content policy violation",
    "This request has been flagged for potentially violating OpenAI's usage policies",
]


@pytest.mark.parametrize("family", ROADS)
@pytest.mark.parametrize(
    ("message", "stop"),
    [*((text, Stop.OVERFLOW) for text in OVERFLOWS), *((text, Stop.REFUSED) for text in REFUSALS)],
)
def test_the_words_of_many_providers_are_known(message: str, stop: Stop, family: str) -> None:
    assert asked(error(400, message), family=family)[0].response.stop is stop


@pytest.mark.parametrize("family", ROADS)
def test_messages_that_a_server_rejects_reworded_too_are_technical_without_a_retry(family: str) -> None:
    with pytest.raises(Technical, match="order of the messages") as raised:
        asked(error(400, "Conversation roles must alternate user/assistant/user"), family=family)
    assert requests_of(raised.value) == 2, "the second is LiteLLM's, with blank messages between"


@pytest.mark.parametrize("family", ROADS)
def test_an_error_between_two_kinds_keeps_its_attempts(family: str) -> None:
    with pytest.raises(Technical) as raised:
        asked(Failing(1, FAULTS["server_500"], always(FAULTS["bad_request"])), family=family)
    assert len(raised.value.attempts) == 1


@pytest.mark.parametrize("family", ROADS)
def test_an_answer_cut_off_at_max_tokens_is_taken_as_it_is(family: str) -> None:
    completion, _ = asked(Answer("abc", finish="length"), family=family)
    assert (completion.response.content, completion.response.stop) == ("abc", Stop.LENGTH)


def finished(reason: object, text: str | None = "par") -> Fault:
    """An answer with a finish reason as it stands, null too."""
    body = Answer(text).body("m")
    body["choices"][0]["finish_reason"] = reason
    return Fault(200, body)


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
@pytest.mark.parametrize(
    "given",
    [
        *(finished(reason) for reason in ("error", "ERROR", "abort", "network_error", "insufficient_system_resource")),
        *(finished(reason, None) for reason in (None, "", "who_knows", 5)),
    ],
)
def test_an_answer_that_broke_off_or_never_came_is_technical(given: Fault, family: str) -> None:
    with pytest.raises(Technical, match="finish reason") as raised:
        asked(given, family=family)
    assert requests_of(raised.value) == 3


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        *((reason, Stop.END) for reason in ("stop", "eos", "end_turn", "tool_calls", None, "", "who_knows")),
        *((reason, Stop.LENGTH) for reason in ("length", "max_tokens", "MAX_TOKENS", "max_output_tokens")),
        *((reason, Stop.REFUSED) for reason in ("content_filter", "SAFETY", "sensitive")),
    ],
)
def test_an_answer_ends_as_its_finish_reason_says_and_an_unknown_one_is_an_end(
    reason: str | None, stop: Stop, family: str
) -> None:
    completion, provider = asked(finished(reason), family=family)
    assert (completion.response.content, completion.response.stop) == ("par", stop)
    assert provider.count() == 1


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
@pytest.mark.parametrize("reason", ["stop", "end_turn", "length", "tool_calls"])
def test_an_empty_answer_with_a_real_end_is_the_model_s(reason: str, family: str) -> None:
    assert asked(finished(reason, None), family=family)[0].response.content == ""


@pytest.mark.parametrize("family", ROADS)
def test_an_empty_answer_is_the_model_s_own(family: str) -> None:
    completion, provider = asked(Answer(None), family=family)
    assert (completion.response.content, completion.response.stop, provider.count()) == ("", Stop.END, 1)


@pytest.mark.parametrize("family", ROADS)
def test_an_envelope_that_nobody_can_read_is_technical(family: str) -> None:
    with pytest.raises(Technical):
        asked(Fault(200, '{"choices": ' + "[" * 5000 + "]" * 5000 + "}"), retries={"attempts": 1}, family=family)


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "b"}], "b"),
        (["a", 5, None, {"type": "text"}, {"text": 5}], "a"),
        ([], ""),
        (5, "5"),
        ({"a": 1}, '{"a": 1}'),
    ],
)
def test_a_content_of_an_odd_type_is_read_as_text_and_paid_once(content: Any, text: str, family: str) -> None:
    completion, provider = asked(Answer(content), family=family)
    assert (completion.response.content, completion.response.stop) == (text, Stop.END)
    assert completion.response.usage == Usage(prompt=11, completion=3)
    assert provider.count() == 1


@pytest.mark.parametrize("family", ROADS)
def test_a_refusal_among_the_parts_is_one(family: str) -> None:
    parts: Any = [{"type": "refusal", "refusal": "I will not."}]
    assert asked(Answer(parts), family=family)[0].response.stop is Stop.REFUSED


NOT_TEXT: tuple[Any, ...] = (5, [], {"a": 1}, True)


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
@pytest.mark.parametrize(
    "message",
    [
        *(
            {"tool_calls": [{"id": "1", "type": "function", "function": function}]}
            for function in (
                *({"name": "math_add", "arguments": arguments} for arguments in (5, [1], [], True, 0, "5", 9**400)),
                *({"name": name, "arguments": "{}"} for name in NOT_TEXT),
                "f",
                5,
                [],
            )
        ),
        {"tool_calls": "zzz"},
        {"tool_calls": ["zzz"]},
        {"tool_calls": {"function": {"name": "math_add", "arguments": 5}}},
        {"function_call": {"name": "math_add", "arguments": 5}},
        {"function_call": 5},
    ],
    ids=repr,
)
def test_a_call_of_an_odd_type_is_malformed_and_paid_once(message: Any, family: str) -> None:
    completion, provider = asked(Answer(None, message=message), TOOLS, family=family)
    assert completion.response.malformed
    assert completion.response.content
    assert completion.response.usage == Usage(prompt=11, completion=3)
    assert provider.count() == 1


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
def test_an_answer_that_litellm_cannot_read_keeps_its_end_and_usage(family: str) -> None:
    huge = (("math_add", '{"a": ' + "9" * 5000 + "}"),)
    response = asked(Answer("so", huge, finish="content_filter"), TOOLS, family=family)[0].response
    assert (response.stop, response.usage) == (Stop.REFUSED, Usage(prompt=11, completion=3))
    response = asked(Answer("so", huge, finish="length"), TOOLS, family=family)[0].response
    assert (response.stop, response.malformed) == (Stop.LENGTH, True)
    assert response.extra["id"] == "chatcmpl-loopback"
    with pytest.raises(Technical):
        asked(Answer("so", huge, finish="error"), TOOLS, family=family)


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
@pytest.mark.parametrize(
    ("count", "booked"),
    [(7, 7), (7.0, 7), ("7", 7), (10**30, 2**40), (10**4000, 2**40), (1e300, 2**40), (1.5, 1)],
    ids=lambda value: repr(value)[:20],
)
def test_insane_numbers_of_tokens_are_bounded(count: Any, booked: int, family: str) -> None:
    details = {"cached_tokens": count}
    usage = {"prompt_tokens": count, "completion_tokens": count, "prompt_tokens_details": details}
    completion, provider = asked(Answer("x", usage=usage), family=family)
    assert completion.response.usage == Usage(booked, booked, 0, booked)
    assert provider.count() == 1


DEEP = '{"a": ' + "[" * 5000 + "]" * 5000 + "}"
MALFORMED = {
    "not JSON": "{a",
    "not an object": "[1]",
    "a bare number": "3",
    "NaN": '{"a": NaN}',
    "infinity": '{"a": Infinity}',
    "a float beyond floats": '{"a": 1e999}',
    "a huge integer": '{"a": ' + "9" * 5000 + "}",
    "deep": DEEP,
    "deep and cut": "[" * 5000,
    "a surrogate": '{"a": "\\ud800"}',
    "a surrogate key": '{"\\ud800": 1}',
    "NUL": '{"a": "\\u0000"}',
    "huge": '{"a": "' + "x" * 1_000_001 + '"}',
}


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
@pytest.mark.parametrize("arguments", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_call_that_cannot_be_parsed_is_malformed_and_kept_as_text(arguments: str, family: str) -> None:
    completion, provider = asked(Answer("so:", (("math_add", arguments),)), TOOLS, family=family)
    response = completion.response
    assert response.malformed
    assert not response.tool_calls
    assert response.content == f"so:\nmath.add({arguments})"
    assert provider.count() == 1
    assert TOOLS.respond(response).messages[-1] == {"role": "assistant", "content": response.content}


@pytest.mark.parametrize("family", ROADS)
@pytest.mark.parametrize("call", [(None, "{}"), ("", "{}"), ("f\ud800", "{}")], ids=["none", "empty", "surrogate"])
def test_a_call_without_a_usable_name_is_malformed(call: tuple[Any, str], family: str) -> None:
    completion, _ = asked(Answer(None, (call,)), TOOLS, family=family)
    assert completion.response.malformed
    json.dumps(completion.response.to_json()).encode()
    completion.response.content.encode()


@pytest.mark.parametrize("family", ROADS)
def test_a_call_of_a_kind_nobody_asked_for_is_malformed(family: str) -> None:
    custom = {"tool_calls": [{"id": "1", "type": "custom", "custom": {"name": "f", "input": "xx"}}]}
    completion, _ = asked(Answer(None, message=custom), TOOLS, family=family)
    assert completion.response.malformed


@pytest.mark.parametrize("family", ROADS)
def test_hostile_text_can_be_stored(family: str) -> None:
    completion, _ = asked(Answer("a\ud800b\0c"), family=family)
    content = completion.response.content
    assert content.encode()
    assert "\0" not in content
    assert (content[0], content[-1]) == ("a", "c")


@pytest.mark.parametrize("family", ROADS)
def test_names_with_dots_go_out_mapped_and_come_back_as_the_workload_s_own(family: str) -> None:
    prefix = TOOLS.respond(asked(Answer(None, (("math_add", '{"a":1}'),)), TOOLS, family=family)[0].response)
    prefix = prefix.extend([{"role": "tool", "tool_call_id": "call_1", "content": "1"}])
    completion, provider = asked(Answer("done", (("math_add", ' {"a" : 2}'), ("other", "{}"))), prefix, family=family)
    sent = provider.requests[0].body
    assert sent["tools"][0]["function"]["name"] == "math_add"
    call = sent["messages"][1]["tool_calls"][0]
    assert (call["function"]["name"], call["id"]) == ("math_add", sent["messages"][2]["tool_call_id"])
    assert completion.response.tool_calls == (ToolCall("math.add", '{"a": 2}'), ToolCall("other", "{}"))
    assert completion.response.content == "done"


@pytest.mark.parametrize("family", ROADS)
def test_the_old_form_of_a_call_is_read_too(family: str) -> None:
    completion, _ = asked(
        Answer(None, message={"function_call": {"name": "math_add", "arguments": '{"a":1}'}}), TOOLS, family=family
    )
    assert completion.response.tool_calls == (ToolCall("math.add", '{"a": 1}'),)


@pytest.mark.parametrize("family", ROADS)
def test_usage_and_provider_fields(family: str) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "total_tokens": 105,
        "prompt_tokens_details": {"cached_tokens": 40},
        "cache_creation_input_tokens": 7,
    }
    completion, _ = asked(Answer("x", usage=usage, message={"reasoning_content": "hm"}), family=family)
    assert completion.response.usage == Usage(100, 40, 7, 5)
    assert completion.response.extra["reasoning"] == "hm"
    assert completion.response.extra["id"] == "chatcmpl-loopback"


def test_every_draw_has_a_seed_of_its_own() -> None:
    model = Model(name="m", model="openai/m", parameters={"seed": 7})
    draws = [Sample(), Sample(number=3), Sample("seed"), Sample("confirm"), Sample("confirm", 1), Sample("control")]
    with Provider({"m": always(Answer("x"))}) as provider, Client([model], operation(provider.url)) as client:
        for draw in draws:
            client.complete(model, HELLO, draw)
        seeds = [seen.body["seed"] for seen in provider.requests]
    assert seeds[:2] == [7, 10]
    assert len(set(seeds)) == len(draws)


def test_a_parameter_that_the_provider_does_not_take_stops_the_run() -> None:
    with pytest.raises(RunStopped, match=r"'m', anthropic/m: .*logit_bias") as raised:
        asked(Answer("x"), family="anthropic", parameters={"logit_bias": {"1": 1}})
    assert requests_of(raised.value) == 0


def test_a_provider_that_litellm_does_not_know_stops_the_run() -> None:
    with pytest.raises(RunStopped, match="does not know"):
        asked(Answer("x"), family="no-such-provider")


@pytest.mark.parametrize("family", ROADS)
def test_a_key_goes_to_its_own_address_only(monkeypatch: pytest.MonkeyPatch, family: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    _, provider = asked(Answer("x"), family=family)
    assert provider.requests[0].key == "none"
    _, provider = asked(Answer("x"), endpoint={"api_key": "OPENAI_API_KEY"}, family=family)
    assert provider.requests[0].key == KEY


@pytest.mark.parametrize("family", ROADS)
def test_a_missing_key_stops_the_run(monkeypatch: pytest.MonkeyPatch, family: str) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(RunStopped, match="NO_SUCH_KEY is not set"):
        asked(Answer("x"), endpoint={"api_key": "NO_SUCH_KEY"}, family=family)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RunStopped, match="no key is set"):
        asked(Answer("x"), endpoint={"api_base": None}, family=family)


@pytest.mark.parametrize("family", ROADS)
@pytest.mark.parametrize("status", [400, 401, 500])
def test_keys_are_taken_out_of_errors(status: int, monkeypatch: pytest.MonkeyPatch, family: str) -> None:
    monkeypatch.setenv("MY_OWN_VARIABLE", KEY)
    monkeypatch.setenv("SOME_API_KEY", "another-secret")
    fault = Fault(status, {"error": {"message": f"bad\x1b[31m {KEY} and another-secret\n" + "y" * 999}})
    with pytest.raises((Technical, RunStopped)) as raised:
        asked(fault, endpoint={"api_key": "MY_OWN_VARIABLE"}, family=family)
    texts = [str(raised.value), *getattr(raised.value, "attempts", ())]
    for text in texts:
        assert "[MY_OWN_VARIABLE]" in text
        assert KEY not in text
        assert "another-secret" not in text
        assert text.isprintable()
        assert len(text) < 450


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
@pytest.mark.parametrize(
    "arguments", ['{"a": "KEY"}', '{"KEY": 1}', '{"a": KEY}', '{"a": "\\u0073k-not-a-real-key-000"}']
)
def test_keys_are_taken_out_of_answers(arguments: str, family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_OWN_VARIABLE", KEY)
    monkeypatch.setenv("SOME_API_KEY", "none")
    answer = Answer(
        f"none: {KEY}", (("math_add", arguments.replace("KEY", KEY)),), message={"reasoning_content": f"hm {KEY}"}
    )
    response = asked(answer, TOOLS, family=family, endpoint={"api_key": "MY_OWN_VARIABLE"})[0].response
    assert KEY not in json.dumps(response.to_json())
    assert response.content.startswith("none: [MY_OWN_VARIABLE]"), "a placeholder is a word like another"
    assert response.extra["reasoning"] == "hm [MY_OWN_VARIABLE]"
    for call in response.tool_calls:
        assert "[MY_OWN_VARIABLE]" in json.dumps(json.loads(call.arguments))


@pytest.mark.parametrize("family", ROADS)
@pytest.mark.parametrize("before", [980, 995, 999, 270, 290])
def test_no_part_of_a_key_stays_where_a_text_is_cut(before: int, monkeypatch: pytest.MonkeyPatch, family: str) -> None:
    monkeypatch.setenv("MY_OWN_VARIABLE", KEY)
    for fault in (Fault(200, "\x01" * before + KEY), Fault(200, "x" * before + KEY), error(500, "x" * before + KEY)):
        with pytest.raises(Technical) as raised:
            asked(fault, endpoint={"api_key": "MY_OWN_VARIABLE"}, retries={"attempts": 1}, family=family)
        assert KEY[:6] not in str(raised.value)


@pytest.mark.parametrize(
    "name",
    [
        "timeout",
        "num_retries",
        "max_retries",
        "logger_fn",
        "fallbacks",
        "context_window_fallback_dict",
        "mock_response",
        "mock_tool_calls",
        "custom_llm_provider",
        "base_url",
        "model_list",
        "models",
        "route",
        "stream",
        "cache",
        "use_litellm_proxy",
        "drop_params",
        "extra_headers",
        "api_version",
        "client",
        "retry_strategy",
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_an_order_to_the_library_never_reaches_it(name: str, nested: bool) -> None:
    parameters = {"extra_body": {name: "x"}} if nested else {name: "x"}
    model = Model.model_construct(name="m", model="openai/m", parameters=parameters, actions="tools")
    with Provider({"m": always(Answer("x"))}) as provider, Client([model], operation(provider.url)) as client:
        with pytest.raises(RunStopped, match=f"'m', openai/m: '{name}'"):
            client.complete(model, HELLO)
        assert provider.count() == 0


@pytest.mark.parametrize("family", ROADS)
def test_what_only_some_providers_know_reaches_them(family: str) -> None:
    parameters = {"top_k": 5, "min_p": 0.1, "repetition_penalty": 1.1, "stop": ["x"]}
    _, provider = asked(Answer("x"), parameters=parameters, family=family)
    body = provider.requests[0].body
    assert (body["top_k"], body["min_p"], body["repetition_penalty"]) == (5, 0.1, 1.1)


def test_a_call_that_cannot_be_made_stops_the_run() -> None:
    with Provider({"m": always(Answer("x"))}) as provider:
        model = Model.model_construct(name="m", model="openai/m", parameters={"top_p": {1, 2}}, actions="tools")
        with Client([model], operation(provider.url)) as client, pytest.raises(RunStopped, match="not JSON serial"):
            client.complete(model, HELLO)
        assert provider.count() == 0


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai", "anthropic"])
def test_a_dead_address_is_named_without_an_invented_status(family: str) -> None:
    model = Model(name="m", model=f"{family}/m")
    with Client([model], operation("http://127.0.0.1:9/v1")) as client:
        with pytest.raises(Technical) as raised:
            client.complete(model, HELLO)
        assert str(raised.value) == "m: connection refused: http://127.0.0.1:9/v1"
        assert len(raised.value.attempts) == 2


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai", "anthropic"])
@pytest.mark.parametrize(("fault", "said"), [("drop", "connection broken"), ("server_503", "HTTP 503: ")])
def test_a_status_is_told_where_one_came(fault: str, said: str, family: str) -> None:
    with pytest.raises(Technical) as raised:
        asked(FAULTS[fault], family=family, retries={"attempts": 1})
    assert str(raised.value).startswith(f"m: {said}")


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
def test_an_error_of_no_known_form_is_shown_as_it_came(family: str) -> None:
    with pytest.raises(Technical, match="field x is missing"):
        asked(Fault(400, {"problem": "field x is missing"}), family=family)


@pytest.mark.parametrize("family", ROADS)
@pytest.mark.parametrize("seconds", [3_600, 86_400])
def test_a_huge_time_out_is_a_long_one(seconds: float, family: str) -> None:
    completion, _ = asked(
        Failing(1, FAULTS["server_500"], always(Answer("x"))), endpoint={"timeout": seconds}, family=family
    )
    assert completion.response.content == "x"


def test_a_seed_that_is_no_number_is_sent_as_it_is() -> None:
    model = Model.model_construct(name="m", model="openai/m", parameters={"seed": True}, actions="tools")
    with Provider({"m": always(Answer("x"))}) as provider, Client([model], operation(provider.url)) as client:
        client.complete(model, HELLO, Sample(number=3))
        assert provider.requests[0].body["seed"] is True


def test_no_more_calls_of_a_model_at_once_than_its_endpoint_allows() -> None:
    model = Model(name="m", model="openai/m")
    with Provider({"m": always(Answer("x"))}, latency=0.05) as provider:
        with Client([model], operation(provider.url, endpoint={"concurrency": 2})) as client:
            threads = [threading.Thread(target=client.complete, args=(model, HELLO)) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert provider.count() == 8
        assert provider.most_at_once == {"m": 2}


@pytest.mark.parametrize("family", ROADS)
def test_a_provider_s_wait_holds_all_calls_of_the_model_and_is_bounded(family: str) -> None:
    start = time.monotonic()
    completion, _ = asked(
        Failing(1, FAULTS["rate_limit_wait"], always(Answer("x"))), retries={"longest_wait": 30}, family=family
    )
    assert 1.0 <= time.monotonic() - start < 5
    assert completion.response.content == "x"
    start = time.monotonic()
    asked(Failing(1, FAULTS["rate_limit_wait"], always(Answer("x"))), retries={"longest_wait": 0.1}, family=family)
    assert time.monotonic() - start < 1


@pytest.mark.parametrize("header", ["60", "Wed, 21 Oct 2099 07:28:00 GMT"])
@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai", "anthropic"])
def test_a_wait_ends_when_the_run_is_asked_to_stop(family: str, header: str) -> None:
    stop = threading.Event()
    model = Model(name="m", model=f"{family}/m")
    fault = Fault(429, {"error": {"message": "slow down"}}, {"retry-after": header})
    with Provider({"m": always(fault)}) as provider:
        with Client([model], operation(provider.url, retries={"longest_wait": 60}), stop) as client:
            threading.Timer(0.5, stop.set).start()
            start = time.monotonic()
            with pytest.raises(Interrupted):
                client.complete(model, HELLO)
            assert 0.3 < time.monotonic() - start < 3, "it waited as it was told, and stopped when told"
            with pytest.raises(Interrupted):
                client.complete(model, HELLO)
        assert provider.count() == 1


def test_close_waits_for_what_is_under_way() -> None:
    model = Model(name="m", model="openai/m")
    got: list[Completion] = []
    with Provider({"m": always(Answer("x", delay=0.4))}) as provider:
        client = Client([model], operation(provider.url))
        thread = threading.Thread(target=lambda: got.append(client.complete(model, HELLO)))
        thread.start()
        while not provider.count():
            time.sleep(0.01)
        client.close()
        thread.join(1)
        assert got
        with pytest.raises(Interrupted):
            client.complete(model, HELLO)


def test_importing_the_builder_does_not_import_the_provider_library() -> None:
    modules = ", ".join(f"stepdown.builder.{name}" for name in ("models.client", "models.local", "config.pool"))
    code = f"import sys, {modules}; print({{'litellm', 'xllamacpp'}} & set(sys.modules))"
    root = Path(__file__).parent.parent
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert out.stdout.strip() == "set()"


def test_a_provider_in_its_own_process_logs_every_request(tmp_path: Path) -> None:
    model = Model(name="m", model="openai/echo")
    log = tmp_path / "requests.jsonl"
    with spawned("tests.provider:ECHO", log) as url, Client([model], operation(url)) as client:
        assert client.complete(model, HELLO).response.content == "hi"
    assert [name for name, _ in logged(log)] == ["echo"]


def test_the_provider_tells_what_was_asked_twice() -> None:
    abilities: Mapping[str, Ability] = {"m": always(Answer("x"))}
    model = Model(name="m", model="openai/m")
    with Provider(abilities) as provider, Client([model], operation(provider.url)) as client:
        client.complete(model, HELLO)
        assert provider.repeated() == []
        client.complete(model, HELLO)
        assert len(provider.repeated()) == 1
