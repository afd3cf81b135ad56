"""`stepdown audit serve`."""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepdown.builder.common.extras import require
from stepdown.builder.common.signals import handle_end_signals
from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput

if TYPE_CHECKING:
    from stepdown.audit.store import AuditStore

NEEDED = ("fastapi", "jinja2", "python_multipart", "uvicorn")


@click.command("serve")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--reviewers",
    metavar="NAME,...",
    help="Who reviews; each gets a link and a queue of their own. Default: the reviewers whom the audit knows, "
    "else your login name.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="The port on 127.0.0.1; 0 takes a free one.",
)
def command(run: Path, reviewers: str | None, port: int) -> None:
    """Show the sampled steps of RUN in a browser, one after the other, and record the reviewers' verdicts.

    Prints a link for each reviewer; open it on this machine. The link holds a secret: whoever has it reviews under
    that name. Every verdict is on disk before the page goes on, so the server may end at any time. Ctrl-C ends it. When
    it is started again, it prints new links, and each reviewer goes on at the first open step.

    The steps come from `stepdown audit sample RUN`. Those whose label is the lowest tier settle themselves and are not
    shown. In the page, `?` shows the keys.
    """
    require("audit", *NEEDED)
    from stepdown.audit.cases import open_cases
    from stepdown.audit.store import AuditStore
    from stepdown.audit.web.server import reviewer_access, serve

    with open_cases(run) as cases, AuditStore(run) as store:
        if not store.count():
            raise BadInput(f"nothing is sampled yet: stepdown audit sample {run}", file=run)
        if not store.count_to_review():
            told = "all sampled steps have the lowest label and settle themselves: nobody is to be asked"
            click.echo(printable(f"{told}; go on with stepdown audit apply {run}"), err=True)
            return
        names = list(_names(reviewers, store.reviewers.names()))
        accesses = [reviewer_access(name) for name in names]
        with serve(store, cases, accesses, _report_error, port) as server, handle_end_signals(server.stop):
            for access in accesses:
                store.reviewers.join(access.name)
                click.echo(f"{_progress_text(store, access.name)}: {access.link(server.port)}")
            click.echo("open a link in a browser on this machine; Ctrl-C ends the server", err=True)
            server.wait()
        for name in names:
            click.echo(f"ended; {_progress_text(store, name)}", err=True)


def _progress_text(store: AuditStore, reviewer: str) -> str:
    progress = store.progress(reviewer)
    return f"{printable(reviewer)} ({progress.done} of {progress.total} reviewed)"


def _names(given: str | None, known: Sequence[str]) -> Iterator[str]:
    """The reviewers, each once. Raises BadInput."""
    from stepdown.audit.verdicts import reviewer_name

    seen = set()
    for part in given.split(",") if given is not None else known or [getpass.getuser()]:
        name = reviewer_name(part, field="--reviewers")
        if name in seen:
            raise BadInput(f"{name!r} is named twice", field="--reviewers")
        seen.add(name)
        yield name


def _report_error(error: Exception) -> None:
    click.echo(f"stepdown: a page failed: {printable(f'{type(error).__name__}: {error}')}", err=True)
