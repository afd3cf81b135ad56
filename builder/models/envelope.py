"""A chat completion as a provider sent it, read field by field: any field may be missing or of another type."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stepdown.builder.actions import Raw
from stepdown.builder.actions.forms import plain_text
from stepdown.builder.models.errors import Unusable
from stepdown.builder.models.reasoning import sealed
from stepdown.builder.models.usage import Reported, reported
from stepdown.builder.records import REASONING, SEALED_REASONING

_LONGEST_INTEGER = 400
"""Digits. A longer number is no float, and Python refuses to read one of several thousand digits."""

# Finish reasons, in lower case, as providers send them in the OpenAI form. LiteLLM turns all that it does not know, and
# errors too, into `stop`. A reason that is not listed here ends an answer if there is one.
_ENDS = re.compile(
    r"stop|tool_calls?|function_call|tool_use|(model_)?length|max_(output_)?tokens|max_length|end(_turn)?|eos(_token)?"
    r"|stop_sequence|completed?|pause_turn|malformed_(function|tool)_call|unexpected_tool_call|too_many_tool_calls"
)
_OWN_FAULT = re.compile(r"malformed_(function|tool)_call|unexpected_tool_call|too_many_tool_calls")
"""How Gemini says that it threw away what the model wrote, which it then does not count."""
_CUT = re.compile(r"(model_)?length|max_(output_)?tokens|max_length")
_OVERFLOWED = re.compile(r"(model_)?context_(window|length|limit)_(exceeded|reached)")
_FILTERED = re.compile(
    r"content_filter(ed)?|refusal|safety|recitation|blocklist|prohibited_content|spii|sensitive|guardrail_intervened"
    r"|error_toxic"
)
_BROKEN = re.compile(
    r"((network|server|internal)_)?error|abort(ed)?|cancell?ed|time_?out|insufficient_system_resource|overloaded"
)


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


def chat_completion(body: str) -> Mapping[str, Any] | None:
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


def read_answer(response: Any, body: Mapping[str, Any] | None) -> RawCompletion:
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
    own_fault = _CUT.fullmatch(reason) or _OWN_FAULT.fullmatch(reason)
    if empty and not reasoning and usage.completion == 0 and not own_fault:
        raise Unusable("HTTP 200 with no answer: nothing was generated (0 completion tokens)")
    extra = {
        "id": _field(response, "id"),
        "model": _field(response, "model"),
        "system_fingerprint": _field(response, "system_fingerprint"),
        "finish_reason": _field(fields, "native_finish_reason") or finish,
        REASONING: reasoning,
        SEALED_REASONING: sealed(message),
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
