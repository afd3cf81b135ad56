"""`stepdown audit apply` and `stepdown audit undo`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from stepdown.audit import revisions
from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput

_run = click.argument("run", type=click.Path(path_type=Path))


@click.command("apply")
@_run
def _apply(run: Path) -> None:
    """Apply the reviewers' verdicts to RUN's labels, as a new revision in RUN/revisions.

    `further-downgradeable` lowers a label by exactly one tier. Later prefixes stay as they were executed, and the
    evidence says "audit", with who, when and why. A whole instance is held back where one of its sampled steps is
    `uncertain` or not reviewed yet, or where its reviewers disagree and no further reviewer has settled it. A step
    whose label is the lowest tier settles itself: nobody is waited for.

    The run's own files are not touched. A revision is made from them, never from another revision. `stepdown audit
    undo` takes the newest one back.
    """
    manifest = revisions.apply(run)
    for line in _summary_lines(manifest["audit"]):
        click.echo(printable(line))
    click.echo(printable(str(run / revisions.FOLDER / str(manifest["audit"]["revision"]))))


def _summary_lines(audit: Mapping[str, Any]) -> list[str]:
    lines = [
        f"revision {audit['revision']}: {audit['sampled']} steps sampled, {audit['lowest']} at the lowest tier settle "
        f"themselves, {audit['settled'] - audit['lowest']} settled by {audit['reviewers']} reviewers, "
        f"{audit['lowered']} labels lowered by one tier"
    ]
    if waiting := audit["unsettled"] - audit["disputed"]:
        lines.append(f"not settled: {waiting} steps wait for reviewers: stepdown audit serve RUN, then apply again")
    if disputed := audit["disputed"]:
        ask = "stepdown audit sample RUN --settle NAME gives them to one more, then apply again"
        lines.append(f"not settled: on {disputed} steps reviewers disagree: {ask}")
    return lines + [f"held back: {count} instances: {reason}" for reason, count in audit["held_back"].items()]


@click.command("undo")
@_run
def _undo(run: Path) -> None:
    """Take the newest revision of RUN back, so that the one before it, or the run's own files, count again.

    Its files are kept.
    """
    number = revisions.undo(run)
    click.echo(f"revision {number} is taken back")
    try:
        click.echo(printable(f"a release now takes its files from {revisions.current_files(run)}"))
    except BadInput as error:  # the revision that counts now may be of an earlier state of the run
        click.echo(printable(f"a release can not take the files that count now: {error}", longest=2000), err=True)


commands = (_apply, _undo)
