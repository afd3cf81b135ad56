"""`stepdown audit reassign`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from stepdown.audit.revisions import standing_revision
from stepdown.audit.store import AuditStore
from stepdown.audit.verdicts import reviewer_name
from stepdown.builder.common.text import printable


@click.command("reassign")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("giver", metavar="FROM")
@click.argument("takers", metavar="TO[,TO...]")
def command(run: Path, giver: str, takers: str) -> None:
    """Give the steps of RUN that wait for the reviewer FROM to the reviewer TO.

    For a reviewer who has left: a step that waits for somebody holds its instance back. With several TO, each step goes
    to one of them. FROM's verdicts stay, and the audit's log records what was moved. A TO who is new reviews these
    steps and nothing else. Steps that a later `stepdown audit sample` shares out go to TO in FROM's place.

    A step that every TO has already goes to nobody else: it waits for one answer less.
    """
    old = reviewer_name(giver, field="FROM")
    new = [reviewer_name(name, field="TO") for name in takers.split(",")]
    with AuditStore(run) as store:
        moved = store.reviewers.reassign(old, new)
        stands = standing_revision(store)
    counts = Counter(one.taker for one in moved if not one.had)
    shares = ", ".join(f"{counts[name]} to {name}" for name in new)
    click.echo(printable(f"{len(moved)} steps do not wait for {old} any more: {shares}"))
    if had := sum(one.had for one in moved):
        click.echo(printable(f"{had} of them were with {', '.join(new)} already: one answer less is awaited there"))
    if stands is not None:
        click.echo(printable(f"revision {stands[0]} is from before: stepdown audit apply {run}"), err=True)
