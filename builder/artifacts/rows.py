"""The row: one labelled step, as a run writes it and a release publishes it, and how it is read from anybody's file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepdown.builder.common.reading import read_json_lines
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Message, Tool

FIELDS: Mapping[str, type] = {
    "id": str,
    "benchmark": str,
    "instance_id": str,
    "step_index": int,
    "total_steps": int,
    "messages": list,
    "target_tier": str,
    "target_tier_id": int,
}
"""The fields that every row has, and what JSON value each holds."""
OPTIONAL_FIELDS: Mapping[str, type] = {"tools": list, "group": str, "split": str}
"""`tools` stands where the prefix has tool definitions; `group` and `split` stand in releases only."""
_TYPE_NAMES = {str: "text", int: "a whole number", list: "a list"}


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled step: the prefix that a router sees, and the cheapest tier that was accepted for it."""

    id: str
    """`benchmark/instance_id/step_index`."""
    benchmark: str
    instance_id: str
    step_index: int
    """From 1."""
    total_steps: int
    """Length of the final mixed trajectory."""
    messages: list[Message]
    target_tier: str
    target_tier_id: int
    tools: list[Tool] | None = None
    group: str = ""
    """What honest evaluation holds out whole, within the benchmark: repository, conversation, function family. Empty in
    a run's own rows: there the evidence names it."""
    split: str = ""
    """`train` or `test`; all rows of a group are in the same one. Empty in a run's own rows."""

    def to_json(self) -> dict[str, Any]:
        """The row as the files hold it, its fields in their order; optional ones only where they say something.

        >>> row = Row("b/i/1", "b", "i", 1, 1, [], "low", 0)
        >>> parse_row(row.to_json(), Path("rows.jsonl"), 1) == row
        True
        """
        fields: dict[str, Any] = {name: getattr(self, name) for name in FIELDS}
        return fields | {name: value for name in OPTIONAL_FIELDS if (value := getattr(self, name))}


def read_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """The rows of a JSONL file with their line numbers, from 1; one in memory at a time.

    Raises BadInput(file, line, field) at the first line that is no row.
    """
    for number, data in read_json_lines(path):
        yield number, parse_row(data, path, number)


def parse_row(data: Any, path: Path, number: int) -> Row:
    """A row from its JSON value: each field of its type; fields that are not a row's are passed over.

    Raises BadInput, naming the field. Whether rows fit one another is for their readers to say.
    """
    if type(data) is not dict:
        raise BadInput("a row must be an object", file=path, line=number)
    for name, kind in {**FIELDS, **OPTIONAL_FIELDS}.items():
        if name not in data and name in OPTIONAL_FIELDS:
            continue
        if type(data.get(name)) is not kind:
            problem = f"must be {_TYPE_NAMES[kind]}" if name in data else "is missing"
            raise BadInput(problem, file=path, line=number, field=name)
    for name in ("messages", "tools"):
        for index, item in enumerate(data.get(name) or ()):
            if type(item) is not dict:
                raise BadInput("must be an object", file=path, line=number, field=f"{name}.{index}")
    return Row(**{name: data[name] for name in (*FIELDS, *OPTIONAL_FIELDS) if name in data})
