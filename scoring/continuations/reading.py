"""Reads the cells of a folder of continuations, masks that exclude matched sets, and features to predict by."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepdown.builder.common.reading import read_json_lines
from stepdown.builder.common.separated import read_separated
from stepdown.builder.common.text import printable
from stepdown.builder.config.validation import read_jsonl
from stepdown.builder.continuations.cells import Cell, CellKey, same_place
from stepdown.builder.errors import BadInput
from stepdown.scoring.continuations.predicting import Features

_OF_A_SET = ("parent", "checkpoint", "draw")
_OF_ONE = ("context", "feedback", "model")
_KEYS = (*_OF_A_SET, *_OF_ONE, "stage", "condition")
"""Columns by which a row of features is joined to cells."""

_LARGEST = 1e100
"""Of a feature: the square of what is larger could not be added up."""

_Row = tuple[int, Mapping[str, Any]]


def read_cells(path: Path) -> list[Cell]:
    """The cells of a file of records, in its order. Raises BadInput: not one, a cell twice, two checkpoints of one
    parent, condition and stage.
    """
    cells: list[Cell] = []
    seen: set[CellKey] = set()
    at: dict[tuple[str, str, str], str] = {}
    for line, data in read_json_lines(path):
        try:
            cell = Cell.from_json(data)
        except (KeyError, TypeError, ValueError):
            raise BadInput("not the record of a cell", file=path, line=line) from None
        if cell.key in seen:
            raise BadInput("this cell is there twice", file=path, line=line)
        if (place := same_place(cell.parent, cell.condition, cell.stage)) is not None:
            other = at.setdefault(place, cell.checkpoint)
            if other != cell.checkpoint:
                raise BadInput(f"checkpoint {other!r} is of the same stage and condition", file=path, line=line)
        seen.add(cell.key)
        cells.append(cell)
    return cells


@dataclass(frozen=True, slots=True)
class Masked:
    """Cells that are left, and how many a mask excludes."""

    cells: tuple[Cell, ...]
    excluded: int


def masked_cells(cells: Sequence[Cell], mask: Path | None) -> Masked:
    """The cells without the matched sets that a mask names, by `parent`, by `checkpoint`, or by that and `draw`.

    A mask is CSV, TSV or JSONL; a `reason` and other columns may stand beside. It can not name a context, feedback or
    model: who leaves out single cells of a set compares what does not match. Raises BadInput, also for what names no
    cell.
    """
    if mask is None:
        return Masked(tuple(cells), 0)
    left = list(cells)
    for line, row in _rows(mask):
        if one := next((name for name in _OF_ONE if _given(row, name)), None):
            raise BadInput("a mask excludes whole matched sets, with all of these", file=mask, line=line, field=one)
        wanted = _wanted(row, _OF_A_SET, mask, line)
        if not any(_is_of(cell, wanted) for cell in cells):
            raise BadInput(f"no cell is of {_said(wanted)}", file=mask, line=line)
        left = [cell for cell in left if not _is_of(cell, wanted)]
    return Masked(tuple(left), len(cells) - len(left))


def read_features(path: Path, cells: Sequence[Cell]) -> Features:
    """Features of cells: rows of a CSV, TSV or JSONL file that say by `parent` or `checkpoint`, and where it matters by
    draw, context, feedback, model, stage or condition, which cells they are of; every other column is a number.

    Raises BadInput: no such row, a value that is no number, a cell with two rows, rows with other columns.
    """
    near: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        near["parent", cell.parent].append(cell)
        near["checkpoint", cell.checkpoint].append(cell)
    names: tuple[str, ...] | None = None
    found: dict[CellKey, tuple[float, ...]] = {}
    for line, row in _rows(path):
        own = tuple(name for name in row if name not in _KEYS)
        if names is None:
            names = own
        if set(own) != set(names) or not own:
            problem = "other columns than in the first row" if own else "no column is a feature"
            raise BadInput(problem, file=path, line=line)
        values = tuple(_number(row[name], path, line, name) for name in names)
        wanted = _wanted(row, _KEYS, path, line)
        place = "checkpoint" if "checkpoint" in wanted else "parent"
        for cell in (cell for cell in near[place, wanted[place]] if _is_of(cell, wanted)):
            if cell.key in found:
                raise BadInput(f"a row before is of the same cells: {_said(wanted)}", file=path, line=line)
            found[cell.key] = values
    if not found:
        raise BadInput("no row is of any cell", file=path)
    return Features(names or (), found)


def _rows(path: Path) -> Iterator[_Row]:
    if path.suffix.lower() not in (".jsonl", ".json"):
        for line, row in read_separated(path):
            if None in row:
                raise BadInput("more cells than the header has names", file=path, line=line)
            yield line, row
        return
    for line, data in read_jsonl(path):
        if not isinstance(data, dict):
            raise BadInput("must be an object", file=path, line=line)
        yield line, data


def _given(row: Mapping[str, Any], name: str) -> bool:
    return row.get(name) not in (None, "")


def _wanted(row: Mapping[str, Any], keys: Sequence[str], path: Path, line: int) -> dict[str, str]:
    """What a row says of the cells that it is of, as texts."""
    wanted = {name: str(row[name]) for name in keys if _given(row, name)}
    if "parent" not in wanted and "checkpoint" not in wanted:
        raise BadInput("names neither a `parent` nor a `checkpoint`", file=path, line=line)
    return wanted


def _is_of(cell: Cell, wanted: Mapping[str, str]) -> bool:
    return all(str(getattr(cell, name)) == value for name, value in wanted.items())


def _said(wanted: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {printable(value, 100)!r}" for name, value in wanted.items())


def _number(value: Any, path: Path, line: int, field: str) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not -_LARGEST <= number <= _LARGEST:
        raise BadInput(
            f"{printable(str(value), 60)!r} is no number from -1e100 to 1e100",
            file=path,
            line=line,
            field=printable(field, 60),
        )
    return number
