"""`stepdown status`."""

from __future__ import annotations

from pathlib import Path

import click

from stepdown.builder.cli import console
from stepdown.builder.errors import BadInput
from stepdown.builder.run.folder import is_run
from stepdown.builder.run.ledger import Ledger


@click.command("status")
@click.argument("run", type=click.Path(path_type=Path))
def command(run: Path) -> None:
    """Say where RUN stands: instances by state, labels so far, what is blocked and why, what was spent.

    Reads only; a build may be working on the run meanwhile.
    """
    if not is_run(run):
        raise BadInput("no run is here", file=run)
    ledger = Ledger(run, read_only=True)
    try:
        for line in console.status_lines(ledger, run):
            click.echo(line)
    finally:
        ledger.close()
