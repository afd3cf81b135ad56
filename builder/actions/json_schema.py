"""A JSON schema in place of native tools, for models that are decoded under a grammar.

A response is one call, `{"function": NAME, "arguments": {...}}`. Words are a call too, of one more function: small
models choose well among functions and badly between calling and talking. Several calls take several steps: offered a
list, small models repeat themselves until they are cut off, and made none of the ten lists that were wanted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from stepdown.builder.actions.bounded import bounded
from stepdown.builder.actions.chat import chat, message_text
from stepdown.builder.actions.forms import (
    Parsed,
    Raw,
    Request,
    Unparsable,
    kept_as_text,
    plain_text,
    read_json,
    tool_call,
)
from stepdown.builder.actions.listing import listing
from stepdown.builder.records import Message, Prefix, Tool, ToolCall

_LONGEST_REPLY = 300
"""Characters of an answer in words: unbounded text runs on until the response is cut off."""

_GUIDE = """Functions:
{functions}
{{"name": "{reply}", "description": "Answer in words, when no other function fits or the task is done.", \
"parameters": {{"text": "string"}}}}
Answer with one line of JSON: {{"function": NAME, "arguments": {{...}}}}."""


def rendered(prefix: Prefix) -> Request:
    """The prefix as plain chat: functions in the system message, calls and results as text."""
    reply = reply_name(prefix)
    if not prefix.tools:
        return Request(chat(prefix, "", _turns(prefix, reply)))
    functions = [tool["function"] for tool in prefix.tools]
    guide = _GUIDE.format(functions=listing(functions), reply=reply)
    schema = {"name": "response", "schema": response_schema(prefix)}
    return Request(
        chat(prefix, guide, _turns(prefix, reply)),
        response_format={"type": "json_schema", "json_schema": schema},
    )


def response_schema(prefix: Prefix) -> dict[str, Any]:
    """The schema of a response: a call of one of the functions, or words."""
    calls = [_call(tool["function"]["name"], _arguments(tool)) for tool in prefix.tools]
    words = _call(reply_name(prefix), _closed(text={"type": "string", "maxLength": _LONGEST_REPLY}))
    return {"anyOf": [*calls, words]}


def parsed(prefix: Prefix, raw: Raw) -> Parsed:
    """The answer in canonical form; anything that does not follow the schema's outline is malformed.

    A list of calls is read too: the history shows one where another model made several.
    """
    if not prefix.tools or not (raw.content.strip() or raw.calls):
        return Parsed(plain_text(raw.content))
    reply = reply_name(prefix)
    words: list[str] = []
    calls: list[ToolCall] = []
    try:
        value = read_json(raw.content)
        for item in value if isinstance(value, list) and value else [value]:
            name, arguments = item["function"], item["arguments"]
            if name == reply:
                words.append(str(arguments["text"]))
            else:
                calls.append(tool_call(name, arguments))
    except (Unparsable, TypeError, KeyError):
        return kept_as_text(raw.content, raw.calls)
    return Parsed("\n".join(words), tuple(calls))


def reply_name(prefix: Prefix) -> str:
    """The name of the function that stands for words: one that no tool has."""
    names = {tool["function"]["name"] for tool in prefix.tools}
    name = "reply"
    while name in names:
        name += "_"
    return name


def _call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return _closed(function={"const": name}, arguments=arguments)


def _closed(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _arguments(tool: Tool) -> dict[str, Any]:
    parameters = tool["function"].get("parameters")
    if not isinstance(parameters, Mapping) or not parameters.get("properties"):
        return _closed()  # a function without parameters, however its definition says so
    return bounded({**parameters, "type": "object"})


def _turns(prefix: Prefix, reply: str) -> Iterable[tuple[str, str]]:
    """The conversation after its system messages, as this model would have had it."""
    called: dict[str, str] = {}
    for message in prefix.messages:
        match message["role"]:
            case "assistant":
                calls = message.get("tool_calls", ())
                called |= {call["id"]: call["function"]["name"] for call in calls}
                yield "assistant", _answer(message, reply) if prefix.tools or calls else message_text(message)
            case "tool":
                name = called.get(message.get("tool_call_id", ""), message.get("name", ""))
                yield "user", f"{name} returned: {message_text(message)}"
            case "user":
                yield "user", message_text(message)


def _answer(message: Message, reply: str) -> str:
    """An assistant's message in the form that `response_schema` asks for; several calls are a list."""
    answers = [
        f'{{"function": {json.dumps(call["function"]["name"], ensure_ascii=False)}, '
        f'"arguments": {call["function"]["arguments"]}}}'
        for call in message.get("tool_calls", ())
    ]
    if message_text(message) or not answers:
        words = {"function": reply, "arguments": {"text": message_text(message)}}
        answers.insert(0, json.dumps(words, ensure_ascii=False))
    return answers[0] if len(answers) == 1 else f"[{', '.join(answers)}]"
