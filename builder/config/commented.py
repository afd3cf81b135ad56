"""A config as YAML whose comments are what the models that check it say of their fields."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from stepdown.builder.config.reference import schema

_WIDTH = 110
_INDENT = "  "
_SMALL = 80
"""Characters of a mapping on one line."""
_Known = Mapping[str, Any]


def commented(data: Mapping[str, Any], own: Mapping[str, str], heading: str) -> str:
    """The config as YAML. `own` has comments on keys that are a harness's, by their last name.

    Each key is explained where it stands first, by its docstring's first sentences.
    """
    whole = schema()
    lines = [*(f"# {line}".rstrip() for line in heading.strip().splitlines())]
    lines += _Writer(whole["$defs"], own).mapping(data, whole, "")
    return "\n".join(lines) + "\n"


class _Writer:
    """Writes values, and remembers what it has explained."""

    def __init__(self, definitions: _Known, own: Mapping[str, str]) -> None:
        self._definitions, self._own = definitions, own
        self._told: set[str] = set()

    def mapping(self, data: Mapping[str, Any], known: _Known, indent: str) -> Iterator[str]:
        for key, value in data.items():
            field = self._field(known, key)
            yield from self._comment(key, field, indent)
            yield from self._entry(f"{indent}{_plain(key)}:", value, self._inner(field), indent)

    def _entry(self, head: str, value: Any, known: _Known, indent: str) -> Iterator[str]:
        if isinstance(value, Mapping) and value and (known.get("properties") or not self._is_small(value)):
            yield head
            yield from self.mapping(value, known, indent + _INDENT)
        elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            yield head
            for item in value:
                yield from self._item(item, known, indent + _INDENT)
        else:
            yield f"{head} {_flow(value)}"

    def _item(self, item: Any, known: _Known, indent: str) -> Iterator[str]:
        """A member of a list: its first key stands behind the dash, below its comment."""
        dashed = False
        for line in self.mapping(item, known, indent + _INDENT):
            if dashed:
                yield line
            elif line.lstrip().startswith("#"):
                yield line.removeprefix(_INDENT)
            else:
                dashed = True
                yield f"{indent}- {line.lstrip()}"

    def _comment(self, key: str, field: _Known, indent: str) -> Iterator[str]:
        text = self._own.get(key) or str(field.get("description") or "")
        if not text or text in self._told:
            return
        self._told.add(text)
        for line in textwrap.wrap(" ".join(text.split()), _WIDTH - len(indent), break_long_words=False):
            yield f"{indent}# {line}"

    def _is_small(self, value: Mapping[str, Any]) -> bool:
        """Whether a mapping fits on a line and has nothing in it that would be explained."""
        return len(_flow(value)) <= _SMALL and not any(key in self._own for key in value)

    @staticmethod
    def _field(known: _Known, key: str) -> _Known:
        found: _Known = known.get("properties", {}).get(key, {})
        return found

    def _inner(self, field: _Known) -> _Known:
        """What is known of the keys of a field's value, or of the members of its list."""
        for one in (field, field.get("items", {}), *field.get("anyOf", ())):
            if isinstance(one, Mapping) and "$ref" in one:
                found: _Known = self._definitions[one["$ref"].rpartition("/")[2]]
                return found
        values = field.get("additionalProperties")
        return {"properties": _Any(self._inner(values))} if isinstance(values, Mapping) else {}


class _Any(dict[str, Any]):
    """Properties of a mapping whose keys are free: each is of the same kind."""

    def __init__(self, kind: _Known) -> None:
        super().__init__()
        self._kind = kind

    def get(self, key: str, default: Any = None) -> Any:
        return {"items": {}, **self._kind}


def _flow(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_plain(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _plain(value) if isinstance(value, str) else json.dumps(value)


def _plain(text: str) -> str:
    """A text without quotes where YAML takes it for the same text."""
    is_word = text.replace("_", "").replace("-", "").replace(".", "").replace("/", "").isalnum()
    is_other = text.lower() in ("true", "false", "null", "yes", "no", "on", "off", "y", "n") or text[:1].isdigit()
    return text if text and text.isascii() and is_word and not is_other and text[:1].isalpha() else json.dumps(text)
