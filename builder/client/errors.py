"""The error table: what a failed call says about the model, the run or the apparatus.

LiteLLM's classes differ by provider and its messages lose what the body said, so HTTP status and text decide.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from typing import Any

from builder.records import clean_text

_LONGEST = 300
_SCANNED = 2000
"""Characters of an error that are searched for telling words: a validation error may echo the whole request."""

_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|context (size|window|limit|length)"
    r"|prompt is too long|input is too long|too many (input )?tokens"
    r"|exceeds? the (maximum|configured) (number of tokens|limit|input)|input tokens exceed"
    r"|maximum input length|token count .{0,40}exceeds|longer than the (model's|maximum) ",
    re.IGNORECASE,
)
_POLICY = re.compile(
    r"content[ _]?(policy|filter|management)|responsibleaipolicy|safety system|content was (flagged|blocked)"
    r"|input was flagged|requires moderation|data_inspection_failed|usage policies",
    re.IGNORECASE,
)
_UNKNOWN_MODEL = re.compile(
    r"model[_ ]not[_ ](found|exist)|not a valid model|invalid model|unknown model|unsupported model|no such model"
    r"|model .{0,120}(does not exist|doesn't exist|not found|is not supported|not available)|LLM Provider NOT provided",
    re.IGNORECASE,
)
_NO_KEY = re.compile(r"missing (credentials|\w* ?api key)|api_key client option must be set", re.IGNORECASE)
_KEY_VARIABLE = re.compile(r"(API_?KEY|API_?TOKEN|ACCESS_?KEY|ACCESS_?TOKEN|SECRET|AUTH_?TOKEN|HF_TOKEN)[A-Z_]*$")
_SHORTEST_KEY = 4
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_PREFIX = re.compile(r"^(litellm\.\w+: |\w+(Error|Exception): |\w+Exception - )+")


class Kind(Enum):
    """What follows from a failed call."""

    TRANSIENT = auto()
    """Worth another try; technical when tries run out."""
    REJECTED = auto()
    """The provider will not take this request, however often it is asked: technical at once."""
    STOPPED = auto()
    """Every call would end so: the run stops."""
    OVERFLOW = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed call, judged. `text` is one short line without keys; `wait` the seconds that the provider asks for."""

    kind: Kind
    text: str
    wait: float | None = None


class Secrets:
    """Knows the values of key variables, and takes them out of texts."""

    def __init__(self, variables: Iterable[str]) -> None:
        self._variables = frozenset(variables)

    def line(self, text: str) -> str:
        """The text as one short line that is safe to store and show: no keys, no control characters."""
        for name, value in os.environ.items():
            known = name in self._variables or _KEY_VARIABLE.search(name.upper())
            if known and len(value.strip()) >= _SHORTEST_KEY:
                text = text.replace(value, f"[{name}]").replace(value.strip(), f"[{name}]")
        text = " ".join(_CONTROL.sub(" ", clean_text(text)).split())
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "\u2026"


def judged(error: Exception, secrets: Secrets) -> Failure:
    """What an exception of LiteLLM's means.

    One that came after a body with status 200 is not judged here: whatever code the body holds, that is transport.
    """
    status, text = _status(error), _text(error)
    scanned = text[:_SCANNED]
    line = secrets.line(f"HTTP {status}: {text}" if status else text)
    name = type(error).__name__
    if name == "Timeout":
        return Failure(Kind.TRANSIENT, secrets.line(f"time-out: {text}"))
    if name == "UnsupportedParamsError":
        return Failure(Kind.STOPPED, f"it does not take a parameter: {secrets.line(text)}")
    if status == 429 and "insufficient_quota" in scanned:
        return Failure(Kind.STOPPED, f"no credit is left: {line}")  # OpenAI's 402
    if _NO_KEY.search(scanned):
        return Failure(Kind.STOPPED, f"no key is set: {secrets.line(text)}")
    if status in (None, 200, 408, 409, 425, 429) or status >= 500:
        return Failure(Kind.TRANSIENT, line, _retry_after(error))
    if status in (400, 413, 422) and (name == "ContextWindowExceededError" or _OVERFLOW.search(scanned)):
        return Failure(Kind.OVERFLOW, line)
    if status in (400, 403, 422, 451) and (name == "ContentPolicyViolationError" or _POLICY.search(scanned)):
        return Failure(Kind.REFUSED, line)
    if status == 401:
        return Failure(Kind.STOPPED, f"the provider rejects the key: {line}")
    if status == 402:
        return Failure(Kind.STOPPED, f"no credit is left: {line}")
    if status == 403:
        return Failure(Kind.STOPPED, f"the key may not use it: {line}")
    if status == 404 or _UNKNOWN_MODEL.search(scanned):
        return Failure(Kind.STOPPED, f"the provider does not know it: {line}")
    return Failure(Kind.REJECTED, line)


def _status(error: Exception) -> int | None:
    """The HTTP status as the provider sent it: LiteLLM's own classes overwrite some, the one they wrap keeps it."""
    for holder in (error.__context__, error):
        status = getattr(holder, "status_code", None)
        if isinstance(status, int) and not isinstance(status, bool):
            return status
    return None


def _text(error: Exception) -> str:
    text = str(getattr(error, "message", "") or error)
    text = _PREFIX.sub("", text.split("Traceback (most recent call last)")[0])
    body = getattr(error, "body", None)
    code = body.get("code") if isinstance(body, Mapping) else getattr(error, "code", None)
    return f"{text} ({code})" if isinstance(code, str) and code not in text else text


def _retry_after(error: Exception) -> float | None:
    """Seconds that the provider asks to wait, by a Retry-After of seconds or a date."""
    for holder in (error, error.__context__):
        response = getattr(holder, "response", None)
        for headers in (
            getattr(holder, "litellm_response_headers", None),
            getattr(holder, "headers", None),
            getattr(response, "headers", None),
        ):
            value = _header(headers, "retry-after")
            if value is not None and (seconds := _seconds(value)) is not None:
                return seconds
    return None


def _header(headers: Any, name: str) -> str | None:
    try:
        value = headers.get(name)
    except (AttributeError, TypeError):
        return None
    return value if isinstance(value, str) else None


def _seconds(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (TypeError, ValueError):
            return None
    return max(0.0, seconds) if seconds == seconds else None
