"""One request through LiteLLM, read into plain records. LiteLLM is imported here, at the first request."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from builder.actions import Raw
from builder.actions.forms import plain_text
from builder.records import Usage

_GRACE = 2.0
"""Seconds that a call may take beyond its time-out, so that the library's own time-out comes first."""


class Unusable(Exception):
    """HTTP said 200, but the body is no answer: an error payload, not JSON, no choices."""


class Rejected(Exception):
    """The provider would not take the messages, nor take them as LiteLLM reworded them."""


class CutOff(Exception):
    """No whole answer within the time-out: one that trickles in never trips the library's own."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A chat completion as the provider gave it."""

    raw: Raw
    finish: str = ""
    refused: bool = False
    usage: Usage = field(default_factory=Usage)
    extra: dict[str, Any] = field(default_factory=dict)


@cache
def library() -> Any:
    """LiteLLM, silent and without retries, callbacks, telemetry or a look at the network for prices."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm  # 4 to 5 seconds and 190 MiB: only where a model is really called

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.set_verbose = False
    litellm.drop_params = False
    litellm.modify_params = False
    litellm.num_retries = 0
    litellm.callbacks = []
    litellm.success_callback = []
    litellm.failure_callback = []
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Odd answers are judged here; pydantic's remarks on their types would only fill the terminal.
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings", category=UserWarning)
    return litellm


def ask(request: Mapping[str, Any], timeout: float) -> Answer:
    """The answer to LiteLLM's `completion(**request)`, had within `timeout` seconds.

    Raises Unusable, CutOff, Rejected, or what LiteLLM raised for an HTTP error or a broken connection.
    """
    completion = library().completion
    body: list[Any] = []

    def note(details: Mapping[str, Any]) -> None:
        # Some of LiteLLM's handlers report an error that they are handling by the same road.
        if details.get("log_event_type") == "post_api_call" and sys.exc_info()[0] is None:
            body[:] = [details.get("original_response")]

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
    if failure:
        if not body:
            raise failure[0]
        return _salvaged(str(body[0]))
    if not outcome:
        raise CutOff(f"no whole answer within {timeout:g} s")
    if not body and not getattr(outcome[0], "choices", None):
        # A server whose chat template wants roles to alternate gets the messages once more with blank ones between;
        # when it rejects these too, LiteLLM returns an empty response instead of the error.
        raise Rejected("the provider rejects the order of the messages, also with blank ones between them")
    return _answer(outcome[0])


def _salvaged(body: str) -> Answer:
    """The answer in a body of status 200 that LiteLLM could not read. Raises Unusable where there is none.

    LiteLLM parses a call's arguments and gives up on an integer of thousands of digits or on deep nesting. Those are
    the model's own failure, not the transport's.
    """
    try:
        data = json.loads(body)
        choice = data["choices"][0]
        message = choice["message"]
        calls = tuple((call["function"]["name"], call["function"]["arguments"]) for call in message["tool_calls"])
    except (TypeError, KeyError, IndexError, ValueError, RecursionError):
        raise _no_answer(body) from None
    if not all(isinstance(part, str) for call in calls for part in call) or choice.get("error"):
        raise _no_answer(body)
    content = message.get("content")
    raw = Raw(content if isinstance(content, str) else "", calls)
    return Answer(raw, str(choice.get("finish_reason") or ""))


def _no_answer(body: str) -> Unusable:
    return Unusable(f"HTTP 200 with a body that is no answer: {body[:1000]}")


def _answer(response: Any) -> Answer:
    """LiteLLM's response, read field by field: any of them may be missing or of another type."""
    choices = getattr(response, "choices", None)
    if not choices:
        raise Unusable("HTTP 200 with no choices")
    choice, message = choices[0], choices[0].message
    fields = getattr(choice, "provider_specific_fields", None) or {}
    if error := fields.get("error"):
        raise Unusable(f"HTTP 200 with an error in the choice: {error}")
    refusal = getattr(message, "refusal", None)
    finish = str(choice.finish_reason or "")
    content = message.content if isinstance(message.content, str) else ""
    extra = {
        "id": getattr(response, "id", None),
        "model": getattr(response, "model", None),
        "system_fingerprint": getattr(response, "system_fingerprint", None),
        "finish_reason": fields.get("native_finish_reason") or finish,
        "reasoning": getattr(message, "reasoning_content", None),
        "refusal": refusal,
    }
    return Answer(
        raw=Raw(content, _calls(message)),
        finish=finish,
        refused=finish == "content_filter" or bool(refusal),
        usage=_usage(getattr(response, "usage", None)),
        extra={name: plain_text(value) for name, value in extra.items() if isinstance(value, str) and value},
    )


def _calls(message: Any) -> tuple[tuple[str | None, str], ...]:
    calls: list[tuple[str | None, str]] = []
    for call in message.tool_calls or ():
        function = getattr(call, "function", None)
        if function is None:  # a kind of call that nobody asked for
            calls.append((None, str(call)))
        else:
            calls.append((function.name, function.arguments or ""))
    legacy = getattr(message, "function_call", None)
    if legacy is not None and not calls:
        calls.append((legacy.name, legacy.arguments or ""))
    return tuple(calls)


def _usage(usage: Any) -> Usage:
    details = getattr(usage, "prompt_tokens_details", None)
    written = _count(usage, "cache_creation_input_tokens") or _count(details, "cache_creation_tokens")
    return Usage(
        prompt=_count(usage, "prompt_tokens"),
        cache_read=_count(details, "cached_tokens"),
        cache_write=written,
        completion=_count(usage, "completion_tokens"),
    )


def _count(holder: Any, name: str) -> int:
    value = getattr(holder, name, None)
    return max(0, value) if isinstance(value, int) else 0
