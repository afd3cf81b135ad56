"""A grid of outcomes: items by models, each item in a group, each outcome between 0 and 1, perhaps with its cost.

Tables are long (`item`, `model`, `outcome`, and where they have them `group`, `cost`, `text`), or wide: `item`, perhaps
`group` and `text`, and a column of outcomes for each model. Both may have metadata of items, in columns named
`feature:NAME`. An outcome that is `technical`, or of a row whose `verdict` is, is a missing one and never a failure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepdown.builder.common.extras import require
from stepdown.builder.common.reading import read_json_lines
from stepdown.builder.common.separated import read_separated
from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput
from stepdown.scoring.comparators.features import Feature
from stepdown.scoring.comparators.metadata import MetadataColumns, is_metadata

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

_BESIDE = ("item", "group", "text")
_OF_CELLS = ("cost", "outcome", "verdict")
"""Columns of long tables, which would pass for models in a wide one."""
_LARGEST = 1e100
"""Of costs: what is larger could not be added up."""
_WORDS = {"pass": 1.0, "true": 1.0, "fail": 0.0, "false": 0.0}
_TECHNICAL = "technical"


@dataclass(frozen=True, slots=True)
class MissingOutcomes:
    """How many items lacked the outcome of one model, and of how many of these it is said to be technical."""

    model: str
    items: int
    technical: int


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Outcomes of every item under every model."""

    items: tuple[str, ...]
    models: tuple[str, ...]
    """In the table's order, which decides between equals."""
    groups: tuple[str, ...]
    """Of each item; its own name where the table has none."""
    outcomes: NDArray[float64]
    """Items by models, 0 to 1."""
    costs: NDArray[float64] | None
    """Items by models, in the table's unit; None where it has none."""
    texts: tuple[str, ...] | None
    left_out: int
    """Items that lacked the outcome of some model."""
    missing: tuple[MissingOutcomes, ...] = ()
    """Of each model whose outcomes were missing."""
    features: tuple[Feature, ...] = ()
    """Metadata of the items."""

    @property
    def flawless(self) -> tuple[str, ...]:
        """Models without a single failure: nothing can be better, and no router can gain on them."""
        return tuple(name for name, column in zip(self.models, self.outcomes.T, strict=True) if (column == 1).all())


def read_grid(path: Path, without: Sequence[str] = ()) -> Grid:
    """The grid of a CSV, TSV, JSONL or Parquet file. An item that lacks a model's outcome is left out, and counted.
    `without` are models that are passed over.

    Raises BadInput(file, line, field): no such file, no outcomes, one that is no number of 0 to 1, one given twice.
    """
    return grid_of(read_table(path), path, without)


def read_table(path: Path) -> Iterator[Row]:
    """The rows of a table, by what its name ends with. Raises BadInput where it can not be read."""
    return _READERS.get(path.suffix.lower(), read_separated)(path)


def grid_of(rows: Iterable[Row], path: Path, without: Sequence[str] = ()) -> Grid:
    """The grid of a table's rows, each with its line. Raises as `read_grid` does, naming the file they are from."""
    found = list(rows)
    if not found:
        raise BadInput("holds no row", file=path)
    cells = _long(found, path) if "model" in found[0][1] else _wide(found, path)
    for name in without:
        if name not in cells.models:
            there = printable(", ".join(cells.models), 300)
            raise BadInput(f"no model {name[:100]!r}; there are: {there}", file=path, field="--without")
    cells.models = {name: None for name in cells.models if name not in without}
    return _grid(cells, path)


@dataclass(slots=True)
class _Cells:
    models: dict[str, None] = field(default_factory=dict)
    outcomes: dict[tuple[str, str], float] = field(default_factory=dict)
    technical: set[tuple[str, str]] = field(default_factory=set)
    costs: dict[tuple[str, str], float] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    metadata: MetadataColumns = field(default_factory=MetadataColumns)


Row = tuple[int, Mapping[str, Any]]
"""A row's line, and its cells by column."""


def _parquet(path: Path) -> Iterator[Row]:
    require("release", "pyarrow")
    import pyarrow
    import pyarrow.parquet as parquet

    try:
        table = parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise BadInput(f"not Parquet: {error}", file=path) from None
    yield from enumerate(table.to_pylist(), 1)


def _json_lines(path: Path) -> Iterator[Row]:
    for line, row in read_json_lines(path):
        if not isinstance(row, dict):
            raise BadInput("must be an object", file=path, line=line)
        yield line, row


_READERS: Mapping[str, Callable[[Path], Iterator[Row]]] = {".parquet": _parquet, ".jsonl": _json_lines}
"""By a file's suffix; any other holds separated values."""


def _long(rows: Sequence[Row], path: Path) -> _Cells:
    cells = _Cells()
    for line, row in rows:
        _refuse_more_than_columns(row, path, line)
        item, model = (_text(row, name, path, line) for name in ("item", "model"))
        cells.models.setdefault(model)
        cells.metadata.note(item, row, path, line)
        technical = _TECHNICAL in (_word(row.get("verdict")), _word(row.get("outcome")))
        if technical or _is_empty(row.get("outcome")):
            cells.groups.setdefault(item, _group(row, item))
            if technical:
                cells.technical.add((item, model))
            continue
        if (item, model) in cells.outcomes:
            raise BadInput(f"{item!r} has two outcomes of {model!r}", file=path, line=line, field="outcome")
        cells.outcomes[item, model] = _outcome(row.get("outcome"), path, line, "outcome")
        if not _is_empty(row.get("cost")):
            cells.costs[item, model] = _number(row["cost"], path, line, "cost")
        _note(cells, row, item, path, line)
    return cells


def _wide(rows: Sequence[Row], path: Path) -> _Cells:
    names = dict.fromkeys(name for _, row in rows for name in row if name)
    models = [name for name in names if name not in _BESIDE and not is_metadata(name)]
    if of_cells := next((name for name in _OF_CELLS if name in names), None):
        problem = "is of one cell, and this table has a column for each model: give a row for each item and model"
        raise BadInput(problem, file=path, field=of_cells)
    cells = _Cells(dict.fromkeys(models))
    for line, row in rows:
        _refuse_more_than_columns(row, path, line)
        item = _text(row, "item", path, line)
        if item in cells.groups:
            raise BadInput(f"{item!r} is given twice", file=path, line=line, field="item")
        cells.metadata.note(item, row, path, line)
        _note(cells, row, item, path, line)
        for model in models:
            if _word(row.get(model)) == _TECHNICAL:
                cells.technical.add((item, model))
            elif not _is_empty(row.get(model)):
                cells.outcomes[item, model] = _outcome(row[model], path, line, model)
    return cells


def _refuse_more_than_columns(row: Mapping[Any, Any], path: Path, line: int) -> None:
    """A text with a comma that is not quoted would shift what stands after it."""
    if any(row.get(None, ())):
        raise BadInput("more cells than the header has names", file=path, line=line)


def _note(cells: _Cells, row: Mapping[str, Any], item: str, path: Path, line: int) -> None:
    group = _group(row, item)
    if cells.groups.setdefault(item, group) != group:
        raise BadInput(f"{item!r} is in two groups", file=path, line=line, field="group")
    if not _is_empty(row.get("text")):
        cells.texts.setdefault(item, str(row["text"]))


def _grid(cells: _Cells, path: Path) -> Grid:
    require("release", "numpy")
    import numpy as np

    models = tuple(cells.models)
    items = tuple(item for item in cells.groups if all((item, model) in cells.outcomes for model in models))
    missing = tuple(_missing(cells))
    if len(models) < 2 or len(items) < 2:
        lacking = "".join(f"; {one.model!r} lacks {one.items} of {len(cells.groups)}" for one in missing)
        raise BadInput(f"needs two models and two items that have the outcome of every model{lacking}", file=path)
    shape = (len(items), len(models))
    outcomes = np.array([cells.outcomes[item, model] for item in items for model in models]).reshape(shape)
    costs = None
    if all((item, model) in cells.costs for item in items for model in models):
        costs = np.array([cells.costs[item, model] for item in items for model in models]).reshape(shape)
        costs = costs if costs.any() else None  # where all is free, no budget says anything
    texts = tuple(cells.texts.get(item, "") for item in items) if cells.texts else None
    groups = tuple(cells.groups[item] for item in items)
    left_out = len(cells.groups) - len(items)
    return Grid(items, models, groups, outcomes, costs, texts, left_out, missing, cells.metadata.features(items))


def _missing(cells: _Cells) -> Iterator[MissingOutcomes]:
    for model in cells.models:
        items = [item for item in cells.groups if (item, model) not in cells.outcomes]
        if items:
            yield MissingOutcomes(model, len(items), sum((item, model) in cells.technical for item in items))


def _group(row: Mapping[str, Any], item: str) -> str:
    return item if _is_empty(row.get("group")) else str(row["group"])


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _word(value: Any) -> str:
    return value.strip().lower() if isinstance(value, str) else ""


def _text(row: Mapping[str, Any], name: str, path: Path, line: int) -> str:
    if _is_empty(row.get(name)):
        raise BadInput("is empty" if name in row else "the table has no such column", file=path, line=line, field=name)
    return str(row[name])


def _outcome(value: Any, path: Path, line: int, field: str) -> float:
    if (word := _word(value)) in _WORDS:
        return _WORDS[word]
    number = _number(value, path, line, field)
    if number > 1:
        raise BadInput(
            f"{printable(str(value), 60)} is above 1: an outcome is 0 to 1", file=path, line=line, field=field
        )
    return number


def _number(value: Any, path: Path, line: int, field: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number <= _LARGEST:
        raise BadInput(
            f"{printable(str(value), 60)!r} is no number of 0 to {_LARGEST:g}", file=path, line=line, field=field
        )
    return number
