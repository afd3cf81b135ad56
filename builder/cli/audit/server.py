"""`stepdown audit push` and `stepdown audit pull`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import get_args

import click

from stepdown.audit.cases import open_cases
from stepdown.audit.servers.base import ReviewServer, ServerFailed
from stepdown.audit.servers.link import KEYS, ServerLink, Tool, keep_link, kept_link, name_for, server_link
from stepdown.audit.servers.pushing import pull_answers, push_steps
from stepdown.audit.store import AuditStore
from stepdown.builder.cli import console
from stepdown.builder.cli.audit.exchange import tell_of_answers
from stepdown.builder.common.extras import require
from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput

_run = click.argument("run", type=click.Path(path_type=Path))


@click.command("push")
@_run
@click.argument("address", required=False)
@click.option("--tool", type=click.Choice(get_args(Tool)), help="What runs at ADDRESS.")
@click.option("--name", help="Of the data set or project there; `stepdown-` and the run's folder where none is given.")
@click.option("--workspace", default="", help="Of the data set in Argilla; the account's first where none is given.")
@click.option(
    "--key",
    default="",
    metavar="VARIABLE",
    help=f"The variable that holds the account's key: {' or '.join(KEYS.values())} where none is named.",
)
@click.option(
    "--answers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many people the tool asks about a step that is assigned to nobody, before it counts as done there.",
)
def _push(
    run: Path, address: str | None, tool: Tool | None, name: str | None, workspace: str, key: str, answers: int
) -> None:
    """Bring the sampled steps of RUN to an Argilla or Label Studio server, where people review them.

    \b
      stepdown audit push runs/q http://127.0.0.1:6900 --tool argilla   the first time
      stepdown audit push runs/q                                        the steps that were sampled since
      stepdown audit pull runs/q                                        what reviewers have answered

    The data set or project is made where there is none. A step that is there already is not sent again, so after an
    interruption the same command goes on. What is sent is what a reviewer may see: no model's name, no verdict of
    anybody, no pre-label. The audit remembers the server, and of the key only the variable's name.

    A step that was shared out (`audit sample --reviewers`) goes as a record for each of its reviewers, who filter by
    their name. Any other step goes once, and whoever answers it there is its reviewer.
    """
    with open_cases(run) as cases, AuditStore(run) as store:
        if not store.count():
            raise BadInput(f"nothing is sampled yet: stepdown audit sample {run}", file=run)
        link = _link(store, run, address, tool, name, workspace, key, answers)
        with _stopping(), _opened(link) as server:
            keep_link(store, link)
            pushed = push_steps(store, cases, server, _tell)
    click.echo(printable(f"{pushed.new} records pushed, {pushed.there} were there: {server.place}"))


@click.command("pull")
@_run
def _pull(run: Path) -> None:
    """Take what reviewers submitted on the server, to which `audit push` brought the steps, into the audit of RUN.

    Every answer is checked as `audit import` checks a file's. Only what is new is taken, so the command can be given
    again at any time. A reviewer is known by the step's own name where it was shared out, else by the account: the user
    name in Argilla, the e-mail address in Label Studio. What a reviewer has said elsewhere since stands, and an answer
    that was changed on the server is taken anew.

    An answer that can not be taken is named, and the others are taken all the same; the exit code is then 2. Drafts,
    discarded and cancelled answers are counted and named.
    """
    with open_cases(run) as cases, AuditStore(run) as store:
        link = kept_link(store)
        if link is None:
            raise BadInput(f"no server is known: stepdown audit push {run} ADDRESS --tool TOOL", file=run)
        with _stopping(), _opened(link) as server:
            found = pull_answers(store, cases, server, link.tool)
    for problem in found.problems:
        click.echo(f"stepdown: {printable(problem, longest=2000)}", err=True)
    click.echo(f"{len(found.verdicts)} verdicts taken, {found.unchanged} stood already")
    tell_of_answers(found)
    if found.older:
        click.echo(f"{found.older} answers were changed elsewhere since: what was said last stands", err=True)
    if found.problems:
        click.echo(f"stepdown: {len(found.problems)} answers could not be taken", err=True)
        sys.exit(2)


def _link(
    store: AuditStore,
    run: Path,
    address: str | None,
    tool: Tool | None,
    name: str | None,
    workspace: str,
    key: str,
    answers: int,
) -> ServerLink:
    """The server that was named, or else the one that the audit remembers. Raises BadInput."""
    if address is None:
        kept = kept_link(store, key)
        if kept is None:
            raise BadInput("where to? name the server: stepdown audit push RUN ADDRESS --tool TOOL", field="ADDRESS")
        return server_link(
            tool or kept.tool,
            kept.address,
            name or kept.name,
            kept.key,
            workspace or kept.workspace,
            kept.answers,
        )
    if tool is None:
        raise BadInput(f"say what runs at {address}: {' or '.join(get_args(Tool))}", field="--tool")
    return server_link(tool, address, name or name_for(run.resolve().name), key, workspace, answers)


def _opened(link: ServerLink) -> AbstractContextManager[ReviewServer]:
    if link.tool == "argilla":
        link.read_key()  # told before the SDK is loaded, which takes seconds
        require("argilla", "argilla")
        from stepdown.audit.servers.argilla import open_argilla

        return open_argilla(link)
    from stepdown.audit.servers.label_studio import open_label_studio

    return open_label_studio(link)


@contextmanager
def _stopping() -> Iterator[None]:
    try:
        yield
    except ServerFailed as error:
        from stepdown.builder.cli.labelling import WORK_LEFT

        console.notify(f"stepdown: {error}")
        sys.exit(WORK_LEFT)


def _tell(done: int, total: int) -> None:
    if done < total or sys.stderr.isatty():
        click.echo(f"{done} of {total} records", err=True)


commands = (_push, _pull)
