"""Accepted Java and JavaScript values written as those languages write them, which is how a model has to give them.

Upstream accepts values already converted (a bool, a list); its documents ask for source text. This is the way back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def literal(value: Any, spec: Mapping[str, Any], language: str) -> str:
    """`value` as source text that upstream's converter reads as `value` for a parameter of the document's type.

    >>> literal([1, 2], {"type": "ArrayList", "items": {"type": "long"}}, "java")
    'new ArrayList<Object>(Arrays.asList(1L, 2L))'
    """
    if isinstance(value, str):
        return value
    kind, inner = spec["type"], spec.get("items", {}).get("type", "any")
    if language == "javascript":
        return _javascript(value, kind)
    if kind == "ArrayList":
        return f"new ArrayList<Object>(Arrays.asList({', '.join(_java_item(item, inner) for item in value)}))"
    if kind == "Array":
        return "new Object[]{" + ", ".join(_java(item, inner) for item in value) + "}"
    if kind == "HashMap":
        puts = " ".join(f'put("{key}", {_java_item(item, "any")});' for key, item in value.items())
        return "new HashMap<String, Object>() {{ " + puts + " }}"
    return _java(value, kind)


def _java(value: Any, kind: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    suffix = {"long": "L", "float": "f"}.get(kind, "")
    return f"{value}{suffix}"


def _java_item(item: Any, kind: str) -> str:
    """An item of a collection. Strings are quoted, but where upstream reads items of any type as bare text."""
    return json.dumps(item) if isinstance(item, str) else _java(item, kind)


def _javascript(value: Any, kind: str) -> str:
    return json.dumps(value) + ("n" if kind == "Bigint" else "")
