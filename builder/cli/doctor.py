"""`stepdown doctor`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from stepdown.builder.cli.main import BAD_INPUT
from stepdown.builder.common.text import printable
from stepdown.builder.config.loading import load_config
from stepdown.builder.inspect import doctor


@click.command("doctor")
@click.argument("config", required=False, type=click.Path(path_type=Path))
def command(config: Path | None) -> None:
    """Say what this machine can run; with CONFIG, whether all that it needs is here.

    Exit code 2 where something that CONFIG needs is missing.
    """
    findings = doctor.examine(load_config(config) if config else None)
    for finding in findings:
        click.echo(printable(f"{'ok  ' if finding.ok else 'none'} {finding.part}: {finding.detail}"))
    if config and not all(finding.ok for finding in findings if finding.needed):
        sys.exit(BAD_INPUT)
