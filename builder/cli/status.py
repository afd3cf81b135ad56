"""`stepdown status`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from stepdown.builder.cli.documents import as_json_option, print_document
from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput
from stepdown.builder.inspect.status import HeldBackGroup, ProbeStatus, RunStatus, read_status
from stepdown.builder.run.ledger import InstanceState
from stepdown.builder.run.nodes import NodeSeen, NodesSeen
from stepdown.builder.run.spent import ModelSpent, Spent

WATCHING = 2.0
"""Seconds between two looks."""
SHOWN = 3
"""So many ids, and so many different words of a checker, are shown of a reason."""


@click.command("status")
@click.argument("run", type=click.Path(path_type=Path))
@as_json_option
@click.option("--watch", is_flag=True, help="Show it anew every few seconds, until all is labelled and probed.")
def command(run: Path, as_json: bool, watch: bool) -> None:
    """Say where RUN stands: instances by state, what is blocked or dropped and why, labels so far, what was spent.

    Instances without labels are grouped by reason, with a few of their ids; `stepdown explain RUN ID` has all of one.
    Reads only; a build may be working on the run meanwhile.
    """
    if as_json and watch:
        raise BadInput("shows lines for people, and --json is one document: name one of them", field="--watch")
    if as_json:
        status = read_status(run)
        print_document({"begun": status is not None, **(_document(status) if status is not None else {})})
    elif watch:
        _watch(run)
    else:
        _show(read_status(run))


def _show(status: RunStatus | None) -> None:
    for line in status_lines(status):
        click.echo(line)


def _document(status: RunStatus) -> dict[str, Any]:
    return {field.name: getattr(status, field.name) for field in fields(status)} | {"finished": status.is_finished}


def _watch(run: Path) -> None:
    """Show the status whenever it has changed: in place of the last one on a terminal, below it elsewhere."""
    last: list[str] | None = None
    while True:
        status = read_status(run)
        lines = list(status_lines(status))
        if lines != last:
            click.clear()  # nothing where this is no terminal
            for line in lines:
                click.echo(line)
            last = lines
        if status is not None and not status.instances.get(InstanceState.OPEN.value, 0) and not _is_probing(status):
            return
        time.sleep(WATCHING)


def _is_probing(status: RunStatus) -> bool:
    return status.probes is not None and status.probes.left > status.probes.technical


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


def model_line(spent: ModelSpent) -> str:
    """What a run has paid to a model, beside what its gateway says, and how far the list price rests on estimates.

    >>> model_line(ModelSpent("m", 7, 0.25, 0.2, 6, 1))
    '7 calls, $0.2500 at list price; reported by its gateway: $0.2000 for 6 calls; tokens estimated of 1 call'
    """
    line = f"{_calls(spent.calls)}, ${spent.usd:.4f} at list price"
    if spent.reported_calls:
        line += f"; reported by its gateway: ${spent.reported_usd:.4f} for {_calls(spent.reported_calls)}"
    if spent.estimated_calls:
        line += f"; tokens estimated of {_calls(spent.estimated_calls)}"
    if spent.usage.cache_read or spent.usage.cache_write:
        line += (
            f"; of {spent.usage.prompt:,} prompt tokens {spent.usage.cache_read:,} read from and "
            f"{spent.usage.cache_write:,} written to its provider's cache"
        )
    return line


def _calls(count: int) -> str:
    return f"{count} call{'s' if count != 1 else ''}"


def status_lines(status: RunStatus | None) -> Iterator[str]:
    """A run's status as lines of text."""
    if status is None:
        yield "not begun"
        return
    yield f"pool {printable(status.pool)}"
    yield "instances: " + ", ".join(f"{count} {state}" for state, count in status.instances.items())
    for group in status.held_back_groups:
        yield from _group_lines(group)
    for benchmark, tiers in status.labels.items():
        counts = ", ".join(f"{count} {printable(name)}" for name, count in tiers.items())
        yield f"labels of {printable(benchmark)}: {counts}"
    if status.probes is not None:
        yield probes_line(status.probes)
    yield spent_line(status.paid, status.budget)
    for spent in status.paid_by_model:
        if spent.reported_calls or spent.estimated_calls or spent.usage.cache_read or spent.usage.cache_write:
            yield f"  {printable(spent.model)}: {model_line(spent)}"
    if status.in_vain.calls:
        yield f"of it for trials run ahead in vain: {_calls(status.in_vain.calls)}, ${status.in_vain.usd:.4f}"
    yield f"errors before retries: {status.errors_retried}"
    if status.nodes is not None:
        yield from nodes_lines(status.nodes)


def probes_line(probes: ProbeStatus) -> str:
    """How far the steps are probed.

    >>> probes_line(ProbeStatus("all", 80, 77, 2))
    'probes of all steps: 77 of 80 outcomes; 2 technical, which a resume tries again'
    """
    steps = "all steps" if probes.steps == "all" else "last steps"
    technical = f"; {probes.technical} technical, which a resume tries again" if probes.technical else ""
    return f"probes of {steps}: {probes.told} of {probes.cells} outcomes{technical}"


def nodes_lines(seen: NodesSeen) -> Iterator[str]:
    """The machines that work on a run: what each has in hand, how fast it calls, and where its log is."""
    if seen.is_current:
        nodes = [node for node in seen.nodes if node.is_open]
        in_hand, rate = sum(len(node.in_hand) for node in nodes), sum(node.calls_per_second for node in nodes)
        yield f"nodes: {len(nodes)}, {in_hand} instances in hand, {rate:.1f} calls/s"
    else:
        at = f"{datetime.fromtimestamp(seen.written):%Y-%m-%d %H:%M:%S}"
        yield f"nodes: none at work; {'the work ended' if seen.ended else 'their head was last heard of'} at {at}"
    for node in seen.nodes:
        yield f"  {_node_line(node, seen.is_current)}"
        for log in node.logs[:SHOWN]:
            yield f"    log, on that machine: {printable(log)}"
        if (others := len(node.logs) - SHOWN) > 0:
            yield f"    and {others} more beside them"


def _node_line(node: NodeSeen, is_current: bool) -> str:
    line = f"{printable(node.address)} ({printable(node.machine)}): {_calls(node.calls)}"
    if not node.is_open:
        return f"{line}; gone"
    if not is_current:
        return line
    shown = f": {_few([printable(one) for one in node.in_hand])}" if node.in_hand else ""
    return f"{line}, {node.calls_per_second:.1f} calls/s, {len(node.in_hand)} in hand{shown}"


def _group_lines(group: HeldBackGroup) -> Iterator[str]:
    """Why instances are held back, which ones, and what the checker said of them."""
    count, again = len(group.instances), "; a resume tries again" if group.state == "blocked" else ""
    yield f"{group.state}: {count} of {printable(group.benchmark)}{again}: {printable(group.reason)}"
    yield f"  {_few([printable(f'{group.benchmark}/{one}') for one in group.instances])}"
    for words, times in list(group.said.items())[:SHOWN]:
        yield f"  {times} of them: {printable(words, longest=200)}"
    if (others := len(group.said) - SHOWN) > 0:
        yield f"  and {others} other words of the checker"


def _few(names: Sequence[str]) -> str:
    """
    >>> _few(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
