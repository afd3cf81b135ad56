"""`stepdown doctor`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from stepdown.builder.cli.documents import as_json_option, print_document
from stepdown.builder.cli.main import BAD_INPUT
from stepdown.builder.common.secrets import SECRETS
from stepdown.builder.common.text import printable
from stepdown.builder.config.loading import Config, load_config
from stepdown.builder.errors import BadInput
from stepdown.builder.inspect import doctor, ping


@click.command("doctor")
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--ping", "is_ping", is_flag=True, help="Also ask each model and judge once: one tiny, paid call each.")
@as_json_option
def command(config: Path | None, is_ping: bool, as_json: bool) -> None:
    """Say what this machine can run; with CONFIG, whether all that it needs is here.

    With --ping every model and judge of CONFIG is asked once, which shows a wrong key, name, address or parameter
    before a build does. Exit code 2 where something that CONFIG needs is missing or does not answer.
    """
    if is_ping and config is None:
        raise BadInput("--ping asks the models of a config: name it")
    settings = load_config(config) if config else None
    findings: list[doctor.Check] = []
    for finding in _findings(settings, is_ping):
        findings.append(finding)
        if not as_json:
            click.echo(
                printable(f"{'ok  ' if finding.ok else 'none'} {finding.part}: {SECRETS.hidden(finding.detail)}")
            )
    is_missing = any(finding.needed and not finding.ok for finding in findings)
    if as_json:
        print_document({"ok": not is_missing, "findings": findings})
    if settings and is_missing:
        sys.exit(BAD_INPUT)


def _findings(settings: Config | None, is_ping: bool) -> Iterator[doctor.Check]:
    yield from doctor.examine(settings)
    if settings and is_ping:
        count = len(ping.asked_models(settings))
        click.echo(f"asking {count} models once each; their providers charge for it", err=True)
        yield from ping.ping(settings)
