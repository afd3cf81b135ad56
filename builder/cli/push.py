"""`stepdown push`, and what `stepdown publish --push` does after it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from stepdown.builder.cli import console
from stepdown.builder.common.extras import require
from stepdown.builder.common.tables import Table, print_table
from stepdown.builder.common.text import printable
from stepdown.releases.hub import PushStopped, Shipment, check_repository, hub_address, in_bytes, prepare, push
from stepdown.releases.verify import verify

public_option = click.option(
    "--public", is_flag=True, help="For everybody to see; a repository is private where this is not given."
)
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show what would go, and where; needs no network and no token."
)
message_option = click.option(
    "--message", default="", help="Of the commit; its name, version and counts where none is given."
)


@click.command("push")
@click.argument("release", type=click.Path(path_type=Path))
@click.argument("repository", metavar="ORG/NAME")
@public_option
@dry_run_option
@message_option
def command(release: Path, repository: str, public: bool, dry_run: bool, message: str) -> None:
    """Bring the folder RELEASE to the Hugging Face Hub, as the data set ORG/NAME.

    \b
      stepdown push releases/may example-lab/step-tiers --dry-run   what would go
      stepdown push releases/may example-lab/step-tiers             private: look at it there
      stepdown push releases/may example-lab/step-tiers --public    the same, now for everybody

    The release is verified first. All goes in one commit, which is tagged with the release's version; what is there
    already is not sent again, so after an interruption the same command goes on. Another version of the same release
    becomes a further commit. A repository that holds anything else is left alone, and so is a version that is there
    with other content.

    The token is that of `hf auth login`, or HF_TOKEN; it needs the right to write. HF_ENDPOINT names another Hub.

    Exit codes: 0 it is there, 2 something must be mended first, 3 the Hub or the network failed: run it again.
    """
    check_push(repository, dry_run=dry_run, field="ORG/NAME")
    push_release(release, repository, public=public, dry_run=dry_run, message=message)


def check_push(repository: str, *, dry_run: bool, field: str) -> None:
    """What can be known before any work is done. Raises BadInput."""
    check_repository(repository, field)
    hub_address()
    if not dry_run:
        require("hub", "huggingface_hub")


def push_release(release: Path, repository: str, *, public: bool, dry_run: bool, message: str) -> None:
    """Verify a release and push it, or show what would be pushed. Ends the program where it can not go."""
    found = verify(release, console.row_ticker())
    if found.problems:
        for problem in found.problems:
            click.echo(str(problem))
        click.echo(f"stepdown: not pushed: {found.problems.counted()}", err=True)
        sys.exit(2)
    shipment = prepare(release, repository, public=public, message=message)
    if dry_run:
        _show(shipment)
        return
    _quiet_unless_seen()
    try:
        arrived = push(shipment, console.notify)
    except PushStopped as error:
        from stepdown.builder.cli.labelling import WORK_LEFT  # loads the engine: not for a push that goes well

        console.notify(f"stepdown: {error}")
        sys.exit(WORK_LEFT)
    if not arrived.sent and not arrived.removed:
        click.echo(f"nothing to send: all {len(shipment.files)} files are there", err=True)
    if arrived.removed:
        click.echo(printable(f"no longer there: {', '.join(arrived.removed)}", longest=2000), err=True)
    if shipment.public and arrived.private:
        click.echo("the repository is still private", err=True)
    elif not arrived.private and not shipment.public:
        click.echo("the repository is public already", err=True)
    if shipment.tag is None:
        click.echo(printable(f"no tag: {shipment.manifest.version!r} can not be the name of one"), err=True)
    tagged = f", version {shipment.tag}" if shipment.tag else ""
    seen = "private" if arrived.private else "public"
    click.echo(printable(f"{shipment.page} ({seen}{tagged}, commit {arrived.commit[:12]})"))


def _show(shipment: Shipment) -> None:
    """All that a push would do."""
    rows = tuple((file.name, in_bytes(file.bytes), file.sha256[:12]) for file in shipment.files)
    out = console.stdout()
    print_table(out, Table("files", ("file", "size", "sha256"), rows))
    lines = (
        f"{len(shipment.files)} files, {in_bytes(shipment.bytes)}, less what is there already",
        f"to: {shipment.page} ({'public' if shipment.public else 'private, unless it is public already'})",
        f"commit: {shipment.message}",
        f"tag: {shipment.tag}" if shipment.tag else f"no tag: {shipment.manifest.version!r} can not be the name of one",
        "dry run: nothing was sent",
    )
    for line in lines:
        out.print(printable(line), markup=False)


def _quiet_unless_seen() -> None:
    """The client's bars are for a terminal, and its warnings of retries are for a person who waits."""
    from huggingface_hub.utils import disable_progress_bars

    if not sys.stderr.isatty():
        disable_progress_bars()
