"""What follows from the words of an error: the candidate fails, the run stops, or one instance is blocked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stepdown.builder.errors import RunStopped, Technical
from stepdown.builder.records import Stop, Usage
from tests.provider import Answer, Fault, error
from tests.test_client import ROADS, TOOLS, asked, requests_of

OVERFLOWS: list[Any] = [
    "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
    "invalid params, context window exceeds limit (2013)",
    "Prompt exceeds max length",
    "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)",
    "Range of input length should be [1, 98304]",
    "The number of tokens to keep from the initial prompt is greater than the context length",
    "prompt too long; exceeded max context length by 4 tokens",
    "Context size has been exceeded.",
    "Total tokens of image and text exceed max message tokens",
    "Input length 9000 exceeds maximum allowed token size 4096",
    "The sum of prompt length (40961), query length (0) should not exceed max_num_tokens (8192)",
    "Prompt length (9000) exceeds maximum input length (8192)",
    "prompt tokens too long",
    "Please reduce the length of the messages or completion.",
    "Unable to submit request because the input token count is 40000 but the model only supports up to 32768.",
    "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
    "Malformed input request: expected maxLength: 200000, actual: 300000, please reformat your input and try again.",
    "Request body too large for m model. Max size: 8000 tokens.",
    "Total message token length exceed model limit",
    "Input tokens exceed model limit",
    "The number of input tokens 5000 exceeds the maximum model length 4096",
    "prompt is longer than the context length 4096",
    "The model's context length is 8192 tokens, but the request needs 9000",
    "messages too long: 5000 tokens over limit 4096",
    "Prompt \u8d85\u957f",
    "\u8f93\u5165\u957f\u5ea6\u8d85\u8fc7\u6a21\u578b\u6700\u5927\u957f\u5ea6",
]


@pytest.mark.parametrize("family", ROADS)
@pytest.mark.parametrize("message", OVERFLOWS)
def test_a_prompt_that_is_too_long_is_an_overflow_in_anybody_s_words(message: str, family: str) -> None:
    completion, provider = asked(error(400, message), family=family)
    assert (completion.response.stop, provider.count()) == (Stop.OVERFLOW, 1)
    assert message[:40] in completion.response.extra["error"]


@pytest.mark.parametrize("family", ROADS)
@pytest.mark.parametrize(
    "body",
    [
        {"error": "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)"},
        {
            "type": "error",
            "error": {"type": "bad_request_error", "message": "invalid params, context window exceeds limit"},
        },
        {"error": {"code": "1261", "message": "Prompt exceeds max length"}},
    ],
)
def test_an_overflow_is_one_in_any_form_of_body(body: dict[str, Any], family: str) -> None:
    assert asked(Fault(400, body), family=family)[0].response.stop is Stop.OVERFLOW


@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
@pytest.mark.parametrize("text", ["Let me", None])
def test_an_answer_for_which_the_context_had_no_room_is_an_overflow_and_its_tokens_count(
    text: str | None, family: str
) -> None:
    completion, provider = asked(Answer(text, finish="model_context_window_exceeded"), family=family)
    assert (completion.response.stop, provider.count()) == (Stop.OVERFLOW, 1)
    assert completion.response.usage == Usage(prompt=11, completion=3)


def behind(message: object, status: int = 400, code: int = 400) -> Fault:
    """A gateway's answer around the error of the provider behind it."""
    raw = message if isinstance(message, str) else json.dumps(message)
    inner = {"message": "Provider returned error", "code": code, "metadata": {"raw": raw, "provider_name": "X"}}
    return Fault(status, {"error": inner})


@pytest.mark.parametrize("status", [400, 500, 502])
@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
def test_an_overflow_behind_a_gateway_is_one_whatever_status_the_gateway_gives_it(status: int, family: str) -> None:
    fault = behind({"error": {"message": "invalid params, context window exceeds limit (2013)"}}, status)
    completion, provider = asked(fault, family=family)
    assert (completion.response.stop, provider.count()) == (Stop.OVERFLOW, 1)
    assert "context window exceeds limit (2013)" in completion.response.extra["error"]


@pytest.mark.parametrize("raw", ["the field x is odd", {"error": {"message": "the field x is odd"}}])
@pytest.mark.parametrize("family", ["openai", "openrouter", "custom_openai"])
def test_the_words_of_the_provider_behind_a_gateway_are_shown(raw: object, family: str) -> None:
    with pytest.raises(Technical, match="the field x is odd"):
        asked(behind(raw), family=family)
    with pytest.raises(Technical, match="the field x is odd") as raised:
        asked(behind(raw, 502), family=family)
    assert requests_of(raised.value) == 3, "the gateway's own failure is worth another try"


@pytest.mark.parametrize("family", ROADS)
@pytest.mark.parametrize(
    "message",
    [
        "Invalid value for messages[1].content: 'context window exceeds limit'",
        'Invalid content "Prompt exceeds max length"',
        "Unknown role. Got text: Your request exceeded model token limit: 5",
        "Invalid value for messages[1].content: 'temperature must be at most 2'",
        "Invalid content 'the model does not support tools'",
        "Function name exceeds maximum length of 64",
        "messages.1.content.0.temperature: Extra inputs are not permitted",
    ],
)
def test_what_an_error_repeats_of_the_request_stops_nothing(message: str, family: str) -> None:
    with pytest.raises(Technical) as raised:
        asked(error(400, message), TOOLS, parameters={"temperature": 0.5}, family=family)
    assert requests_of(raised.value) == 1


@pytest.mark.parametrize("family", ROADS)
def test_a_rate_limit_that_speaks_of_tokens_is_no_overflow(family: str) -> None:
    message = "Request too large for m on tokens per min (TPM): Limit 30000, Requested 40000."
    with pytest.raises(Technical) as raised:
        asked(error(429, message, "rate_limit_exceeded", "tokens"), family=family)
    assert requests_of(raised.value) == 3


def of_parameter(name: str, message: str, code: str | None = None) -> Fault:
    return Fault(400, {"error": {"message": message, "type": "invalid_request_error", "param": name, "code": code}})


UNSUITED = [
    (
        "max_tokens",
        of_parameter(
            "max_tokens",
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "unsupported_parameter",
        ),
    ),
    ("temperature", of_parameter("temperature", "Only the default (1) value is supported.", "unsupported_value")),
    ("temperature", error(400, "invalid temperature: only 1 is allowed for this model")),
    ("temperature", error(400, "`temperature` is deprecated for this model.")),
    ("temperature", error(400, "temperature: Extra inputs are not permitted")),
    ("max_tokens", error(400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens")),
    ("max_tokens", error(400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]")),
    ("max_tokens", error(400, "Range of max_tokens should be [1, 8192]")),
    ("max_tokens", error(400, "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for m")),
    (
        "temperature",
        Fault(
            422,
            {
                "detail": [
                    {
                        "type": "less_than_equal",
                        "loc": ["body", "temperature"],
                        "msg": "Input should be less than or equal to 2",
                        "input": 7,
                    }
                ]
            },
        ),
    ),
    ("max_tokens", behind({"error": {"message": "Unsupported parameter: 'max_tokens'"}})),
]


@pytest.mark.parametrize("family", ROADS)
@pytest.mark.parametrize(("name", "fault"), UNSUITED)
def test_a_parameter_that_the_model_never_takes_stops_the_run_and_is_named(
    name: str, fault: Fault, family: str
) -> None:
    with pytest.raises(RunStopped, match=rf"change or leave out `{name}` in its `parameters`") as raised:
        asked(fault, parameters={"max_tokens": 100_000, "temperature": 0.5}, family=family)
    assert requests_of(raised.value) == 1
    assert raised.value.in_protocol


@pytest.mark.parametrize("family", ROADS)
@pytest.mark.parametrize(
    "fault",
    [
        error(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        error(400, "registry.ollama.ai/library/m:latest does not support tools"),
        error(404, "No endpoints found that support tool use. To learn more about provider routing, visit the docs"),
        error(400, "Function calling is not enabled for this model"),
        error(400, "`tools` is not supported with this model"),
        error(500, "tools param requires --jinja flag"),
    ],
)
def test_a_model_that_takes_no_tools_stops_the_run_and_says_what_to_write(fault: Fault, family: str) -> None:
    with pytest.raises(RunStopped, match="`actions: json_schema` or `actions: text`") as raised:
        asked(fault, TOOLS, family=family)
    assert requests_of(raised.value) == 1


@pytest.mark.parametrize("family", ROADS)
@pytest.mark.parametrize(
    "message",
    [
        "Invalid value for messages[1]: tool_calls must be followed by tool messages",
        "max_tokens (100) and the prompt must not be more than is left",
        "When `thinking` is enabled, a final `assistant` message must start with a thinking block",
    ],
)
def test_an_error_that_may_be_about_this_prefix_blocks_only_it(message: str, family: str) -> None:
    with pytest.raises(Technical) as raised:
        asked(error(400, message), TOOLS, parameters={"max_tokens": 100}, family=family)
    assert requests_of(raised.value) == 1


@pytest.mark.parametrize("family", ROADS)
@pytest.mark.parametrize(
    "fault",
    [
        Fault(404, {"detail": "Not Found"}),
        Fault(404, "404 page not found"),
        Fault(404, "<html><body>Not Found</body></html>", {"content-type": "text/html"}),
        Fault(405, {"detail": "Method Not Allowed"}),
        error(404, "Invalid URL (POST /v1/chat/completions)"),
    ],
)
def test_a_wrong_path_is_told_apart_from_an_unknown_model(fault: Fault, family: str) -> None:
    with pytest.raises(RunStopped, match=r"no chat completions at http://127.0.0.1:\d+/v1/chat/completions") as raised:
        asked(fault, family=family)
    assert "api_base" in str(raised.value)
    assert not raised.value.in_protocol, "an address may be changed at a resume"
    assert requests_of(raised.value) == 1


@pytest.mark.parametrize("family", ROADS)
@pytest.mark.parametrize(
    "fault",
    [error(404, "The model `m` does not exist", "model_not_found"), error(404, "model 'm' not found, try pulling it")],
)
def test_an_unknown_model_is_a_matter_of_the_protocol(fault: Fault, family: str) -> None:
    with pytest.raises(RunStopped, match="the provider does not know it") as raised:
        asked(fault, family=family)
    assert raised.value.in_protocol


@pytest.mark.parametrize(
    ("status", "message", "words"),
    [
        (400, "Your credit balance is too low to access the API. Please go to Plans & Billing", "no credit is left"),
        (400, "Access denied, please make sure your account is in good standing.", "no credit is left"),
        (403, "Insufficient account balance", "no credit is left"),
        (400, "API key not valid. Please pass a valid API key.", "the provider rejects the key"),
        (400, "Incorrect API key provided: sk-***", "the provider rejects the key"),
        (400, "The model `m` has been decommissioned and is no longer supported", "the provider does not know it"),
        (410, "The model m has been decommissioned and is no longer supported", "the provider does not know it"),
        (400, "Model m has been deprecated and is no longer available", "the provider does not know it"),
        (400, "This model is only supported in v1/responses and not in v1/chat/completions.", "does not know it"),
        (400, "parameter.enable_thinking must be set to false for non-streaming calls", "only as a stream"),
        (400, "`tool calling` is not supported with this model", "`actions: json_schema`"),
        (400, "Unsupported parameter: 'stop' is not supported with this model.", "change or leave out `stop`"),
    ],
)
def test_what_every_call_would_meet_stops_the_run_whatever_its_status(status: int, message: str, words: str) -> None:
    with pytest.raises(RunStopped, match=words) as raised:
        asked(error(status, message), TOOLS, parameters={"stop": ["x"]})
    assert requests_of(raised.value) == 1


def test_a_parameter_named_as_the_model_is_an_unknown_model() -> None:
    with pytest.raises(RunStopped, match="the provider does not know it"):
        asked(of_parameter("model", "The parameter `model` specified in the request is not valid", "InvalidParameter"))


@pytest.mark.parametrize(
    "message",
    [
        "Invalid value for messages[1].content: 'your credit balance is too low'",
        "Invalid content 'API key not valid'",
        "Unknown role. Got text: the model has been decommissioned",
    ],
)
def test_what_an_error_repeats_of_keys_and_credit_stops_nothing(message: str) -> None:
    with pytest.raises(Technical):
        asked(error(400, message))
