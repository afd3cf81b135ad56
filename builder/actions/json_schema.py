"""A JSON schema in place of native tools, for models that are decoded under a grammar."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from builder.actions.forms import Parsed, Raw, Request, Unparsable, kept_as_text, plain_text, read_json, tool_call
from builder.records import Message, Prefix, Tool

_LONGEST_TEXT = 120
"""Characters of one string argument: an unbounded string runs on until the answer is cut off."""
_LONGEST_MESSAGE = 400
_MOST_ITEMS = 8
_MOST_CALLS = 8
_DEEPEST = 5

_GUIDE = "placeholder {functions}"  # replaced below


def rendered(prefix: Prefix) -> Request:
    """The prefix as plain chat: functions in the system message, calls and results as text."""
    if not prefix.tools:
        return Request(_plain(prefix, ""))
    guide = _GUIDE.format(functions="\n".join(_listed(tool) for tool in prefix.tools))
    schema = answer_schema(prefix)
    return Request(
        _plain(prefix, guide),
        response_format={"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}},
    )


def answer_schema(prefix: Prefix) -> dict[str, Any]:
    calls = [
        {
            "type": "object",
            "properties": {
                "name": {"const": tool["function"]["name"]},
                "arguments": _bounded(tool["function"].get("parameters") or {"type": "object"}),
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for tool in prefix.tools
    ]
    return {
        "anyOf": [
            {
                "type": "object",
                "properties": {
                    "calls": {"type": "array", "items": {"anyOf": calls}, "minItems": 1, "maxItems": _MOST_CALLS}
                },
                "required": ["calls"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"message": {"type": "string", "maxLength": _LONGEST_MESSAGE}},
                "required": ["message"],
                "additionalProperties": False,
            },
        ]
    }


def parsed(prefix: Prefix, raw: Raw) -> Parsed:
    if not prefix.tools:
        return Parsed(plain_text(raw.content))
    try:
        value = read_json(raw.content)
        if isinstance(value, dict) and value.keys() == {"message"} and isinstance(value["message"], str):
            return Parsed(value["message"])
        calls = value["calls"]
        return Parsed("", tuple(tool_call(call["name"], call["arguments"]) for call in calls))
    except (Unparsable, TypeError, KeyError):
        return kept_as_text(raw.content, raw.calls)


def _listed(tool: Tool) -> str:
    function = tool["function"]
    return json.dumps(
        {
            "name": function["name"],
            "description": function.get("description", ""),
            "parameters": function.get("parameters", {}),
        },
        ensure_ascii=False,
    )


def _bounded(schema: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    if "enum" in schema:
        return {"enum": list(schema["enum"])}
    kind = schema.get("type")
    if kind == "string":
        return {"type": "string", "maxLength": _LONGEST_TEXT}
    if kind in ("integer", "number", "boolean", "null"):
        return {"type": kind}
    if kind == "array":
        return {"type": "array", "items": _bounded(schema.get("items") or {}, depth + 1), "maxItems": _MOST_ITEMS}
    if kind == "object" and schema.get("properties"):
        return {
            "type": "object",
            "properties": {name: _bounded(part, depth + 1) for name, part in schema["properties"].items()},
            "required": list(schema.get("required", [])),
            "additionalProperties": False,
        }
    if kind == "object":
        return {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
    return {"type": ["string", "number", "boolean"]}


def _plain(prefix: Prefix, guide: str) -> list[Message]:
    out: list[Message] = []
    system = [guide] if guide else []
    for message in prefix.messages:
        role, text = message["role"], message.get("content") or ""
        if role == "system":
            system.append(text)
            continue
        if role == "tool":
            role, text = "user", f"Result: {text}"
        elif role == "assistant" and prefix.tools:
            calls = message.get("tool_calls")
            text = json.dumps(
                {
                    "calls": [
                        {"name": c["function"]["name"], "arguments": json.loads(c["function"]["arguments"])}
                        for c in calls
                    ]
                }
                if calls
                else {"message": text},
                ensure_ascii=False,
            )
        if out and out[-1]["role"] == role:
            out[-1] = {"role": role, "content": out[-1]["content"] + "\n" + text}
        else:
            out.append({"role": role, "content": text})
    return ([{"role": "system", "content": "\n\n".join(reversed(system))}] if system else []) + out
