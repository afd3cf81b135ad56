"""`stepdown resume`."""

from __future__ import annotations

from pathlib import Path

import click

from stepdown.builder.cli.labelling import label_and_report
from stepdown.builder.config.loading import load_config
from stepdown.builder.errors import BadInput
from stepdown.builder.run.reading import is_run


@click.command("resume")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Go on with the `operation` part of this config (workers, addresses, keys); its protocol must be the run's.",
)
@click.option("--drop-blocked", is_flag=True, help="Give up on instances that technical errors have blocked.")
def command(run: Path, config: Path | None, drop_blocked: bool) -> None:
    """Go on with an interrupted or blocked RUN at the very next trial. At most the calls that were in flight when it
    was killed are paid again."""
    if not is_run(run):
        raise BadInput("no run is here; `stepdown build CONFIG --run DIR` begins one", file=run)
    label_and_report(run, load_config(config) if config else None, drop_blocked=drop_blocked)
