"""Labelling a run from the command line: what `build`, `resume` and `relabel` have in common."""

from __future__ import annotations

import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from stepdown.builder.artifacts.labelling import LabellingResult, Watcher, label_run
from stepdown.builder.artifacts.names import EVIDENCE, MANIFEST, PROBES, QUEUE, ROWS, SPEND
from stepdown.builder.cli import console
from stepdown.builder.cli.stopping import stop_on_signals
from stepdown.builder.common.tables import draw
from stepdown.builder.config.loading import Config
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.engine.progress import RunProgress
from stepdown.builder.errors import RunStopped
from stepdown.builder.run.ledger import Origin

WORK_LEFT = 3
"""The exit code of a run that stopped with work left."""


class _Shown(Watcher):
    """Shows a person how a run goes on, and says how to go on where it stops."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begins(self, protocol: ProtocolConfig) -> None:
        console.name_foreign_code(protocol)

    def gave_up(self, instances: int) -> None:
        click.echo(f"{instances} blocked instances given up", err=True)

    def warned(self, line: str) -> None:
        click.echo(f"stepdown: warning: {line}", err=True)

    @contextmanager
    def while_working(self, progress: RunProgress) -> Iterator[None]:
        with console.show_progress(progress):
            try:
                yield
            except RunStopped as error:
                raise RunStopped(f"{error}; what was paid for is kept; {_after_a_stop(error, self._folder)}") from None


def label_and_report(
    folder: Path, config: Config | None, drop_blocked: bool = False, origin: Origin | None = None
) -> None:
    """Label the open instances of the run in a folder, write its files and report. Exits with 3 where work is left."""
    stop = threading.Event()
    with stop_on_signals(stop, _resume_command(folder)):
        done = label_run(folder, config, stop=stop, drop_blocked=drop_blocked, origin=origin, watcher=_Shown(folder))
        _report(folder, done)
    if done.below is not None:
        click.echo(f"stepdown: {done.below}; {_after_a_judge(folder)}", err=True)
        sys.exit(WORK_LEFT)
    if done.budget is not None:
        click.echo(f"stepdown: {done.budget}; {_after_a_budget(done.budget.name, folder)}", err=True)
        sys.exit(WORK_LEFT)
    if done.blocked:
        click.echo(
            f"{done.blocked} instances are blocked by technical errors, for the reasons above, and have no labels. "
            f"When the cause is gone: {_resume_command(folder)}",
            err=True,
        )
        sys.exit(WORK_LEFT)
    if done.untold:
        click.echo(
            f"{done.untold} probes came to no verdict for technical reasons, and are missing from the grid. Labels are "
            f"whole. To try them again: {_resume_command(folder)} (--drop-blocked: leave them out)",
            err=True,
        )
        sys.exit(WORK_LEFT)


def _report(folder: Path, done: LabellingResult) -> None:
    out = console.stdout()
    out.print(draw(console.label_table(done.summary, done.protocol.pool)))
    for line in console.held_back(done.summary):
        out.print(line, markup=False)
    probes = (PROBES,) if done.protocol.rules.probe != "none" else ()
    for name in (ROWS, EVIDENCE, QUEUE, *probes, MANIFEST, SPEND):
        out.print(str(folder / name), markup=False)


def _resume_command(folder: Path) -> str:
    return f"stepdown resume {shlex.quote(str(folder))}"


def _after_a_stop(error: RunStopped, folder: Path) -> str:
    """How to go on. A run's protocol is frozen: another model or parameter makes another version of it."""
    if not error.in_protocol:
        return f"when it is mended: {_resume_command(folder)} (with --config CONFIG, where its `operation` changed)"
    return f"mend it in the config, then: stepdown relabel {shlex.quote(str(folder))} --config CONFIG --run NEW"


def _after_a_judge(folder: Path) -> str:
    """How to go on. Answers stay in the cache, so only another judge's reports are paid for."""
    relabel = f"stepdown relabel {shlex.quote(str(folder))} --config CONFIG --run NEW"
    return f"what was paid for is kept; name another judge in a config, and: {relabel}"


def _after_a_budget(name: str, folder: Path) -> str:
    """How to go on; the time that a process may take begins anew with the next one."""
    if name == "wall_clock":
        return f"go on with: {_resume_command(folder)}"
    return f"to go on, raise `operation.budget.{name}` and: {_resume_command(folder)} --config CONFIG"
