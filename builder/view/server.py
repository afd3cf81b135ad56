"""Serves the pages of a run: the app behind the gate. Nothing here takes a form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stepdown.builder.pages.gate import Access, Gate, GateWords
from stepdown.builder.pages.server import RunningServer, serving
from stepdown.builder.view.app import view_app
from stepdown.builder.view.shown_run import ShownRun

WORDS = GateWords(
    command="stepdown view",
    several="Runs",
    other="Every run has a link of its own.",
    failed="The page can not be shown.",
    too_long="Nothing here takes so much.",
)


def run_access(run: ShownRun) -> Access:
    """A new access to the pages of a run."""
    return Access("run", run.name or "run", called="run")


@contextmanager
def serve(run: ShownRun, access: Access, failed: Callable[[Exception], None], port: int = 0) -> Iterator[RunningServer]:
    """Serve the pages while the block runs. Raises BadInput where the port is taken.

    `failed` is called with every error in a page.
    """
    app = view_app(run)
    with serving(lambda bound: Gate(app, [access], bound, failed, WORDS), port) as server:
        yield server
