"""The grid of a run whose protocol asks for probes: items are its steps, texts what a model had to react to there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from stepdown.builder.artifacts.names import PROBES, ROWS
from stepdown.builder.artifacts.rows import read_rows
from stepdown.builder.errors import BadInput
from stepdown.routing.policies.features import latest_text
from stepdown.scoring.comparators.grid import Grid, Row, grid_of, read_table


def read_run_grid(run: Path, without: Sequence[str] = ()) -> Grid:
    """What the models of a run's pool, but for those it is `without`, came to at its probed steps.

    Raises BadInput where the run has no grid, or a file of it is broken.
    """
    path = run / PROBES
    if not path.is_file():
        raise BadInput(f"holds no {PROBES}: `protocol.rules.probe: all` has a build make one", file=run)
    return grid_of(_with_texts(path, run / ROWS), path, without)


def _with_texts(path: Path, rows: Path) -> Iterator[Row]:
    """The rows of the grid, in whose order steps are labelled too, each with its step's text."""
    texts = ((row.id, latest_text(row.messages)) for _, row in read_rows(rows))
    step = text = ""
    for line, cell in read_table(path):
        if "model" not in cell:
            raise BadInput("is missing", file=path, line=line, field="model")
        while step != cell.get("item"):
            try:
                step, text = next(texts)
            except StopIteration:
                raise BadInput(f"no row of {ROWS} is of this step", file=path, line=line, field="item") from None
        yield line, {**cell, "text": text}
