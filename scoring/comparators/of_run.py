"""The grid of a run whose protocol asks for probes: items are its steps, and routers see what a policy sees there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from stepdown.builder.artifacts.names import PROBES, ROWS
from stepdown.builder.artifacts.rows import Row as Step
from stepdown.builder.artifacts.rows import read_rows
from stepdown.builder.errors import BadInput
from stepdown.routing.policies.contract import View
from stepdown.routing.policies.features import FIGURES, figures, latest_text
from stepdown.scoring.comparators.grid import Grid, Row, grid_of, read_table
from stepdown.scoring.comparators.metadata import MARK


def read_run_grid(run: Path, without: Sequence[str] = ()) -> Grid:
    """What the models of a run's pool, but for those it is `without`, came to at its probed steps.

    Raises BadInput where the run has no grid, or a file of it is broken.
    """
    path = run / PROBES
    if not path.is_file():
        raise BadInput(f"holds no {PROBES}: `protocol.rules.probe: all` has a build make one", file=run)
    return grid_of(_with_what_is_seen(path, run / ROWS), path, without)


def _with_what_is_seen(path: Path, rows: Path) -> Iterator[Row]:
    """The rows of the grid, in whose order steps are labelled too, each with what a router sees of its step."""
    steps = (row for _, row in read_rows(rows))
    step = text = ""
    metadata: dict[str, float] = {}
    for line, cell in read_table(path):
        if "model" not in cell:
            raise BadInput("is missing", file=path, line=line, field="model")
        while step != cell.get("item"):
            try:
                row = next(steps)
            except StopIteration:
                raise BadInput(f"no row of {ROWS} is of this step", file=path, line=line, field="item") from None
            step, text, metadata = row.id, latest_text(row.messages), _metadata(row)
        yield line, {**cell, "text": text, **metadata}
        metadata = {}  # one row of an item is enough


def _metadata(row: Step) -> dict[str, float]:
    """The figures of a step's prefix that a trained policy sees, from what is known before the step alone: neither its
    label nor how long the trajectory is, nor what any model came to.
    """
    view = View(row.messages, row.tools or (), row.step_index)
    return {f"{MARK}{name}": value for name, value in zip(FIGURES, figures(view).tolist(), strict=True)}
