"""Native tools: names that providers reject are mapped to valid ones and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from stepdown.builder.actions.forms import Parsed, Raw, Request, Unparsable, kept_as_text, plain_text, tool_call
from stepdown.builder.actions.left_as_text import holds_call
from stepdown.builder.records import Message, Prefix, Tool, ToolCall

_VALID = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_LONGEST = 64


def rendered(prefix: Prefix) -> Request:
    """The prefix with names that every provider takes, in its tools and in the history alike."""
    names = provider_names(prefix)
    ids: dict[str, str] = {}
    return Request(
        messages=[_message(message, names, ids) for message in prefix.messages],
        tools=[_tool(tool, names) for tool in prefix.tools],
    )


def parsed(prefix: Prefix, raw: Raw) -> Parsed:
    """The answer with the workload's own names. A name that no tool has is kept: the harness judges it.

    A call that the server left as text is an attempt that can not be parsed.
    """
    if not raw.calls:
        content = plain_text(raw.content)
        left_as_text = bool(prefix.tools) and holds_call(content, _offered(prefix))
        return Parsed(content, malformed=left_as_text, left_as_text=left_as_text)
    own = {given: name for name, given in provider_names(prefix).items()}
    calls: list[ToolCall] = []
    for name, arguments in raw.calls:
        try:
            # Models leave the arguments of a call that takes none empty.
            call = tool_call(name, arguments if arguments.strip() else "{}")
        except Unparsable:
            return kept_as_text(raw.content, [(own.get(name or "", name), text) for name, text in raw.calls])
        calls.append(ToolCall(own.get(call.name, call.name), call.arguments))
    return Parsed(plain_text(raw.content), tuple(calls))


def _offered(prefix: Prefix) -> set[str]:
    """The names of the tools, their own and those that the model was given."""
    names = provider_names(prefix)
    own = {str(tool["function"]["name"]) for tool in prefix.tools}
    return own | {names[name] for name in own}


def provider_names(prefix: Prefix) -> dict[str, str]:
    """A valid, unique name for every name in the prefix; a valid one stays as it is.

    Tools come first, so their names never depend on what models called before. Nor does what a prefix is rendered as
    depend on what is called later: a name that is taken by then gives way, so that providers find what they kept.
    """
    tools = [str(tool["function"]["name"]) for tool in prefix.tools]
    names = {name: name for name in tools if _VALID.fullmatch(name)}
    taken = set(names)
    for name in (*tools, *_called(prefix.messages)):
        if name not in names:
            names[name] = name if _VALID.fullmatch(name) and name not in taken else _fresh(name, taken)
            taken.add(names[name])
    return names


def _called(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for call in message.get("tool_calls", ()):
            yield str(call["function"]["name"])


def _fresh(name: str, taken: set[str]) -> str:
    base = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    base = base if _VALID.match(base) else f"_{base}"
    number, given = 1, base[:_LONGEST]
    while given in taken:
        number += 1
        tail = f"_{number}"
        given = base[: _LONGEST - len(tail)] + tail
    return given


def _tool(tool: Tool, names: dict[str, str]) -> Tool:
    return {**tool, "function": {**tool["function"], "name": names[str(tool["function"]["name"])]}}


def _message(message: Message, names: dict[str, str], ids: dict[str, str]) -> Message:
    out: Message = dict(message)
    if calls := message.get("tool_calls"):
        out["tool_calls"] = [
            {
                **call,
                "id": _call_id(call["id"], ids),
                "function": {**call["function"], "name": names[str(call["function"]["name"])]},
            }
            for call in calls
        ]
        # Some providers refuse an empty text beside calls; all of them take none.
        out["content"] = message.get("content") or None
    if "tool_call_id" in message:
        out["tool_call_id"] = _call_id(message["tool_call_id"], ids)
    if message["role"] == "tool" and "name" in message:
        out["name"] = names.get(str(message["name"]), str(message["name"]))
    return out


def _call_id(own: Any, ids: dict[str, str]) -> str:
    """An id of nine letters and digits: the only form that every provider takes (Mistral refuses any other)."""
    return ids.setdefault(str(own), f"call{len(ids) + 1:05d}")
