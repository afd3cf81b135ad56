"""`stepdown relabel`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from stepdown.builder.cli.labelling import label_and_report
from stepdown.builder.common.text import printable
from stepdown.builder.config.loading import load_config
from stepdown.builder.engine.seeds import DEPARTED
from stepdown.builder.inspect.costs import RunCost, run_cost
from stepdown.builder.inspect.relabel import origin_from
from stepdown.builder.run.folder import open_for_reading
from stepdown.builder.run.ledger import InstanceState


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
def command(old: Path, config: Path, folder: Path) -> None:
    """Make a new version of the run OLD under a changed config: another pool, other rules, more instances.

    The same search, answered from OLD's response cache wherever the question is the same: only what the change
    reaches is paid for, and the result is that of a fresh build. The new run shares OLD's cache, also at
    `stepdown resume`; where `operation.cache` names another one, that must hold OLD's responses.

    Instances whose strong model left the strong tier get a new seed; where seeds are imported and there is none by
    a model that is still strong, they are dropped.
    """
    settings = load_config(config)
    origin = origin_from(old, folder, settings)
    code: str | int | None = None
    try:
        label_and_report(folder, settings, origin=origin)
    except SystemExit as stopped:
        code = stopped.code
    _report(old, folder)
    if code:
        sys.exit(code)


def _report(old: Path, folder: Path) -> None:
    with open_for_reading(folder) as (ledger, protocol):
        for record in ledger.instances(InstanceState.DROPPED):
            if record.reason == DEPARTED:
                click.echo(printable(f"dropped: {record.benchmark}/{record.instance_id}: {record.reason}"))
        cost = run_cost(ledger, protocol)
    click.echo(cost_line(cost))
    click.echo(printable(f"what has changed: stepdown diff {old} {folder}"))


def cost_line(cost: RunCost) -> str:
    """What a new version cost, in a line.

    >>> cost_line(RunCost(paid_calls=2, paid_usd=0.5, needed_calls=9, needed_usd=2.0))
    'paid for labels: 2 calls, $0.5000; list price: 9 calls, $2.0000; saved by the cache: 7 calls, $1.5000'
    """
    return (
        f"paid for labels: {cost.paid_calls} calls, ${cost.paid_usd:.4f}; "
        f"list price: {cost.needed_calls} calls, ${cost.needed_usd:.4f}; "
        f"saved by the cache: {cost.saved_calls} calls, ${cost.saved_usd:.4f}"
    )
