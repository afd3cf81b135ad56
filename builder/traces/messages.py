"""Messages of other libraries in the form of the chat API: LangChain's, and those of OpenTelemetry's conventions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stepdown.builder.traces.calls import LeftOut
from stepdown.builder.traces.documents import opened_text

_LANGCHAIN = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "developer": "system",
}
_CLASSES = {
    f"{name}Message{chunk}": role
    for name, role in (("Human", "user"), ("AI", "assistant"), ("System", "system"), ("Tool", "tool"))
    for chunk in ("", "Chunk")
}


def chat_messages(value: Any) -> list[dict[str, Any]]:
    """A list of messages in any form that is known. Raises LeftOut."""
    value = opened_text(value)
    if isinstance(value, Mapping):
        value = value.get("messages", [value])
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if not isinstance(value, list):
        raise LeftOut("calls whose messages were not recorded")
    if value and isinstance(value[0], list):  # a batch of one
        if len(value) > 1:
            raise LeftOut("calls of several conversations at once")
        value = value[0]
    return [part for message in value for part in chat_message(message)]


def chat_message(message: Any) -> Iterator[dict[str, Any]]:
    """A message in the chat API's form: several for one that holds the answers of several tools. Raises LeftOut."""
    message = opened_text(message)
    if isinstance(message, str):
        yield {"role": "user", "content": message}
    elif not isinstance(message, Mapping):
        raise LeftOut("calls whose messages can not be read")
    elif isinstance(message.get("parts"), list):
        yield from _of_parts(message)
    elif isinstance(fields := message.get("kwargs") or message.get("data"), Mapping):
        yield _of_langchain(fields, message)
    elif "role" not in message and message.get("type") in _LANGCHAIN:
        yield _of_langchain(message, message)
    else:
        yield dict(message)


def _of_langchain(fields: Mapping[str, Any], around: Mapping[str, Any]) -> dict[str, Any]:
    """A message as LangChain writes it: serialised as a constructor, as type and data, or flat."""
    names = around.get("id")
    name = str(names[-1]) if isinstance(names, list) and names else ""
    kind = fields.get("type") if fields.get("type") in _LANGCHAIN else around.get("type")
    role = _CLASSES.get(name) or _LANGCHAIN.get(str(kind)) or str(fields.get("role") or "user")
    made: dict[str, Any] = {"role": role, "content": fields.get("content")}
    beside = fields.get("additional_kwargs")
    calls = fields.get("tool_calls") or (beside.get("tool_calls") if isinstance(beside, Mapping) else None)
    if role == "assistant" and calls:
        made["tool_calls"] = calls
    if role == "tool":
        made["tool_call_id"] = fields.get("tool_call_id")
    return made


def _of_parts(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A message of OpenTelemetry's conventions: a role, and parts that say their type."""
    role = str(message.get("role") or "user")
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    for part in message["parts"]:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "text":
            texts.append(str(part.get("content") or part.get("text") or ""))
        elif kind in ("reasoning", "thinking"):
            thoughts.append(str(part.get("content") or ""))
        elif kind == "tool_call":
            calls.append({"id": part.get("id"), "name": part.get("name"), "arguments": part.get("arguments")})
        elif kind == "tool_call_response":
            result = part.get("response", part.get("result"))
            answers.append({"role": "tool", "tool_call_id": part.get("id"), "content": result})
        elif role == "assistant":
            raise LeftOut("calls whose answer holds more than words and calls of tools")
        else:
            texts.append(str(part))
    yield from answers
    if answers and not texts and not calls:
        return
    made: dict[str, Any] = {"role": role, "content": "".join(texts)}
    if calls:
        made["tool_calls"] = calls
    if thoughts:
        made["reasoning_content"] = "".join(thoughts)
    yield made
