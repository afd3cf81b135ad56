"""A workload's file of tasks: which file, and which of its tasks a run takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from stepdown.builder.common.text import LONGEST_ID, is_id
from stepdown.builder.config.validation import Strict, read_jsonl, read_text
from stepdown.builder.errors import BadInput
from stepdown.harnesses.selection import Take


class TaskFileSource(Strict):
    """The `source` of a workload whose tasks lie in a file."""

    file: Path
    """Relative to the config."""
    take: Take = "all"
    """The first n tasks of the file, `all`, or a list of ids. What a structural filter drops counts among the n."""


class UpstreamRecord(Strict):
    """A record of a published format. Fields that are not named here are ignored."""

    model_config = ConfigDict(extra="ignore")


def lines_of(file: Path) -> Iterator[tuple[int, Any]]:
    """Read the values of a task file with their lines. Raises BadInput for one that is no JSONL or has no task."""
    found = False
    for number, value in read_jsonl(file):
        found = True
        yield number, value
    if not found:
        raise BadInput("there is no task in it", file=file)


def values_of(file: Path) -> Iterator[tuple[int | None, Any]]:
    """Read the values of a JSONL file with their lines, or of a JSON file that holds one value or a list of them."""
    text = read_text(file)
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        yield from lines_of(file)
        return
    yield from ((None, value) for value in (whole if isinstance(whole, list) else [whole]))


def check_id(name: str, file: Path, line: int | None, field: str) -> None:
    """Raises BadInput for a text that cannot be an id in rows and tables."""
    if not is_id(name):
        problem = f"{name[: LONGEST_ID + 1]!r} is not 1 to {LONGEST_ID} printable characters"
        raise BadInput(problem, file=file, line=line, field=field)


class Ids:
    """The ids of a file read so far. Each task must have an id of its own."""

    def __init__(self, file: Path, field: str) -> None:
        self._file, self._field = file, field
        self._lines: dict[str, int | None] = {}

    def add(self, name: str, line: int | None) -> None:
        """Add an id. Raises BadInput for one that no row can have, or that another line has."""
        check_id(name, self._file, line, self._field)
        if name in self._lines:
            before = f"line {self._lines[name]}" if self._lines[name] else "the file"
            raise BadInput(f"{before} has {name!r} already", file=self._file, line=line, field=self._field)
        self._lines[name] = line
