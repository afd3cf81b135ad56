"""Tool parameters as a schema that small models can be decoded under: what grammars know, with an end to everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LONGEST_TEXT, _LONGEST_DECLARED_TEXT = 120, 1000
_MOST_ITEMS, _MOST_DECLARED_ITEMS = 8, 64
_DEEPEST = 6
_SCALARS = ("string", "number", "boolean")


def bounded(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with the same outline. Strings and lists end, where the schema says so within reason, else soon; `$ref`
    is resolved.

    Formats, patterns, uniqueness and number ranges are left out: grammar converters reject or ignore them, and the
    harness judges the arguments anyway.

    >>> bounded({"type": "string", "pattern": "(?=a)"})
    {'type': 'string', 'maxLength': 120}
    """
    return _bounded(schema, schema, 0)


def _bounded(schema: Any, root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return _scalar()
    if "$ref" in schema:
        return _bounded(_target(root, schema["$ref"]), root, depth + 1)
    if "const" in schema:
        return {"const": schema["const"]}
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return {"enum": list(schema["enum"])}
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list) and schema[key]:
            return {"anyOf": [_bounded(part, root, depth + 1) for part in schema[key]]}
    if isinstance(schema.get("allOf"), list):
        return _bounded(_merged(schema, root), root, depth + 1)
    kind = schema.get("type")
    if isinstance(kind, list) and kind:
        return {"anyOf": [_bounded({**schema, "type": each}, root, depth + 1) for each in kind]}
    if kind is None:
        kind = "object" if "properties" in schema else "array" if "items" in schema else None
    return _typed(kind, schema, root, depth)


def _typed(kind: Any, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    match kind:
        case "string":
            longest = min(_count(schema, "maxLength", _LONGEST_TEXT), _LONGEST_DECLARED_TEXT)
            return {"type": "string", "maxLength": longest}
        case "integer" | "number" | "boolean" | "null":
            return {"type": kind}
        case "array":
            most = min(_count(schema, "maxItems", _MOST_ITEMS), _MOST_DECLARED_ITEMS)
            items = _bounded(schema.get("items", {}), root, depth + 1)
            return {
                "type": "array",
                "items": items,
                "minItems": min(_count(schema, "minItems", 0), most),
                "maxItems": most,
            }
        case "object":
            return _object(schema, root, depth)
        case _:
            return _scalar()


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return {"type": "object", "additionalProperties": _scalar()}
    given = schema.get("required")
    required = [str(name) for name in properties if name in given] if isinstance(given, list) else []
    parts = {str(name): _bounded(part, root, depth + 1) for name, part in properties.items()}
    for name in required:
        if parts[name].get("type") == "array":
            # The easiest way out for a small model is an empty list; one that may be left out need not be one.
            parts[name]["minItems"] = max(1, parts[name]["minItems"])
    return {"type": "object", "properties": parts, "required": required, "additionalProperties": False}


def _scalar() -> dict[str, Any]:
    """Where a schema says nothing that a grammar could follow."""
    return {"anyOf": [_typed(kind, {}, {}, 0) for kind in _SCALARS]}


def _count(schema: Mapping[str, Any], key: str, default: int) -> int:
    value = schema.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default


def _target(root: Mapping[str, Any], reference: Any) -> Any:
    """What a local reference (`#/$defs/name`) points to; None where it points nowhere."""
    place: Any = root
    for part in str(reference).removeprefix("#").strip("/").split("/"):
        place = place.get(part) if isinstance(place, Mapping) else None
    return place


def _merged(schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """`allOf` as one schema: properties and required names together, later keywords over earlier ones."""
    merged: dict[str, Any] = {}
    for part in [*schema["allOf"], {key: value for key, value in schema.items() if key != "allOf"}]:
        resolved = _target(root, part["$ref"]) if isinstance(part, Mapping) and "$ref" in part else part
        if not isinstance(resolved, Mapping):
            continue
        properties, required = resolved.get("properties"), resolved.get("required")
        merged |= {
            **resolved,
            "properties": merged.get("properties", {}) | (properties if isinstance(properties, dict) else {}),
            "required": merged.get("required", []) + (required if isinstance(required, list) else []),
        }
    if not merged.get("properties"):
        merged.pop("properties", None)
    return merged
