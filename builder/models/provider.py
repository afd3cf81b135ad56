"""One request through LiteLLM, read into plain records. LiteLLM is imported here, at the first request."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import sys
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from stepdown.builder.actions import Raw
from stepdown.builder.actions.forms import plain_text
from stepdown.builder.models.usage import Reported, reported

_GRACE = 2.0
"""Seconds beyond the time-out that a call may take, so that the library's own time-out comes first."""


_LONGEST_TIMEOUT = 7 * 24 * 3600.0
"""Seconds. A longer time-out would overflow the clocks of the libraries below."""
_LONGEST_INTEGER = 400
"""Digits. A longer number is no float, and Python refuses to read one of several thousand digits."""

# Finish reasons, in lower case, as providers send them in the OpenAI form. LiteLLM turns all that it does not know, and
# errors too, into `stop`. A reason that is not listed here ends an answer if there is one.
_ENDS = re.compile(
    r"stop|tool_calls?|function_call|tool_use|(model_)?length|max_(output_)?tokens|max_length|end(_turn)?|eos(_token)?"
    r"|stop_sequence|completed?|pause_turn|malformed_function_call"
)
_CUT = re.compile(r"(model_)?length|max_(output_)?tokens|max_length")
_OVERFLOWED = re.compile(r"(model_)?context_(window|length|limit)_(exceeded|reached)")
_FILTERED = re.compile(
    r"content_filter(ed)?|refusal|safety|recitation|blocklist|prohibited_content|spii|sensitive|guardrail_intervened"
    r"|error_toxic"
)
_BROKEN = re.compile(
    r"((network|server|internal)_)?error|abort(ed)?|cancell?ed|time_?out|insufficient_system_resource|overloaded"
)

_OURS = frozenset({"model", "messages", "tools", "response_format", "api_base", "api_key"})
_ORDERS = re.compile(
    r"api_version|azure_ad_token.*|base_url|client|config|custom_llm_provider|deployment_id|(additional_)?drop_params"
    r"|engine|fallbacks|functions|gigachat_.*|(extra_)?headers|logger_fn|max_retries|mock_.*|model_list|models|num_retries"
    r"|organization|original_function|route|session_id|shared_session|stream(_options)?|timeout|(\w+_)?callbacks?|_.*"
)
"""Parameters that LiteLLM reads beside those it lists, and OpenRouter's fallbacks. None is about generation."""


class WrongCall(Exception):
    """The request holds a parameter that must not reach the library: every call with it would be wrong."""


class Unusable(Exception):
    """HTTP said 200, but the body is no answer: an error payload, not JSON, no choices."""


class Rejected(Exception):
    """The provider would not take the messages, nor take them as LiteLLM reworded them."""


class CutOff(Exception):
    """There was no whole answer within the time-out. The library does not notice an answer that comes in slowly."""


@dataclass(frozen=True, slots=True)
class RawCompletion:
    """A chat completion as the provider gave it."""

    raw: Raw
    finish: str = ""
    refused: bool = False
    overflowed: bool = False
    """Whether the model's context was full before its answer was whole."""
    usage: Reported = field(default_factory=Reported)
    extra: dict[str, str] = field(default_factory=dict)


@cache
def load_library() -> Any:
    """Import LiteLLM, silent and without retries, callbacks, telemetry or a download of prices."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.pop("USE_LITELLM_PROXY", None)  # it would send every request to another address
    import litellm  # 4 to 5 seconds and 190 MiB: only where a model is really called

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.set_verbose = False
    litellm.drop_params = False
    litellm.modify_params = False
    litellm.num_retries = 0
    litellm.model_fallbacks = None
    litellm.model_alias_map = {}
    litellm.use_litellm_proxy = False
    litellm.cache = None
    litellm.callbacks = []
    litellm.success_callback = []
    litellm.failure_callback = []
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Odd answers are dealt with here; pydantic's warnings about their types would only fill the terminal.
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings", category=UserWarning)
    return litellm


def ask(request: Mapping[str, Any], timeout: float) -> RawCompletion:
    """Ask by LiteLLM's `completion(**request)`; the answer must come within `timeout` seconds.

    Raises Unusable, CutOff, Rejected, WrongCall, or what LiteLLM raised for an HTTP error or a broken connection.
    """
    completion = load_library().completion
    more = request.get("extra_body")  # added to the body as it is
    # Its `messages` are those of the request once more, with fields that LiteLLM drops.
    names = {*(request.keys() - _OURS), *(more.keys() - {"messages"} if isinstance(more, Mapping) else ())}
    if orders := sorted(name for name in names if _is_an_order(name)):
        raise WrongCall(f"{orders[0]!r} is no generation parameter but says where or how the request goes")
    timeout = min(timeout, _LONGEST_TIMEOUT)
    bodies: list[str] = []

    def note(details: Mapping[str, Any]) -> None:
        # Some of LiteLLM's handlers also report an error in this way while they handle it.
        if details.get("log_event_type") == "post_api_call" and sys.exc_info()[0] is None:
            bodies.append(str(details.get("original_response")))

    outcome: list[Any] = []
    failure: list[Exception] = []

    def run() -> None:
        try:
            outcome.append(completion(**request, timeout=timeout, num_retries=0, max_retries=0, logger_fn=note))
        except Exception as error:
            failure.append(error)

    worker = threading.Thread(target=run, name="stepdown-call", daemon=True)
    worker.start()
    worker.join(timeout + _GRACE)
    if failure and not bodies:
        raise failure[0]
    if not failure and not outcome:
        raise CutOff(f"no whole answer within {timeout:g} s")
    # The first is the body itself: some handlers report afterwards what they made of it.
    body = _chat_completion(bodies[0]) if bodies else None
    if failure:
        if body is None:
            raise Unusable(f"HTTP 200 with a body that is no answer: {bodies[0]}")
        return _answer(body, body)
    if not bodies and not getattr(outcome[0], "choices", None):
        # A server whose chat template wants roles to alternate gets the messages once more with blank ones between;
        # when it rejects these too, LiteLLM returns an empty response instead of the error.
        raise Rejected("the provider rejects the order of the messages, also with blank ones between them")
    # Calls are read from the body: LiteLLM makes real ones of a tool that models invent, `multi_tool_use.parallel`.
    # An answer without tools is LiteLLM's to read: it asks some providers for a schema by a tool of its own.
    return _answer(body if body and request.get("tools") else outcome[0], body)


def _is_an_order(name: str) -> bool:
    """Whether the parameter could lead to other models, invented answers, retries or another provider."""
    from litellm.types.utils import all_litellm_params

    return name in _OURS or name in all_litellm_params or bool(_ORDERS.fullmatch(name))


def _chat_completion(body: str) -> Mapping[str, Any] | None:
    """The body, where it is one of the OpenAI form. LiteLLM's own reading hides the finish reason, and fails on odd
    types, on an integer of thousands of digits and on deep nesting: the model's failures, not the transport's."""
    try:
        data = json.loads(body, parse_int=_integer)
        return data if isinstance(data["choices"][0]["message"], Mapping) else None
    except (TypeError, KeyError, IndexError, ValueError, RecursionError):
        return None


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < _LONGEST_INTEGER else math.inf


def _field(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _answer(response: Any, body: Mapping[str, Any] | None) -> RawCompletion:
    """The response, LiteLLM's or the body itself, read field by field: any may be missing or of another type.

    `body` is what the provider sent, where it has the OpenAI form.
    """
    choices = _field(response, "choices")
    if not choices:
        raise Unusable("HTTP 200 with no choices")
    choice, message = choices[0], _field(choices[0], "message")
    fields = _field(choice, "provider_specific_fields") or {}
    if body and (error := body.get("error")):
        raise Unusable(f"HTTP 200 with an error: {error}")
    if error := _field(fields, "error") or (body and _field(body["choices"][0], "error")):
        raise Unusable(f"HTTP 200 with an error in the choice: {error}")
    finish = str(_field(choice, "finish_reason") or "")
    sent = _field(body["choices"][0], "finish_reason") if body else _field(fields, "native_finish_reason") or finish
    reason = str(sent or "").lower()
    content, refusal = _text(_field(message, "content"))
    refusal = _field(message, "refusal") or refusal
    calls = _calls(message)
    filtered = finish == "content_filter" or bool(_FILTERED.fullmatch(reason))
    if _BROKEN.fullmatch(reason):
        raise Unusable(f"HTTP 200 with an answer that broke off: finish reason {reason!r}")
    overflowed = bool(_OVERFLOWED.fullmatch(reason))
    empty = not (overflowed or filtered or content or calls or refusal)
    if empty and not _ENDS.fullmatch(reason):
        raise Unusable(f"HTTP 200 with no answer: finish reason {reason or None!r} and no text")
    reasoning = _field(message, "reasoning_content") or _field(message, "reasoning")
    usage = reported(_field(body or response, "usage"))
    if empty and not reasoning and usage.completion == 0 and not _CUT.fullmatch(reason):
        raise Unusable("HTTP 200 with no answer: nothing was generated (0 completion tokens)")
    extra = {
        "id": _field(response, "id"),
        "model": _field(response, "model"),
        "system_fingerprint": _field(response, "system_fingerprint"),
        "finish_reason": _field(fields, "native_finish_reason") or finish,
        "reasoning": reasoning,
        "refusal": refusal,
    }
    return RawCompletion(
        raw=Raw(content, calls),
        finish="length" if finish == "length" or _CUT.fullmatch(reason) else finish,
        refused=filtered or bool(refusal),
        overflowed=overflowed,
        usage=usage,
        extra={name: plain_text(value) for name, value in extra.items() if isinstance(value, str) and value},
    )


def _text(content: Any) -> tuple[str, str]:
    """The words of a content, and its refusal: a text, or a list of parts of which other kinds are no words."""
    if content is None or isinstance(content, str):
        return content or "", ""
    if not isinstance(content, list):
        return _json(content), ""
    words, refusals = [], []
    for part in content:
        text = part if isinstance(part, str) else _field(part, "text")
        refusal = _field(part, "refusal")
        words.append(text if isinstance(text, str) else "")
        refusals.append(refusal if isinstance(refusal, str) else "")
    return "".join(words), "".join(refusals)


def _calls(message: Any) -> tuple[tuple[str | None, str], ...]:
    given = _field(message, "tool_calls") or ()
    given = list(given) if isinstance(given, (list, tuple)) else [given]
    calls = [_call(_field(call, "function"), call) for call in given]
    legacy = _field(message, "function_call")
    return tuple(calls) if calls or not legacy else (_call(legacy, legacy),)


def _call(function: Any, whole: Any) -> tuple[str | None, str]:
    """Name and argument text. A call of a kind that nobody asked for, or without a text for its name, has no name."""
    name, arguments = _field(function, "name"), _field(function, "arguments")
    if function is None or not (name is None or isinstance(name, str)):
        return None, _json(whole)
    return name, arguments if isinstance(arguments, str) else "" if arguments is None else _json(arguments)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):  # an object of LiteLLM's
        return str(value)
