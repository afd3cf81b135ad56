"""Chat logs: a line for each call, with what was sent and what came back, as proxies and gateways write them.

The request stands in `request` (or `request_body`, `body`), the answer in `response` (or `response_body`), each as JSON
or as its text, alone or in a `body`; or `messages` and `response` stand beside each other. A streamed answer is read
from its events or its chunks. `stepdown route serve --log` writes such lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from stepdown.builder.models.collecting import Collected
from stepdown.builder.traces.calls import ChatCall, LeftOut, seconds
from stepdown.builder.traces.documents import Record, at, opened_text

_REQUESTS, _RESPONSES = ("request", "request_body", "body", "input"), ("response", "response_body", "output")
_TIMES = ("at", "timestamp", "ts", "time", "start_time", "startTime", "created_at", "created")
_TRACES = ("trace_id", "session_id", "conversation_id", "thread_id")
_FAILED = 400


def is_one(value: Any) -> bool:
    """Whether a record is a call of a chat log."""
    if not isinstance(value, Mapping) or _first(value, _RESPONSES) is None:
        return False
    sent = _sent(value)
    return sent is not None and ("messages" in sent or "model" in sent)


def calls(record: Record) -> Iterator[ChatCall]:
    """The call of a line. Raises LeftOut."""
    line = record.value
    sent = _sent(line) if isinstance(line, Mapping) else None
    if sent is None:
        raise LeftOut("records that are no call of a chat API")
    messages = sent.get("messages")
    if not isinstance(messages, list) or not all(isinstance(one, Mapping) for one in messages):
        raise LeftOut("calls of another API than chat completions")
    if sent.get("n") not in (None, 1):
        raise LeftOut("calls with several answers")
    yield ChatCall(
        messages,
        _answer(line),
        _model(line, sent),
        _text(_first(line, _TRACES)) or _text(at(line, "metadata", "trace_id")),
        seconds(_first(line, _TIMES)),
        line,
    )


def _sent(line: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What was sent: the body of a request."""
    for name in _REQUESTS:
        found = opened_text(line.get(name))
        if isinstance(found, Mapping):
            body = opened_text(found.get("body", found.get("json")))
            return body if isinstance(body, Mapping) else found
    return line if isinstance(line.get("messages"), list) else None


def _answer(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """The assistant's message that came back. Raises LeftOut."""
    found = opened_text(_first(line, _RESPONSES))
    told = (line.get("status"), line.get("status_code"), at(found, "status_code"))
    has_failed = any(isinstance(code, int) and code >= _FAILED for code in told)
    body = opened_text(found.get("body", found)) if isinstance(found, Mapping) else found
    if has_failed or line.get("error") or (isinstance(body, Mapping) and body.get("error")):
        raise LeftOut("calls that failed")
    if line.get("ended") is False:
        raise LeftOut("calls whose answer was broken off")
    if isinstance(body, Mapping):
        return _whole(body)
    collected = Collected()
    for chunk in _chunks(body):
        collected.chunk(chunk)
    return collected.message


def _whole(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message of an answer that was not streamed. Raises LeftOut."""
    choices = body.get("choices")
    if isinstance(choices, list) and len(choices) > 1:
        raise LeftOut("calls with several answers")
    message = at(body, "choices", 0, "message")
    if isinstance(message, Mapping):
        return message
    if body.get("role") == "assistant":
        return body
    raise LeftOut("calls without an answer")


def _chunks(body: Any) -> Iterator[Any]:
    """The chunks of a streamed answer: a list, or the text of its events."""
    if isinstance(body, list):
        yield from body
    elif isinstance(body, str):
        for event in body.splitlines():
            if event.startswith("data:") and event[5:].strip() != "[DONE]":
                try:
                    yield json.loads(event[5:])
                except (ValueError, RecursionError):
                    raise LeftOut("calls whose answer was broken off") from None


def _model(line: Mapping[str, Any], sent: Mapping[str, Any]) -> str:
    """The model that answered: the name that a router gives it, before the one that was asked for."""
    return _text(line.get("model")) or _text(sent.get("model"))


def _first(line: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((line[name] for name in names if line.get(name) is not None), None)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
