"""`stepdown status`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import click

from stepdown.builder.common.text import printable
from stepdown.builder.config.operation import Budget, OperationConfig
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.config.validation import validated
from stepdown.builder.errors import BadInput
from stepdown.builder.run.budget import Spent, read_spent
from stepdown.builder.run.folder import is_run
from stepdown.builder.run.ledger import InstanceState, Ledger
from stepdown.builder.run.ledger.database import FILE_NAME as LEDGER_NAME


@click.command("status")
@click.argument("run", type=click.Path(path_type=Path))
def command(run: Path) -> None:
    """Say where RUN stands: instances by state, labels so far, what is blocked and why, what was spent.

    Reads only; a build may be working on the run meanwhile.
    """
    if not is_run(run):
        raise BadInput("no run is here", file=run)
    ledger = Ledger(run, read_only=True)
    try:
        for line in status_lines(ledger, run):
            click.echo(line)
    finally:
        ledger.close()


def spent_line(paid: Spent, budget: Budget) -> str:
    """What a run has paid, beside its budget where it has one.

    >>> spent_line(Spent(7, 0.25), Budget(calls=10))
    'paid: 7 of 10 calls, $0.2500'
    """
    calls = f"{paid.calls}{f' of {budget.calls}' if budget.calls is not None else ''} calls"
    usd = f"${paid.usd:.4f}{f' of ${budget.usd:.4f}' if budget.usd is not None else ''}"
    seconds = f"; at most {budget.wall_clock:g} seconds a process" if budget.wall_clock is not None else ""
    return f"paid: {calls}, {usd}{seconds}"


def status_lines(ledger: Ledger, folder: Path) -> Iterator[str]:
    """Where a run stands, from its folder alone."""
    run = ledger.find_run()
    if run is None:
        yield "not begun"
        return
    protocol, counts = run.protocol, ledger.counts()
    yield f"pool {printable(protocol['pool']['version'])}"
    yield "instances: " + ", ".join(f"{counts.get(state, 0)} {state.value}" for state in InstanceState)
    names = [tier["name"] for tier in protocol["pool"]["tiers"]]
    labels: dict[str, Counter[str]] = defaultdict(Counter)
    for record in ledger.instances(InstanceState.DONE):
        labels[record.benchmark].update(names[lock.tier] for lock in record.locks)
    for benchmark, tiers in sorted(labels.items()):
        yield f"labels of {printable(benchmark)}: " + ", ".join(f"{tiers[name]} {printable(name)}" for name in names)
    where = folder / LEDGER_NAME
    models = validated(ProtocolConfig, protocol, file=where).models
    budget = validated(OperationConfig, run.operation, file=where).budget
    yield spent_line(read_spent(folder, ledger, models), budget)
    yield f"errors before retries: {ledger.retried_errors()}"
    for record in ledger.instances(InstanceState.BLOCKED, InstanceState.DROPPED):
        yield f"{record.state.value}: {printable(record.benchmark)}/{printable(record.instance_id)}: " + printable(
            record.reason
        )
