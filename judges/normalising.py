"""Brings a judge's JSON into the schema's form where it says the same in another form.

A judge that observes well is worth more than one that formats well. Only the form is changed, and nothing that is
missing is made up, with one exception: a claim that does not say whether it is crucial counts as crucial, which is the
stricter reading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from stepdown.builder.records import clean_text

_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)
_LABEL = re.compile(r"\s*(?:evidence|passage) \d{1,4}(?: \([^()]{1,80}\))?\s*[:\u2013\u2014-]\s*", re.IGNORECASE)
_SOURCE = re.compile(r"\s*[\[(](?:evidence|passage) \d{1,4}[\])]\s*\Z", re.IGNORECASE)
_MOST_ENVELOPES = 2
"""How many objects of one key around a report are taken off: `{"report": {...}}`, `{"arguments": "{...}"}`."""


def json_of(text: str) -> Any:
    """The JSON value that a text holds, alone or in one fenced block. Raises ValueError.

    A value among other words does not count: it may be repeated from the candidate's answer.
    """
    stripped = text.strip()
    fenced = _FENCED.fullmatch(stripped)
    try:
        return json.loads(fenced[1] if fenced else stripped)
    except RecursionError:
        raise ValueError("nested too deep") from None


def normalised(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value in the form that a JSON Schema without references asks for, as far as its meaning is clear."""
    return _object(_unwrapped(value, schema["properties"]), schema)


def _unwrapped(value: Any, own: Mapping[str, Any]) -> Any:
    for _ in range(_MOST_ENVELOPES):
        if isinstance(value, dict) and len(value) == 1 and own.keys().isdisjoint(value):
            (value,) = value.values()
        if isinstance(value, str):
            try:
                value = json_of(value)
            except ValueError:
                return value
    return value


def _value(value: Any, schema: Mapping[str, Any], name: str) -> Any:
    kind = schema.get("type")
    if kind == "object":
        return _object(value, schema)
    if kind == "array":
        return _array(value, schema["items"], name)
    if kind == "boolean" and isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    if kind == "integer" and isinstance(value, str) and re.fullmatch(r"[0-9]{1,4}", value.strip()):
        return int(value)
    if kind == "string" and isinstance(value, str):
        return _enum_word(value) if "enum" in schema else _text(value, schema, name)
    return value


def _object(value: Any, schema: Mapping[str, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    own, required = schema["properties"], schema.get("required", ())
    found = {name: value[name] for name in own if name in value and (value[name] is not None or name in required)}
    if "crucial" in own and found.get("crucial") is None:
        found["crucial"] = True
    return {name: _value(part, own[name], name) for name, part in found.items()}


def _array(value: Any, items: Mapping[str, Any], name: str) -> Any:
    if isinstance(value, (str, dict)):
        value = [value]
    if not isinstance(value, list):
        return value
    kept: Sequence[Any] = [_value(one, items, name) for one in value if one is not None]
    return [one for one in kept if not (isinstance(one, str) and not one.strip())]


def _enum_word(value: str) -> str:
    """A word as the schema's list of words spells it: `not` for `Not`, `off_topic` for `Off topic`."""
    word = re.sub(r"[\s_-]+", "_", value.strip().lower())
    return {"pass": "passed", "fail": "failed"}.get(word, word)


def _text(value: str, schema: Mapping[str, Any], name: str) -> str:
    """Text that can be stored. A quote loses the name of its block. Remarks may be cut, quotes never."""
    text = clean_text(value)
    if "quote" in name:
        return _SOURCE.sub("", _LABEL.sub("", text, count=1) if _LABEL.match(text) else text)
    longest = schema.get("maxLength", len(text))
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
