"""Text in place of native tools, for models that have neither them nor a schema: one fenced block is the action.

The action is a block that is named after its tool, whatever the workload. A tool of one parameter, a text,
takes the block as it is, so that a shell command needs no quoting; any other takes its arguments as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from stepdown.builder.actions.chat import chat, message_text
from stepdown.builder.actions.forms import Parsed, Raw, Request, Unparsable, kept_as_text, plain_text, tool_call
from stepdown.builder.actions.listing import listing
from stepdown.builder.records import Message, Prefix, Tool, ToolCall


def block_tag(tool: str) -> str:
    """What a block of this tool begins with. Models were asked with this very word, so that answers in the cache hang
    on it.
    """
    return f"mswea_{tool}_command"


_BLOCK = re.compile("^```" + block_tag(r"(\S+)") + r"[ \t]*\n(.*?)\n?^```[ \t]*$", re.DOTALL | re.MULTILINE)
_BEGUN = re.compile("^```" + block_tag(r"\S+"), re.MULTILINE)

_GUIDE = """Functions:
{functions}
To call a function, write exactly ONE block like this in your response, with your reasoning before it:

{examples}

Responses with several such blocks are rejected. What the function returns is the next message. Wherever you are told
to make a tool call, write such a block."""


def rendered(prefix: Prefix) -> Request:
    """The prefix as plain chat: functions in the system message, calls as blocks, results as the user's text."""
    direct = _direct(prefix.tools)
    guide = ""
    if prefix.tools:
        functions = [tool["function"] for tool in prefix.tools]
        examples = "\n\n".join(
            _block(function["name"], _example(function["name"], direct)) for function in functions[:2]
        )
        guide = _GUIDE.format(functions=listing(functions), examples=examples)
    return Request(chat(prefix, guide, _turns(prefix, direct)))


def parsed(prefix: Prefix, raw: Raw) -> Parsed:
    """The answer in canonical form: words without a block are words, several blocks or a bad one are malformed."""
    blocks = list(_BLOCK.finditer(raw.content))
    if not prefix.tools or not (raw.calls or _BEGUN.search(raw.content)):
        return Parsed(plain_text(raw.content))
    if raw.calls or len(blocks) != 1 or len(_BEGUN.findall(raw.content)) != 1:
        return kept_as_text(raw.content, raw.calls)
    block = blocks[0]
    name, body = block[1], block[2]
    parameter = _direct(prefix.tools).get(name)
    try:
        call = tool_call(name, {parameter: plain_text(body.strip())} if parameter else body)
    except Unparsable:
        return kept_as_text(raw.content, raw.calls)
    words = f"{raw.content[: block.start()].rstrip()}\n{raw.content[block.end() :].lstrip()}".strip()
    return Parsed(plain_text(words), (call,))


def _direct(tools: Iterable[Tool]) -> dict[str, str]:
    """The tools that take a block as it is, each with the name of its one parameter."""
    found: dict[str, str] = {}
    for tool in tools:
        parameters = tool["function"].get("parameters")
        properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
        if isinstance(properties, Mapping) and len(properties) == 1:
            ((name, schema),) = properties.items()
            if isinstance(schema, Mapping) and schema.get("type") == "string":
                found[str(tool["function"]["name"])] = str(name)
    return found


def _example(name: str, direct: Mapping[str, str]) -> str:
    return f"your {direct[name]} here" if name in direct else '{"parameter": "value"}'


def _block(name: str, body: str) -> str:
    return f"```{block_tag(name)}\n{body}\n```"


def _turns(prefix: Prefix, direct: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """The conversation after its system messages, as this model would have had it."""
    for message in prefix.messages:
        match message["role"]:
            case "assistant":
                yield "assistant", _answer(message, direct)
            case "tool" | "user":
                yield "user", message_text(message)


def _answer(message: Message, direct: Mapping[str, str]) -> str:
    parts = [message_text(message)]
    for call in message.get("tool_calls", ()):
        function: Mapping[str, Any] = call["function"]
        parts.append(_block(function["name"], _body(ToolCall(function["name"], function["arguments"]), direct)))
    return "\n\n".join(part for part in parts if part)


def _body(call: ToolCall, direct: Mapping[str, str]) -> str:
    """What was in the block: another model's call may have other arguments than the tool has."""
    if parameter := direct.get(call.name):
        arguments = json.loads(call.arguments)
        if arguments.keys() == {parameter} and isinstance(arguments[parameter], str):
            return str(arguments[parameter])
    return call.arguments
