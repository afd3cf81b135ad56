"""`stepdown relabel`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Protocol

import click

from builder import bill, relabel, runs
from builder import config as configs
from builder.ledger import State
from builder.seeds import DEPARTED
from builder.text import printable


class Label(Protocol):
    """What labels a run's open instances, reports, and exits with code 3 where work is left."""

    def __call__(self, folder: Path, config: configs.Config | None, *, origin: runs.Origin | None) -> None: ...


def command(label: Label) -> click.Command:
    """The command, over the same labelling that `build` and `resume` do."""

    @click.command("relabel")
    @click.argument("old", type=click.Path(path_type=Path))
    @click.option("--config", required=True, type=click.Path(path_type=Path), help="The changed config.")
    @click.option(
        "--run",
        "folder",
        required=True,
        type=click.Path(path_type=Path),
        help="The new version's folder; made if needed.",
    )
    def relabel_command(old: Path, config: Path, folder: Path) -> None:
        """Make a new version of the run OLD under a changed config: another pool, other rules, more instances.

        The same search, answered from OLD's response cache wherever the question is the same: only what the change
        reaches is paid for, and the result is that of a fresh build. The new run shares OLD's cache, also at
        `stepdown resume`; where `operation.cache` names another one, that must hold OLD's responses.

        Instances whose strong model left the strong tier get a new seed; where seeds are imported and there is none by
        a model that is still strong, they are dropped.
        """
        settings = configs.load(config)
        origin = relabel.origin_from(old, folder, settings)
        code: str | int | None = None
        try:
            label(folder, settings, origin=origin)
        except SystemExit as stopped:
            code = stopped.code
        _report(old, folder)
        if code:
            sys.exit(code)

    return relabel_command


def _report(old: Path, folder: Path) -> None:
    with runs.looked_at(folder) as (ledger, protocol):
        for record in ledger.instances(State.DROPPED):
            if record.reason == DEPARTED:
                click.echo(printable(f"dropped: {record.benchmark}/{record.instance_id}: {record.reason}"))
        cost = bill.bill_of(ledger, protocol)
    click.echo(bill_line(cost))
    click.echo(printable(f"what has changed: stepdown diff {old} {folder}"))


def bill_line(cost: bill.Bill) -> str:
    """What a new version cost, in a line.

    >>> bill_line(bill.Bill(paid_calls=2, paid_usd=0.5, needed_calls=9, needed_usd=2.0))
    'paid: 2 calls, $0.5000; list price: 9 calls, $2.0000; saved by the cache: 7 calls, $1.5000'
    """
    return (
        f"paid: {cost.paid_calls} calls, ${cost.paid_usd:.4f}; "
        f"list price: {cost.needed_calls} calls, ${cost.needed_usd:.4f}; "
        f"saved by the cache: {cost.saved_calls} calls, ${cost.saved_usd:.4f}"
    )
