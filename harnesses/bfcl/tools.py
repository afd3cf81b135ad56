"""BFCL's function documents as tool definitions with standard JSON Schema.

The same conversions as upstream makes for models with native function calling (its `convert_to_tool`, and the language
hints of its data loader), carried to every depth: there a type below the third level stays BFCL's own, and keywords
that JSON Schema does not know remain. Names keep their dots; the client maps them for a provider that rejects them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from stepdown.builder.records import Tool
from stepdown.harnesses.bfcl.data import api_documents
from stepdown.harnesses.bfcl.upstream import type_names

_HINTS = {
    "python": " Note that the provided function is in Python 3 syntax.",
    "java": " Note that the provided function is in Java 8 SDK syntax.",
    "javascript": " Note that the provided function is in JavaScript syntax.",
}
_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_KEPT = ("default", "format", "minimum", "maximum", "minItems", "maxItems")


def language_of(category: str) -> str:
    """The language whose syntax a category's functions have.

    >>> language_of("simple_javascript"), language_of("parallel")
    ('javascript', 'python')
    """
    return category.removeprefix("simple_") if category in ("simple_java", "simple_javascript") else "python"


def tools_of(documents: Iterable[Mapping[str, Any]], language: str = "python") -> tuple[Tool, ...]:
    """Function documents as tools, in their order."""
    return tuple(_tool(document, language) for document in documents)


@cache
def api_tools(api: str) -> Mapping[str, Tool]:
    """The tools of a simulated API by name, converted once per process. Shared: never change one."""
    return {tool["function"]["name"]: tool for tool in tools_of(api_documents(api))}


def _tool(document: Mapping[str, Any], language: str) -> Tool:
    properties = document["parameters"].get("properties", {})
    convert = _property if language == "python" else _literal
    return {
        "type": "function",
        "function": {
            "name": document["name"],
            "description": document["description"] + _HINTS[language],
            "parameters": _object(
                document["parameters"], {name: convert(spec, language) for name, spec in properties.items()}
            ),
        },
    }


def _object(spec: Mapping[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of an object. A required name that has no property could never be given: it is left out."""
    required = spec.get("required")
    named = [name for name in required if name in properties] if isinstance(required, list) else []
    return {"type": "object", "properties": dict(properties), **({"required": named} if named else {})}


def _property(spec: Mapping[str, Any], language: str, named: bool = True) -> dict[str, Any]:
    """The schema of one value, from a BFCL document's. An array's items are not named."""
    kind = type_names().get(str(spec.get("type")), "string")
    notes = [spec["description"]] if spec.get("description") else []
    if spec.get("type") == "float" and named:
        notes.append("This is a float type value.")
    schema: dict[str, Any] = {"type": kind}
    if kind == "object" and isinstance(spec.get("properties"), dict):
        schema = _object(spec, {name: _property(inner, language) for name, inner in spec["properties"].items()})
    if kind == "array" and isinstance(spec.get("items"), dict):
        schema["items"] = _property(spec["items"], language, named=False)
    _add_choices(schema, spec.get("enum"), notes)
    schema.update((key, spec[key]) for key in _KEPT if key in spec)
    return {**schema, **({"description": " ".join(notes)} if notes else {})}


def _add_choices(schema: dict[str, Any], choices: Any, notes: list[str]) -> None:
    """Keep an `enum` where its values are of the declared type; some documents list words for an integer."""
    if not isinstance(choices, list):
        return
    if schema["type"] == "array" and not any(isinstance(choice, list) for choice in choices):
        _add_choices(schema.setdefault("items", {"type": "string"}), choices, notes)
    elif fitting := [choice for choice in choices if type(choice) in _KINDS[schema["type"]]]:
        schema["enum"] = fitting
    else:
        notes.append(f"Enum values: {choices}.")


def _literal(spec: Mapping[str, Any], language: str) -> dict[str, Any]:
    """The schema of one Java or JavaScript value: a string that holds the value as the language writes it."""
    name, kind = {"java": "Java", "javascript": "JavaScript"}[language], spec["type"]
    if kind == "any":
        note = f" This parameter can be of any type of {name} object in string representation."
    else:
        note = f" This is {name} {kind} type parameter in string representation."
    if kind in ("Array", "ArrayList", "array") and isinstance(spec.get("items"), dict):
        note += f" The list elements are of type {spec['items']['type']}; they are not in string representation."
    if kind == "dict" and "properties" in spec:
        schema = json.dumps(spec["properties"])
        note += " The dictionary entries have the following schema; they are not in string representation. " + schema
    default = {"default": spec["default"]} if "default" in spec else {}
    return {"type": "string", "description": spec.get("description", "") + note, **default}
