"""The functions of a prefix as text for a model that gets no native tools: whole where they are few, else short."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_LONGEST = 4000
"""Characters of the whole definitions, about a thousand tokens: half of a small model's context."""
_LONGEST_DESCRIPTION = 100
_SHARED = 40
"""Characters that two descriptions must share at their start for it to be a preamble, not a coincidence."""


def listing(functions: Sequence[Mapping[str, Any]]) -> str:
    """A line per function: its JSON definition, or where these would be too long all together, its signature.

    >>> listing([{"name": "f", "description": "Does."}])
    '{"name": "f", "description": "Does."}'
    """
    whole = "\n".join(_whole(function) for function in functions)
    if len(whole) <= _LONGEST:
        return whole
    descriptions = [str(function.get("description", "")) for function in functions]
    return "\n".join(
        f"{signature(function)}: {_short(description, descriptions)}"
        for function, description in zip(functions, descriptions, strict=True)
    )


def signature(function: Mapping[str, Any]) -> str:
    """The function as one would declare it; `?` marks what may be left out.

    >>> signature({"name": "f", "parameters": {"properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}})
    'f(a: integer, b?: any)'
    """
    parameters = function.get("parameters")
    parameters = parameters if isinstance(parameters, Mapping) else {}
    properties, required = parameters.get("properties"), parameters.get("required")
    parts = [
        f"{name}{'' if isinstance(required, list) and name in required else '?'}: {_type(schema)}"
        for name, schema in (properties.items() if isinstance(properties, Mapping) else ())
    ]
    return f"{function['name']}({', '.join(parts)})"


def _whole(function: Mapping[str, Any]) -> str:
    shown = {key: function[key] for key in ("name", "description", "parameters") if key in function}
    return json.dumps(shown, ensure_ascii=False)


def _type(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    if isinstance(schema.get("enum"), list):
        return "|".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        return f"{_type(schema.get('items'))}[]"
    return kind if isinstance(kind, str) else "any"


def _short(description: str, all_descriptions: Sequence[str]) -> str:
    """The description without a preamble that it shares with another function's, cut at a word."""
    shared = max((_common(description, other) for other in all_descriptions if other != description), default=0)
    # The preamble ends with its last whole sentence, or the label before the function's own words.
    preamble = max(description.rfind(end, 0, shared) + len(end) for end in (". ", ": "))
    text = " ".join((description[preamble:] if preamble >= _SHARED else description).split())
    if len(text) <= _LONGEST_DESCRIPTION:
        return text
    return text[:_LONGEST_DESCRIPTION].rsplit(" ", 1)[0]


def _common(one: str, other: str) -> int:
    """How many characters the two begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))
