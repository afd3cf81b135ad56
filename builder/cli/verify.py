"""`stepdown verify`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from stepdown.builder.cli import console
from stepdown.builder.cli.documents import print_document
from stepdown.releases.verify import verify


@click.command("verify")
@click.argument("release", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def command(release: Path, as_json: bool) -> None:
    """Check the folder RELEASE, whoever made it, against every gate that a release must pass. Reads only it.

    Rows, splits, counts, digests, Parquet against JSON, card, Croissant file, names, keys, paths. A problem a line, as
    file:row: field: problem; the first 100 of them, and how many there are. Exit code 2 where there is any.
    """
    found = verify(release, console.row_ticker())
    problems = found.problems
    if as_json:
        shown = [asdict(problem) for problem in problems]
        document = {"ok": not problems, "rows": found.counts.rows, "total": problems.total, "problems": shown}
        print_document(document)
    else:
        for problem in problems:
            click.echo(str(problem))
        if not problems:
            instances = found.counts.instances.total()
            click.echo(f"ok: {found.counts.rows} rows of {instances} instances")
    if problems:
        click.echo(f"stepdown: {problems.counted()}", err=True)
        sys.exit(2)
