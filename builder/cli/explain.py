"""`stepdown explain`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from stepdown.builder.common.tables import Table, draw
from stepdown.builder.common.text import printable
from stepdown.builder.inspect.explain import Explained, Explanation, explain
from stepdown.builder.records import Verdict
from stepdown.builder.run.reading import open_begun_ledger

COLUMNS = (
    "trial",
    "purpose",
    "tier",
    "model",
    "sample",
    "limit",
    "verdict",
    "length",
    "asked",
    "paid",
    "usd",
    "reason",
)


@click.command("explain")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("row_id")
def command(run: Path, row_id: str) -> None:
    """Show every trial that led to the label of ROW_ID (benchmark/instance_id/step_index) in RUN.

    `length` is that of the trajectory as executed; `asked` are the calls that no earlier trial had asked, `paid` those
    of them that this run paid, `usd` their list price. The rest came from the current trajectory, the cache or an
    earlier trial. Reads only.
    """
    with open_begun_ledger(run) as ledger:
        found = explain(ledger, row_id, run)
    for line in _head(found):
        click.echo(printable(line, longest=2000))
    _print("seed", found.seeds)
    _print("trials", found.trials)


def _head(found: Explanation) -> Iterator[str]:
    instance, tiers = found.instance, found.tiers
    yield f"{instance.benchmark}/{instance.instance_id}/{found.step}"
    if found.lock is not None:
        lock, steps = found.lock, len(instance.locks)
        yield f"label: {tiers[lock.tier]}, locked with {lock.model}; step {found.step} of {steps}"
    else:
        yield f"no label: the instance is {instance.state.value}" + (f": {instance.reason}" if instance.reason else "")
    if instance.seed is not None:
        made = next(trial.record for trial in found.seeds if trial.record.id == instance.seed)
        yield f"seed: trial {made.id}, {made.calls} steps by {made.trial.model}"
    if not found.hint_asked:
        yield "hint: not asked for"
    else:
        yield "hint: " + (tiers[found.hint] if found.hint is not None else "none")


def _print(title: str, trials: Sequence[Explained]) -> None:
    """The trials as a table on a terminal, else as lines of `name=value`; their errors before retries beneath."""
    if not trials:
        click.echo(f"{title}: none")
    elif sys.stdout.isatty():
        from stepdown.builder.cli import console  # what draws takes longer to load than all else here

        rows = tuple(tuple(_cells(trial)) for trial in trials)
        console.stdout().print(draw(Table(title, COLUMNS, rows, words=len(COLUMNS))))
    else:
        click.echo(f"{title}:")
        for trial in trials:
            pairs = zip(COLUMNS, _cells(trial), strict=True)
            click.echo("  " + " ".join(f"{name}={printable(cell)}" for name, cell in pairs))
    for trial in trials:
        for error in trial.record.attempts:
            click.echo(f"  trial {trial.record.id}, before a retry: {printable(error)}")


def _cells(trial: Explained) -> list[str]:
    record, cost = trial.record, trial.cost
    verdict = record.verdict.value
    if record.superseded:
        verdict += ", tried again"
    elif record.verdict is Verdict.PASS and not record.accepted:
        verdict += ", not accepted"
    return [
        str(record.id),
        record.purpose.value,
        trial.tier,
        record.trial.model,
        str(record.trial.sample.number),
        "-" if record.trial.limit is None else str(record.trial.limit),
        verdict,
        str(record.calls),
        str(cost.calls),
        str(cost.paid_calls),
        f"{cost.usd:.6f}",
        record.reason or "-",
    ]
