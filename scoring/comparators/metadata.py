"""Metadata as tables hold them, in columns named `feature:NAME`: numbers where all of a column are, else categories.

A row that lacks one says nothing of it, so that one row of an item is enough. Two rows of an item can not differ: what
a router sees before any model is asked does not depend on the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput
from stepdown.scoring.comparators.features import Feature

MARK = "feature:"
_LARGEST = 1e100
"""Of a number: the square of what is larger could not be added up."""


@dataclass(frozen=True, slots=True)
class _Value:
    words: str
    number: float | None
    """None where the words are no number."""


@dataclass(slots=True)
class MetadataColumns:
    """What rows have said, by column and item."""

    _columns: dict[str, dict[str, _Value]] = field(default_factory=dict)

    def note(self, item: str, row: Mapping[str, Any], path: Path, line: int) -> None:
        """Keep the metadata of a row. Raises BadInput(file, line, field): a column without a name, a value that is
        neither number nor word, another one than the item had.
        """
        for column, cell in row.items():
            if not is_metadata(column):
                continue
            shown = printable(column, 60)
            if not column.removeprefix(MARK).strip():
                raise BadInput(f"write the feature's name behind {MARK!r}", file=path, line=line, field=shown)
            values = self._columns.setdefault(column, {})
            value = _value(cell, path, line, shown)
            if value is None:
                continue
            had = values.setdefault(item, value)
            if had != value and (had.number is None or had.number != value.number):
                problem = (
                    f"{printable(item, 60)!r} has {printable(had.words, 60)!r} and {printable(value.words, 60)!r}: "
                    "a feature is the item's, and the same whichever model is asked"
                )
                raise BadInput(problem, file=path, line=line, field=shown)

    def features(self, items: Sequence[str]) -> tuple[Feature, ...]:
        """Of these items, in the order of the table's columns; those that are the same for all are left out."""
        found = (_feature(column.removeprefix(MARK), values, items) for column, values in self._columns.items())
        return tuple(one for one in found if not one.is_constant)


def is_metadata(column: Any) -> bool:
    """Whether a table's column holds metadata."""
    return isinstance(column, str) and column.startswith(MARK)


def _feature(name: str, values: Mapping[str, _Value], items: Sequence[str]) -> Feature:
    numbers = {item: value.number for item, value in values.items() if value.number is not None}
    if len(numbers) == len(values):
        return Feature(name, tuple(numbers.get(item, math.nan) for item in items))
    return Feature(name, tuple(values[item].words if item in values else "" for item in items))


def _value(cell: Any, path: Path, line: int, field: str) -> _Value | None:
    """None where the cell is empty."""
    if isinstance(cell, bool):
        return _Value(str(cell).lower(), None)
    if cell is None:
        return None
    if isinstance(cell, list | tuple | dict | bytes):
        raise BadInput("must be a number or a word", file=path, line=line, field=field)
    words = str(cell).strip()
    if words.lower() in ("", "nan"):
        return None
    number = _number(words)
    if number is not None and not -_LARGEST <= number <= _LARGEST:
        raise BadInput(f"{printable(words, 60)!r} is no number from -1e100 to 1e100", file=path, line=line, field=field)
    return _Value(words, number)


def _number(words: str) -> float | None:
    try:
        return float(words) if "_" not in words else None  # Python alone takes 1_000 for a number
    except ValueError:
        return None
