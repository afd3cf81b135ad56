"""The error table: what follows from a failed call for the trial, the model or the run.

LiteLLM's error classes differ by provider, and its messages lose what the body said. So the HTTP status and the code in
the body decide, and the body's text only where no code does.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from typing import Any

from stepdown.builder.records import clean_text

_LONGEST = 300
_SCANNED = 2000
"""Characters of an error that are searched for telling words: a validation error may echo the whole request."""

_OVERFLOW_CODE = re.compile(
    r"context_length_exceeded|exceed_context_size(_error)?|context_window_exceeded|model_context_window_exceeded"
    r"|request_too_large|prompt_too_long|input_too_long",
    re.IGNORECASE,
)
_POLICY_CODE = re.compile(
    r"content_policy(_violation)?|content_filter(ed)?|responsibleaipolicyviolation|data_?inspection_?failed"
    r"|moderation_blocked",
    re.IGNORECASE,
)
# What providers say where no code tells. These are whole statements, never single words: an error of another kind may
# repeat the request's own words.
_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size"
    r"|maximum (context|input|prompt) length (is|of) \d|\d maximum context length|context length of only \d"
    r"|(prompt|input) is too long( *:? *\d|\.|$| for (the|requested) (model|context))|too many (input )?tokens *[:.(]"
    r"|exceeds? (the |this |its )?(model'?s? )?(maximum |available |configured |allowed )*"
    r"(context (size|window|limit|length)\b|limit of \d|((number of )?(input )?tokens|length)\b)"
    r"|longer than the (model's|maximum) (maximum )?(context|model|input) length"
    r"|tokens\W+\+\W+(\w+\W+)?must be <=|current length is \d+ while limit is|input tokens, limit is \d",
    re.IGNORECASE,
)
_POLICY = re.compile(
    r"content[ _]policy[ _]violation|triggering .{0,30}content management policy|by content filter(ing)?\b"
    r"|result of (our|the) safety system|(content|input|prompt|request|it) was (flagged|blocked) (for|as|by)\b"
    r"|requires moderation|violat\w+ (of )?(our|the|\w+'s) (usage|content) polic(y|ies)|data may contain inappropriate",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?<!\w)'.*?((?<!\\)'(?!\w)|\Z)|(?<![\w\\])\".*?((?<!\\)\"|\Z)|`.*?(`|\Z)", re.DOTALL)
_ECHO = re.compile(
    r"\b(messages|contents|input|content|text|(?<!invalid )prompt)\b(\[|\.\d|['\"]?\]? *[:=] *(?!\d)).*",
    re.DOTALL | re.IGNORECASE,
)
"""Where an error begins to speak of one message or to repeat a field. No provider reports a whole prompt's size so."""
_WRAPPED = ("metadata", "raw")
"""The fields in which a gateway (OpenRouter) puts the provider's own body, as text."""
_EMPTY = re.compile(r"(Error code: )?\(?\d*\)?")
"""LiteLLM's message for a body whose form it does not know."""
_SAID = ("message", "msg", "detail", "error", "title", "reason", "errors", *_WRAPPED)
_CODES = ("code", "type", "error_type", "innererror", "error", *_WRAPPED)
_WRONG_CALL = re.compile(r"unexpected keyword argument|multiple values for|positional argument|not JSON serializable")
_UNKNOWN_MODEL = re.compile(
    r"model[_ ]not[_ ](found|exist)|not a valid model|invalid model|unknown model|unsupported model|no such model"
    r"|model .{0,120}(does not exist|doesn't exist|not found|is not supported|not available)|LLM Provider NOT provided",
    re.IGNORECASE,
)
_NO_KEY = re.compile(r"missing (credentials|\w* ?api key)|api_key client option must be set", re.IGNORECASE)
_KEY_VARIABLE = re.compile(r"(API_?KEY|API_?TOKEN|ACCESS_?KEY|ACCESS_?TOKEN|SECRET|AUTH_?TOKEN|HF_TOKEN)[A-Z_]*$")
_SHORTEST_KEY = 4
_SHORTEST_REAL_KEY = 12
_DEEPEST = 6
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_PREFIX = re.compile(r"^(litellm\.\w+: |\w+(Error|Exception): |\w+Exception - )+")


class FailureKind(Enum):
    """What follows from a failed call."""

    TRANSIENT = auto()
    """Worth another try; technical when tries run out."""
    REJECTED = auto()
    """The provider will not take this request, however often it is asked: technical at once."""
    STOPPED = auto()
    """Every call would fail in this way: the run stops."""
    OVERFLOW = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class Failure:
    """What follows from a failed call."""

    kind: FailureKind
    text: str
    """One short line without keys."""
    wait: float | None = None
    """Seconds that the provider asks to wait."""


class Secrets:
    """Takes the values of key variables out of texts."""

    def __init__(self, variables: Iterable[str]) -> None:
        self._variables = frozenset(variables)

    def line(self, text: str) -> str:
        """The text as one short line that is safe to store and show: no keys, no control characters."""
        text = " ".join(_CONTROL.sub(" ", clean_text(self._without(text, _SHORTEST_KEY))).split())
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "\u2026"

    def removed(self, text: str) -> str:
        """A model's text without keys. Short values are placeholders such as `none`, and a model's own words."""
        return self._without(text, _SHORTEST_REAL_KEY)

    def _without(self, text: str, shortest: int) -> str:
        for name, value in os.environ.items():
            value = value.strip()
            if len(value) >= shortest and (name in self._variables or _KEY_VARIABLE.search(name.upper())):
                for form in {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}:
                    text = text.replace(form, f"[{name}]")
        return text


def classify(error: Exception, secrets: Secrets, address: str | None = None) -> Failure:
    """What an exception of LiteLLM's means. `address` is where the request went, if not to the provider's own address.

    Errors after a body with status 200 do not come here: whatever code the body holds, they are transient.
    """
    reply, text = _reply(error), _text(error)
    if reply is not None and _EMPTY.fullmatch(text):
        text = reply.text or text
    status = reply.status_code if reply is not None else _status(error)
    line = secrets.line(f"HTTP {status}: {text}" if reply is not None else text)
    name = type(error).__name__
    if wrong := _wrong_call(error):
        return Failure(FailureKind.STOPPED, f"LiteLLM does not take such a call: {secrets.line(wrong)}")
    if name == "Timeout":
        return Failure(FailureKind.TRANSIENT, secrets.line(f"time-out: {text}"))
    if name == "UnsupportedParamsError":
        return Failure(FailureKind.STOPPED, f"it does not take a parameter: {secrets.line(text)}")
    if reply is None and (broken := _cause(error, "TransportError")):
        return _unreached(broken, secrets, address)
    body = _body(reply)
    codes, scanned = list(_codes(body)), _own_words(body, text)
    if status == 429 and "insufficient_quota" in [*codes, *scanned.split()]:
        return Failure(FailureKind.STOPPED, f"no credit is left: {line}")  # OpenAI's 402
    if _NO_KEY.search(scanned):
        return Failure(FailureKind.STOPPED, f"no key is set: {secrets.line(text)}")
    if status in (None, 200, 408, 409, 425, 429) or status >= 500:
        return Failure(FailureKind.TRANSIENT, line, _retry_after(error))
    if status in (400, 413, 422) and _tells(codes, scanned, _OVERFLOW_CODE, _OVERFLOW):
        return Failure(FailureKind.OVERFLOW, line)
    if status in (400, 403, 422, 451) and _tells(codes, scanned, _POLICY_CODE, _POLICY):
        return Failure(FailureKind.REFUSED, line)
    if status == 401:
        return Failure(FailureKind.STOPPED, f"the provider rejects the key: {line}")
    if status == 402:
        return Failure(FailureKind.STOPPED, f"no credit is left: {line}")
    if status == 403:
        return Failure(FailureKind.STOPPED, f"the key may not use it: {line}")
    if status == 404 or "model_not_found" in codes or _UNKNOWN_MODEL.search(scanned):
        return Failure(FailureKind.STOPPED, f"the provider does not know it: {line}")
    return Failure(FailureKind.REJECTED, line)


def _tells(codes: Iterable[str], words: str, code: re.Pattern[str], phrase: re.Pattern[str]) -> bool:
    return any(code.fullmatch(each) for each in codes) or bool(phrase.search(words))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised from, outermost first."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _cause(error: Exception, kind: str) -> BaseException | None:
    """The outermost error in the chain that is of a class, or of a subclass, of this name."""
    return next((each for each in _chain(error) if any(cls.__name__ == kind for cls in type(each).__mro__)), None)


def _reply(error: Exception) -> Any:
    """The HTTP response; None where there was none, since LiteLLM's exceptions may have a status that nobody sent."""
    return getattr(_cause(error, "HTTPStatusError"), "response", None)


def _status(error: Exception) -> int | None:
    for holder in (error.__context__, error):
        status = getattr(holder, "status_code", None)
        if isinstance(status, int) and not isinstance(status, bool):
            return status
    return None


def _wrong_call(error: Exception) -> str:
    """What is wrong with our call of the library; empty where the error has another cause."""
    if type(error) in (TypeError, ValueError):  # those from behind its front door are wrapped
        return str(error)
    cause = next((each for each in _chain(error) if type(each) is TypeError and _WRONG_CALL.search(str(each))), None)
    return str(cause or "")


def _unreached(error: BaseException, secrets: Secrets, address: str | None) -> Failure:
    """A connection that could not be made, or broke."""
    place = f": {_shown(address)}" if address else ""
    reason = str(error) or type(error).__name__
    if _named(error, "UnsupportedProtocol"):
        return Failure(FailureKind.STOPPED, secrets.line(f"no address that can be called{place}: {reason}"))
    if _named(error, "ConnectError"):
        refused = "refused" in reason.lower()
        text = f"connection refused{place}" if refused else f"connection failed{place} ({reason})"
    else:
        text = f"connection broken{place} ({reason})"
    return Failure(FailureKind.TRANSIENT, secrets.line(text))


def _named(error: BaseException, kind: str) -> bool:
    return any(cls.__name__ == kind for cls in type(error).__mro__)


def _shown(address: str) -> str:
    """The address without its secret parts: user, password, query.

    >>> _shown("http://me:pass@host:1/v1?key=k")
    'http://host:1/v1'
    """
    bare = re.split(r"[?#]", address)[0]
    scheme, slashes, rest = bare.rpartition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{host.rpartition('@')[2]}{slash}{path}"


def _body(reply: Any) -> Any:
    """The JSON of an error's body; None where it is none."""
    try:
        return _unwrapped(reply.text) if reply is not None else None
    except RuntimeError:  # a body that nobody read
        return None


def _unwrapped(text: str) -> Any:
    """The JSON of a text; None where it holds no object or list."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) else None


def _codes(body: Any, depth: int = 0) -> Iterator[str]:
    """The codes and types that an error's body names, its inner errors' too."""
    body = _unwrapped(body) if isinstance(body, str) else body
    if not isinstance(body, Mapping) or depth > _DEEPEST:
        return
    for key in _CODES:
        value = body.get(key)
        if isinstance(value, str):
            yield value
        yield from _codes(value, depth + 1)


def _said(body: Any, depth: int = 0) -> Iterator[str]:
    """The messages of an error's body, its inner errors' too."""
    body = _unwrapped(body) or body if isinstance(body, str) else body
    if isinstance(body, str):
        yield body
    elif isinstance(body, list) and depth <= _DEEPEST:
        for item in body:
            yield from _said(item, depth + 1)
    elif isinstance(body, Mapping) and depth <= _DEEPEST:
        for key in _SAID:
            yield from _said(body.get(key), depth + 1)


def _own_words(body: Any, text: str) -> str:
    """The provider's own words: its messages without what they quote or repeat of the request."""
    said = list(_said(body)) or [text]
    return "\n".join(_ECHO.sub("", _QUOTED.sub("", each[:_SCANNED])) for each in said)


def _text(error: Exception) -> str:
    text = str(getattr(error, "message", "") or error)
    text = _PREFIX.sub("", text.split("Traceback (most recent call last)")[0])
    body = getattr(error, "body", None)
    code = body.get("code") if isinstance(body, Mapping) else getattr(error, "code", None)
    return f"{text} ({code})" if isinstance(code, str) and code not in text else text


def _retry_after(error: Exception) -> float | None:
    """How many seconds the provider asks to wait, by a Retry-After that holds seconds or a date."""
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
        except (TypeError, ValueError, OverflowError):
            return None
    return max(0.0, seconds) if seconds == seconds else None
