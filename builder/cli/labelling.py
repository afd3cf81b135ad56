"""Labelling a run from the command line: what `build`, `resume` and `relabel` have in common."""

from __future__ import annotations

import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from stepdown.builder.artifacts.names import EVIDENCE, MANIFEST, QUEUE, ROWS, SPEND
from stepdown.builder.artifacts.summary import Summary
from stepdown.builder.artifacts.writing import write_artifacts
from stepdown.builder.cli import console
from stepdown.builder.cli.stopping import stop_on_signals
from stepdown.builder.config.loading import Config
from stepdown.builder.engine.build import Build
from stepdown.builder.errors import BudgetReached, RunStopped
from stepdown.builder.run.folder import RunFolder, open_for_work
from stepdown.builder.run.ledger import InstanceState, Origin

WORK_LEFT = 3
"""The exit code of a run that stopped with work left."""


def label_run(folder: Path, config: Config | None, drop_blocked: bool = False, origin: Origin | None = None) -> None:
    """Label the open instances of the run in a folder, write its files and report. Exits with 3 where work is left."""
    stop = threading.Event()
    with open_for_work(folder, config, origin) as run, stop_on_signals(stop, _resume_command(folder)):
        run.config.check_keys()
        console.name_foreign_code(run.config.protocol)
        work = Build(run, stop)
        if drop_blocked:
            click.echo(f"{run.ledger.drop_blocked()} blocked instances given up", err=True)
        work.admit()
        reached: BudgetReached | None = None
        with console.show_progress(work.progress), _told_how_to_go_on(folder):
            try:
                work.execute()
            except BudgetReached as error:  # what is finished is released, as where instances are blocked
                reached = error
        summary = write_artifacts(run, work.multi_step)
        _report(run, summary)
        left = run.ledger.counts()
    if reached is not None:
        click.echo(f"stepdown: {reached}; {_after_a_budget(reached.name, folder)}", err=True)
        sys.exit(WORK_LEFT)
    if blocked := left.get(InstanceState.BLOCKED, 0):
        click.echo(
            f"{blocked} instances are blocked by technical errors, for the reasons above, and have no labels. "
            f"When the cause is gone: {_resume_command(folder)}",
            err=True,
        )
        sys.exit(WORK_LEFT)


@contextmanager
def _told_how_to_go_on(folder: Path) -> Iterator[None]:
    try:
        yield
    except RunStopped as error:
        raise RunStopped(f"{error}; what was paid for is kept; when it is mended: {_resume_command(folder)}") from None


def _report(run: RunFolder, summary: Summary) -> None:
    out = console.stdout()
    out.print(console.label_table(summary, run.config.protocol.pool))
    for line in console.held_back(summary):
        out.print(line, markup=False)
    for name in (ROWS, EVIDENCE, QUEUE, MANIFEST, SPEND):
        out.print(str(run.path / name), markup=False)


def _resume_command(folder: Path) -> str:
    return f"stepdown resume {shlex.quote(str(folder))}"


def _after_a_budget(name: str, folder: Path) -> str:
    """How to go on; the time that a process may take begins anew with the next one."""
    if name == "wall_clock":
        return f"go on with: {_resume_command(folder)}"
    return f"to go on, raise `operation.budget.{name}` and: {_resume_command(folder)} --config CONFIG"
