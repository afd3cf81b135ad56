"""What a judge meant to report, where its JSON says the same in another form than the schema asks for.

A judge that can see is worth more than one that can format. Only the form is mended and nothing that is missing is made
up, but that a claim of which the judge does not say whether it is crucial is taken to be: the stricter reading.
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
_DEEPEST = 2
"""Envelopes around a report: `{"report": {...}}`, `{"arguments": "{...}"}`."""


def json_of(text: str) -> Any:
    """The JSON value that a text is, alone or in one fenced block. Raises ValueError.

    Never one that stands among other words: those may be the candidate's, repeated.
    """
    stripped = text.strip()
    fenced = _FENCED.fullmatch(stripped)
    try:
        return json.loads(fenced[1] if fenced else stripped)
    except RecursionError:
        raise ValueError("nested too deep") from None


def meant(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value in the form that a JSON Schema without references asks for, as far as it has that meaning."""
    return _object(_unwrapped(value, schema["properties"]), schema)


def _unwrapped(value: Any, own: Mapping[str, Any]) -> Any:
    for _ in range(_DEEPEST):
        if isinstance(value, dict) and len(value) == 1 and own.keys().isdisjoint(value):
            (value,) = value.values()
        if isinstance(value, str):
            try:
                value = json_of(value)
            except ValueError:
                return value
    return value


def _as(value: Any, schema: Mapping[str, Any], name: str) -> Any:
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
        return _word(value) if "enum" in schema else _text(value, schema, name)
    return value


def _object(value: Any, schema: Mapping[str, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    own, required = schema["properties"], schema.get("required", ())
    found = {name: value[name] for name in own if name in value and (value[name] is not None or name in required)}
    if "crucial" in own and found.get("crucial") is None:
        found["crucial"] = True
    return {name: _as(part, own[name], name) for name, part in found.items()}


def _array(value: Any, items: Mapping[str, Any], name: str) -> Any:
    if isinstance(value, (str, dict)):
        value = [value]
    if not isinstance(value, list):
        return value
    kept: Sequence[Any] = [_as(one, items, name) for one in value if one is not None]
    return [one for one in kept if not (isinstance(one, str) and not one.strip())]


def _word(value: str) -> str:
    """A word of a list of words: `Not` for `not`, `Off topic` for `off_topic`."""
    word = re.sub(r"[\s_-]+", "_", value.strip().lower())
    return {"pass": "passed", "fail": "failed"}.get(word, word)


def _text(value: str, schema: Mapping[str, Any], name: str) -> str:
    """Text that can be stored. Quotes lose the block's name beside them; remarks may be cut, quotes never."""
    text = clean_text(value)
    if "quote" in name:
        return _SOURCE.sub("", _LABEL.sub("", text, count=1) if _LABEL.match(text) else text)
    longest = schema.get("maxLength", len(text))
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
