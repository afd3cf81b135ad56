"""`stepdown status`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from stepdown.builder.common.text import printable
from stepdown.builder.inspect.status import RunStatus, read_status
from stepdown.builder.run.spent import Spent


@click.command("status")
@click.argument("run", type=click.Path(path_type=Path))
def command(run: Path) -> None:
    """Say where RUN stands: instances by state, labels so far, what is blocked and why, what was spent.

    Reads only; a build may be working on the run meanwhile.
    """
    for line in status_lines(read_status(run)):
        click.echo(line)


def spent_line(paid: Spent, budget: Mapping[str, float | None]) -> str:
    """What a run has paid, beside its budget where it has one.

    >>> spent_line(Spent(7, 0.25), {"calls": 10})
    'paid: 7 of 10 calls, $0.2500'
    """
    most_calls, most_usd, most_seconds = (budget.get(name) for name in ("calls", "usd", "wall_clock"))
    calls = f"{paid.calls}{f' of {most_calls}' if most_calls is not None else ''} calls"
    usd = f"${paid.usd:.4f}{f' of ${most_usd:.4f}' if most_usd is not None else ''}"
    seconds = f"; at most {most_seconds:g} seconds a process" if most_seconds is not None else ""
    return f"paid: {calls}, {usd}{seconds}"


def status_lines(status: RunStatus | None) -> Iterator[str]:
    """A run's status as lines of text."""
    if status is None:
        yield "not begun"
        return
    yield f"pool {printable(status.pool)}"
    yield "instances: " + ", ".join(f"{count} {state}" for state, count in status.instances.items())
    for benchmark, tiers in status.labels.items():
        counts = ", ".join(f"{count} {printable(name)}" for name, count in tiers.items())
        yield f"labels of {printable(benchmark)}: {counts}"
    yield spent_line(status.paid, status.budget)
    yield f"errors before retries: {status.errors_retried}"
    for one in status.held_back:
        yield f"{one.state}: {printable(one.benchmark)}/{printable(one.instance_id)}: {printable(one.reason)}"
