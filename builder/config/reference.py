"""What a config file may hold, told by the models that check it: a JSON schema for editors, a page for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from stepdown.builder.config.loading import Config

Schema = Mapping[str, Any]

INTRODUCTION = """# Every key of a config

This page is made by `stepdown schema --reference` from the models that check a config; edit those, then renew it with
`make reference`.

A config is a YAML file. Unknown keys are refused, with file, line and field. For completion and checks in an editor
that has a YAML language server, write the schema beside your config (`stepdown schema > stepdown.schema.json`) and
begin the config with the line

    # yaml-language-server: $schema=stepdown.schema.json

In the headings, `[]` stands for each member of a list and `NAME` for a key that you choose. What a harness takes under
`source` and `options` is its own: [workloads.md](workloads.md) says it, or names the page that does.
"""


def schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a config file as people write it: a pool may also be the path of a file."""
    made = Config.model_json_schema()
    pool = made["$defs"]["ProtocolConfig"]["properties"]["pool"]
    pool["anyOf"] = [{"type": "string"}, {"$ref": pool.pop("$ref")}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": "A stepdown config"}


def reference() -> str:
    """Every key of a config as a Markdown page."""
    made = schema()
    sections = _sections(made)
    pages = [_section(section, sections) for section in sections.values()]
    return "\n".join([INTRODUCTION, *pages])


@dataclass
class _Section:
    """A mapping that may stand in a config."""

    schema: Schema
    places: list[str] = field(default_factory=list)
    """Where it stands, the heading first."""

    @property
    def heading(self) -> str:
        return f"`{self.places[0]}`" if self.places[0] else "The file"


def _sections(made: Schema) -> dict[str, _Section]:
    """Every mapping by its name in the schema, each part of the file after the one that holds it."""
    found = {"": _Section(made, [""])}
    _collect(made, "", made["$defs"], found)
    return found


def _collect(holder: Schema, place: str, known: Mapping[str, Schema], found: dict[str, _Section]) -> None:
    for key, value in holder["properties"].items():
        for name, suffix in _named(value):
            inner = f"{place}.{key}{suffix}".lstrip(".")
            first = name not in found
            found.setdefault(name, _Section(known[name])).places.append(inner)
            if first:
                _collect(known[name], inner, known, found)


def _named(value: Schema, suffix: str = "") -> Iterator[tuple[str, str]]:
    """The mappings that a value is made of, and how their place is written after the key."""
    if "$ref" in value:
        yield value["$ref"].rpartition("/")[2], suffix
    for one in value.get("anyOf", ()):
        yield from _named(one, suffix)
    if isinstance(items := value.get("items"), dict):
        yield from _named(items, suffix + "[]")
    if isinstance(values := value.get("additionalProperties"), dict):
        yield from _named(values, suffix + ".NAME")


def _section(section: _Section, sections: Mapping[str, _Section]) -> str:
    lines = [f"## {section.heading}", "", _flowed(section.schema.get("description", "")), ""]
    if others := section.places[1:]:
        lines += [f"The same keys stand under {' and '.join(f'`{place}`' for place in others)}.", ""]
    lines += ["| key | value | default | meaning |", "|---|---|---|---|"]
    required = section.schema.get("required", ())
    for key, value in section.schema["properties"].items():
        default = "required" if key in required else _default(value)
        cells = (f"`{key}`", _kind(value, sections), default, _flowed(value.get("description", "")))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _default(value: Schema) -> str:
    default = value.get("default")
    if default is None:
        return "empty" if value.get("type") == "object" else "not set"
    if isinstance(default, dict):
        return "its defaults"
    return f"`{default:g}`" if type(default) in {int, float} else f"`{json.dumps(default).strip(chr(34))}`"


def _kind(value: Schema, sections: Mapping[str, _Section]) -> str:
    """What may stand as the value, in words."""
    if "$ref" in value:
        heading = sections[value["$ref"].rpartition("/")[2]].heading
        return f"[{heading}](#{_anchor(heading)})"
    if "anyOf" in value:
        kinds = (_kind(one, sections) for one in value["anyOf"] if one.get("type") != "null")
        return " or ".join(kinds)
    if "enum" in value:
        return " or ".join(f"`{choice}`" for choice in value["enum"])
    if value.get("type") == "array":
        return f"list of {_kind(value['items'], sections)}"
    if value.get("type") == "object":
        inner = value.get("additionalProperties")
        return f"mapping of names to {_kind(inner, sections)}" if isinstance(inner, dict) else "mapping"
    plain: str = value["type"]
    words = {"string": "path" if value.get("format") == "path" else "text", "boolean": "true or false"}
    return words.get(plain, plain) + _bounds(value)


def _bounds(value: Schema) -> str:
    words = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}
    return "".join(f", {said} {value[key]:g}" for key, said in words.items() if key in value)


def _anchor(heading: str) -> str:
    """The anchor that a heading gets where Markdown is shown."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _flowed(text: str) -> str:
    """The text on one line, fit for a cell of a table."""
    return " ".join(text.split()).replace("|", r"\|")
