"""OpenTelemetry spans of calls of models, under the GenAI conventions.

Spans come as OTLP's JSON, a request a line or a document, or as the objects that a console exporter prints. Messages
stand in `gen_ai.input.messages` and `gen_ai.output.messages`, in the older numbered `gen_ai.prompt.0.role`, in events
named for roles, or in OpenInference's `llm.input_messages.0.message.role`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stepdown.builder.traces.calls import ChatCall, LeftOut, seconds
from stepdown.builder.traces.documents import Record, at, opened_text
from stepdown.builder.traces.messages import chat_messages

_OPERATIONS = ("chat", "text_completion", "generate_content")
_MODELS = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name")
_CONVERSATIONS = ("gen_ai.conversation.id", "session.id")
_ERROR = (2, "ERROR", "STATUS_CODE_ERROR", "Error")
_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def is_one(value: Any) -> bool:
    """Whether a record holds spans."""
    return any(True for _ in _spans(value)) or (isinstance(value, Mapping) and "resourceSpans" in value)


def calls(record: Record) -> Iterator[ChatCall | LeftOut]:
    """The calls among the spans of a record; what of them can be no step stands in its place."""
    for span in _spans(record.value):
        attributes = _attributes(span)
        if not _is_of_a_model(attributes):
            continue
        try:
            yield _call(span, attributes)
        except LeftOut as reason:
            yield reason


def _spans(value: Any) -> Iterator[Mapping[str, Any]]:
    """All spans of a request, of a list of them, or the span that a value is."""
    if isinstance(value, list):
        for one in value:
            yield from _spans(one)
    elif isinstance(value, Mapping):
        resources = value.get("resourceSpans")
        if isinstance(resources, list):
            for resource in resources:
                for scope in at(resource, "scopeSpans") or at(resource, "instrumentationLibrarySpans") or ():
                    yield from (span for span in at(scope, "spans") or () if isinstance(span, Mapping))
        elif "attributes" in value and ("context" in value or "traceId" in value or "trace_id" in value):
            yield value


def _attributes(span: Mapping[str, Any]) -> dict[str, Any]:
    found = span.get("attributes")
    if isinstance(found, list):
        return {str(one.get("key")): _value(one.get("value")) for one in found if isinstance(one, Mapping)}
    return dict(found) if isinstance(found, Mapping) else {}


def _value(value: Any) -> Any:
    """A value as OTLP's JSON writes it."""
    if not isinstance(value, Mapping):
        return value
    if "arrayValue" in value:
        return [_value(one) for one in at(value, "arrayValue", "values") or ()]
    if "kvlistValue" in value:
        members = at(value, "kvlistValue", "values") or ()
        return {str(one.get("key")): _value(one.get("value")) for one in members if isinstance(one, Mapping)}
    if "intValue" in value:
        text = value["intValue"]
        return int(text) if isinstance(text, (int, str)) and str(text).lstrip("-").isdecimal() else text
    return next(iter(value.values()), None)


def _is_of_a_model(attributes: Mapping[str, Any]) -> bool:
    operation = attributes.get("gen_ai.operation.name")
    if operation is not None:
        return operation in _OPERATIONS
    if "openinference.span.kind" in attributes:
        return bool(attributes["openinference.span.kind"] == "LLM")
    return any(name in attributes for name in _MODELS)


def _call(span: Mapping[str, Any], attributes: Mapping[str, Any]) -> ChatCall:
    if at(span, "status", "code") in _ERROR or at(span, "status", "status_code") in _ERROR:
        raise LeftOut("calls that failed")
    messages, answers = _messages(span, attributes)
    if len(answers) > 1:
        raise LeftOut("calls with several answers")
    if not messages or not answers:
        raise LeftOut("calls whose messages were not recorded")
    named = {name: value for name, value in attributes.items() if isinstance(value, str)}
    return ChatCall(
        messages,
        answers[0],
        next((named[name] for name in _MODELS if name in named), ""),
        next((named[name] for name in _CONVERSATIONS if name in named), "") or _trace(span),
        seconds(span.get("startTimeUnixNano") or span.get("start_time")),
        {**span, "attributes": attributes},
    )


def _trace(span: Mapping[str, Any]) -> str:
    return str(span.get("traceId") or span.get("trace_id") or at(span, "context", "trace_id") or "")


def _messages(span: Mapping[str, Any], attributes: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[Any]]:
    """What was sent and what was answered, from wherever the span has it."""
    if "gen_ai.input.messages" in attributes or "gen_ai.output.messages" in attributes:
        sent = opened_text(attributes.get("gen_ai.input.messages"))
        answered = opened_text(attributes.get("gen_ai.output.messages"))
        if not isinstance(sent, list) or not isinstance(answered, list):
            raise LeftOut("calls whose messages were not recorded")
        return chat_messages(sent), chat_messages(answered)
    for prompt, completion in (
        ("gen_ai.prompt.", "gen_ai.completion."),
        ("llm.input_messages.", "llm.output_messages."),
    ):
        if any(name.startswith(prompt) for name in attributes):
            return _numbered(attributes, prompt), _numbered(attributes, completion)
    return _of_events(span)


def _numbered(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Messages of attributes that number them: `gen_ai.prompt.0.tool_calls.0.name`."""
    root: dict[str, Any] = {}
    for name, value in attributes.items():
        if name.startswith(prefix):
            place, *parts = [
                part for part in name.removeprefix(prefix).split(".") if part not in ("message", "tool_call")
            ]
            node = root.setdefault(place, {})
            for part in parts[:-1]:
                node = node.setdefault(part, {}) if isinstance(node, dict) else {}
            if parts and isinstance(node, dict):
                node[parts[-1]] = value
    return [_listed(root[place]) for place in sorted(root, key=_number)]


def _listed(message: dict[str, Any]) -> dict[str, Any]:
    calls = message.get("tool_calls")
    if isinstance(calls, dict):
        message = {**message, "tool_calls": [calls[place] for place in sorted(calls, key=_number)]}
    return message


def _number(place: str) -> int:
    return int(place) if place.isdecimal() else 0


def _of_events(span: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[Any]]:
    """Messages of the span's events, where each is one message."""
    sent: list[dict[str, Any]] = []
    answers: list[Any] = []
    for event in span.get("events") or ():
        if not isinstance(event, Mapping):
            continue
        body = {name: opened_text(value) for name, value in _attributes(event).items()}
        name = event.get("name")
        if name == "gen_ai.choice":
            answers.append(body["message"] if isinstance(body.get("message"), Mapping) else body)
        elif name in _EVENTS:
            sent.append({"role": _EVENTS[name], **body})
        elif name in ("gen_ai.content.prompt", "gen_ai.client.inference.operation.details"):
            sent += chat_messages(body.get("gen_ai.prompt", body.get("gen_ai.input.messages")))
            if "gen_ai.output.messages" in body:
                answers += chat_messages(body["gen_ai.output.messages"])
        elif name == "gen_ai.content.completion":
            answers += chat_messages(body.get("gen_ai.completion"))
    return sent, answers
