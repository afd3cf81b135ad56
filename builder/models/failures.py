"""The error table: what follows from a failed call for the trial, the model or the run.

LiteLLM's error classes differ by provider, and its messages lose what the body said. So the HTTP status and the code in
the body decide, and the body's text only where no code does: `error_body` reads it, `wording` knows what it means.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from typing import Any

from stepdown.builder.common.secrets import Secrets
from stepdown.builder.models import prompt_cache, reasoning, wording
from stepdown.builder.models.error_body import blamed, body_of, codes, own_words, said
from stepdown.builder.models.reasoning import ReasoningWanted

_EMPTY = re.compile(r"(Error code: )?\(?\d*\)?")
"""LiteLLM's message for a body whose form it does not know."""
_WRONG_CALL = re.compile(r"unexpected keyword argument|multiple values for|positional argument|not JSON serializable")
_ACTION_FIELDS = frozenset({"tools", "response_format"})
"""How a request asks for actions; a server that takes none may say so with a 5xx."""
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


_OF_A_MARK = re.compile(rf"[\w.\[\]]*\b{prompt_cache.MARK}\b")
"""How a message begins that blames a mark by its place in the request."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What follows from a failed call."""

    kind: FailureKind
    text: str
    """One short line without keys."""
    wait: float | None = None
    """Seconds that the provider asks to wait."""
    wants: ReasoningWanted | None = None
    """What the API wants of the messages that call tools, where that is why it refuses them."""
    refuses_marks: bool = False
    """Whether it refuses the marks that ask for prompts to be kept."""
    in_protocol: bool = False
    """Whether it can be mended only in the config's protocol, which is frozen for a run: another model or parameter."""


def classify(
    error: Exception, secrets: Secrets, address: str | None = None, parameters: Collection[str] = ()
) -> Failure:
    """What an exception of either road's means. `address` is where the request went, if not to the provider's own
    address; `parameters` are the request's fields beside its messages.

    Errors after a body with status 200 do not come here: whatever code the body holds, they are transient.
    """
    reply, text = _reply(error), _text(error)
    if reply is not None and _EMPTY.fullmatch(text):
        text = reply.text or text
    status = reply.status_code if reply is not None else _status(error)
    if wrong := _wrong_call(error):
        return _unsuited(f"LiteLLM does not take such a call: {secrets.line(wrong)}")
    name = type(error).__name__
    if name == "Timeout":
        return Failure(FailureKind.TRANSIENT, secrets.line(f"time-out{_place(address)}: {text}"))
    if name == "UnsupportedParamsError":
        return _unsuited(f"it does not take a parameter: {secrets.line(text)}")
    if reply is None and (broken := _cause(error, "TransportError")):
        return _unreached(broken, secrets, address)
    body = body_of(reply)
    text = _with_upstream_words(text, body)
    line = secrets.line(f"HTTP {status}: {text}" if reply is not None else text)
    names = {*parameters, *reasoning.NAMES, *wording.FEATURES, prompt_cache.MARK}
    told, words = list(codes(body)), own_words(body, text, names)
    if status == 429 and "insufficient_quota" in [*told, *words.split()]:
        return Failure(FailureKind.STOPPED, f"no credit is left: {line}")  # OpenAI's 402
    if wording.tells_no_key(words):
        return Failure(FailureKind.STOPPED, f"no key is set: {secrets.line(text)}")
    if status in (None, 200, 408, 409, 425, 429):
        return Failure(FailureKind.TRANSIENT, line, _retry_after(error))
    # A gateway may put its own 502 around the provider's 400.
    if (status in (400, 413, 422) or status >= 500) and wording.tells_overflow(told, words):
        return Failure(FailureKind.OVERFLOW, line)
    if status in (400, 403, 422, 451) and wording.tells_refusal(told, words):
        return Failure(FailureKind.REFUSED, line)
    if status >= 500:
        if cure := wording.remedy(told, words, (), _ACTION_FIELDS.intersection(parameters)):
            return _unsuited(f"{line}; {cure}")
        return Failure(FailureKind.TRANSIENT, line, _retry_after(error))
    if status in (400, 403) and wording.tells_no_credit(told, words):
        return Failure(FailureKind.STOPPED, f"no credit is left: {line}")
    if status == 401 or (status in (400, 403) and wording.tells_bad_key(told, words)):
        return Failure(FailureKind.STOPPED, f"the provider rejects the key: {line}")
    if status == 402:
        return Failure(FailureKind.STOPPED, f"no credit is left: {line}")
    if status == 403:
        return Failure(FailureKind.STOPPED, f"the key may not use it: {line}")
    if status in (400, 422) and (prompt_cache.MARK in words or any(map(_OF_A_MARK.match, said(body)))):
        return Failure(FailureKind.REJECTED, line, refuses_marks=True)
    if status in (400, 422) and (wants := reasoning.wanted(words, list(said(body)) or [text])):
        return Failure(FailureKind.REJECTED, line, wants=wants)
    if 300 <= status < 400:
        return Failure(FailureKind.STOPPED, f"its address has moved, look at its `api_base`: {line}")
    if "model_not_found" not in told and (cure := wording.remedy(told, words, set(blamed(body)), parameters)):
        return _unsuited(f"it takes no such request: {line}; {cure}")
    if status in (404, 405) and reply is not None and not wording.names_a_model(told, words):
        return _no_such_path(reply, line, secrets)
    if status in (404, 410) or wording.tells_unknown_model(told, words) or "model" in blamed(body):
        return _unsuited(f"the provider does not know it: {line}")
    return Failure(FailureKind.REJECTED, line)


def _unsuited(text: str) -> Failure:
    return Failure(FailureKind.STOPPED, text, in_protocol=True)


def _no_such_path(reply: Any, line: str, secrets: Secrets) -> Failure:
    """Nothing answers at the path of the address: a matter of `api_base`, not of the model."""
    try:
        place = f" at {shown_address(str(reply.url))}"
    except RuntimeError:  # a response that nobody asked for
        place = ""
    return Failure(FailureKind.STOPPED, secrets.line(f"no chat completions{place}, look at its `api_base`: {line}"))


def _with_upstream_words(text: str, body: Any) -> str:
    """The error's text with what the provider behind a gateway said, where that is not in it."""
    for message in said(body):
        words = " ".join(message.split())
        if words and words not in " ".join(text.split()):
            text = f"{text}: {words}"
    return text


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
    place = _place(address)
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


def _place(address: str | None) -> str:
    return f": {shown_address(address)}" if address else ""


def shown_address(address: str) -> str:
    """The address without its secret parts: user, password, query.

    >>> shown_address("http://me:pass@host:1/v1?key=k")
    'http://host:1/v1'
    """
    bare = re.split(r"[?#]", address)[0]
    scheme, slashes, rest = bare.rpartition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{host.rpartition('@')[2]}{slash}{path}"


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
