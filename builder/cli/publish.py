"""`stepdown publish`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from stepdown.builder.cli import console
from stepdown.builder.cli.push import check_push, dry_run_option, message_option, public_option, push_release
from stepdown.builder.cli.shares import ShareOption
from stepdown.builder.common.text import printable
from stepdown.builder.config.validation import validated
from stepdown.builder.errors import BadInput
from stepdown.releases.hub import page_of
from stepdown.releases.layout import Holdout
from stepdown.releases.publish import PublishRefused, PublishSettings, publish


@click.command("publish")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The release's folder: new, or empty.")
@click.option("--name", help="Of the release; the folder's name where none is given.")
@click.option("--version", default="1.0.0", show_default=True, help="Of the release.")
@click.option("--date", "day", help="When it is published, YYYY-MM-DD; today where none is given.")
@click.option("--creator", default="", help="Who publishes it.")
@click.option("--url", default="", help="Where it can be downloaded; with --push, the repository's page.")
@click.option(
    "--license", "terms", default="Apache-2.0", show_default=True, help="Of the labels. LICENSE.md has the texts' own."
)
@click.option(
    "--holdout",
    default=0.2,
    show_default=True,
    type=ShareOption(max_open=True),
    help="Share of the groups that are held out as `test`, whole.",
)
@click.option("--split-seed", default=0, show_default=True, help="Another seed holds other groups out.")
@click.option(
    "--allow-name",
    multiple=True,
    metavar="NAME",
    help="Let this pool model's name stand in rows; the manifest says so.",
)
@click.option(
    "--allow-path",
    multiple=True,
    metavar="FOLDER",
    help="Let this home folder stand in messages: a benchmark names it.",
)
@click.option("--without", multiple=True, metavar="INSTANCE", help="Leave benchmark/instance_id out; it is counted.")
@click.option("--partial", is_flag=True, help="Publish what is finished of runs with instances left to do.")
@click.option("--push", "repository", metavar="ORG/NAME", help="Then push it to the Hugging Face Hub: stepdown push.")
@public_option
@dry_run_option
@message_option
def command(
    runs: tuple[Path, ...],
    out: Path,
    name: str | None,
    version: str,
    day: str | None,
    creator: str,
    url: str,
    terms: str,
    holdout: float,
    split_seed: int,
    allow_name: tuple[str, ...],
    allow_path: tuple[str, ...],
    without: tuple[str, ...],
    partial: bool,
    repository: str | None,
    public: bool,
    dry_run: bool,
    message: str,
) -> None:
    """Make one release of finished RUNS: a folder that others can load, check and score on.

    Every row passes the gates or nothing is published: whole instances, proved labels, settled audit verdicts, no model
    name in a field or an assistant's message, no key, no path of anybody's machine. What is wrong is named by file, row
    and field, and the exit code is 2.

    \b
    Writes into the folder:
      question_bank.jsonl   all rows, with `group` and `split`
      data/*.parquet        the same, as datasets.load_dataset reads them
      README.md             the dataset card
      croissant.json        the same for other tools
      manifest.json         counts, pools, protocols, drops, digests of the files
      LICENSE.md, SHA256SUMS

    Runs may be of different pools; their tiers must be the same.

    --push brings the release to the Hugging Face Hub, private unless --public is given; with --dry-run the folder is
    made and what would go is shown. `stepdown push` does the same for a release that is there, and says more.
    """
    if repository is not None:
        check_push(repository, dry_run=dry_run, field="--push")
        url = url or page_of(repository)
    elif given := [
        name for name, value in (("--public", public), ("--dry-run", dry_run), ("--message", message)) if value
    ]:
        raise BadInput("goes with --push", field=given[0])
    settings = PublishSettings(
        name=name or out.resolve().name,
        published=_day(day),
        version=version,
        creator=creator,
        url=url,
        license=terms,
        holdout=validated(Holdout, {"share": holdout, "seed": split_seed}, field="--holdout"),
        allowed_names=frozenset(item.lower() for item in allow_name),
        allowed_paths=frozenset(allow_path),
        without=frozenset(without),
        partial=partial,
    )
    try:
        manifest = publish(runs, out, settings, console.row_ticker())
    except PublishRefused as error:
        for problem in error.problems:
            click.echo(str(problem))
        click.echo(f"stepdown: not published: {error.problems.counted()}", err=True)
        sys.exit(2)
    for split, counts in manifest.splits.items():
        click.echo(f"{split}: {counts.rows} rows, {counts.instances} instances, {counts.groups} groups")
    if holdout and len(manifest.splits) < 2:
        click.echo("the groups are too few for this holdout: all are in one split (try --split-seed)", err=True)
    for allowed, rows in manifest.allowed_names.items():
        click.echo(f"allowed: {printable(allowed)} in {rows} rows")
    click.echo(printable(str(out)))
    if repository is not None:
        push_release(out, repository, public=public, dry_run=dry_run, message=message)


def _day(text: str | None) -> str:
    if text is None:
        return datetime.now(UTC).strftime("%Y-%m-%d")
    try:
        return datetime.strptime(text, "%Y-%m-%d").strftime("%Y-%m-%d")
    except ValueError:
        raise BadInput("must be a day, YYYY-MM-DD", field="--date") from None
