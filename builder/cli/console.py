"""What a person sees: progress while a build runs, and the tables at its end. Nothing hostile reaches a terminal."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from stepdown.builder.artifacts.summary import Summary
from stepdown.builder.common.secrets import SECRETS
from stepdown.builder.common.tables import Table
from stepdown.builder.common.text import printable, without_particulars
from stepdown.builder.config.pool import Pool
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.engine.progress import TELLING_INTERVAL, RunProgress, progress_line, ticking
from stepdown.harnesses.own_code import told_of

_LONGEST_NOTICE = 2000
WIDE = 160
"""Columns of a wide table that is piped."""


def stdout() -> Console:
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def stderr() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


def wide() -> Console:
    """Standard output for tables of many columns: what is piped is not made to fit a screen."""
    console = stdout()
    if not console.is_terminal:
        console.width = WIDE
    return console


def percents(low: float, high: float) -> str:
    """An interval of shares, in percent.

    >>> percents(0.9155, 0.9996)
    '91.5–100.0'
    """
    return f"{100 * low:.1f}–{100 * high:.1f}"


def name_foreign_code(protocol: ProtocolConfig) -> None:
    """A config is code where it names a workload of one's own: say so before it is loaded."""
    for workload in protocol.workloads:
        if workload.is_own_code:
            place = told_of(workload.harness.partition(":")[0], workload.folder)
            told = f"loading workload {workload.harness}{f' from {place}' if place else ''}: its code runs here"
            click.echo(printable(told, longest=1000), err=True)
    if protocol.hints.may_be_own_code:
        name_policy_code(protocol.hints.policy or "", protocol.hints.folder)


def name_policy_code(named: str, folder: Path | None = None) -> None:
    """A policy `module:Class` is code: say so, and where it lies, before it is loaded."""
    from stepdown.routing.policies.loading import own_module

    if module := own_module(named):
        place = told_of(module, folder)
        told = f"loading policy {named}{f' from {place}' if place else ''}: its code runs here"
        click.echo(printable(told, longest=1000), err=True)


def row_ticker() -> Callable[[int], None]:
    """Says on standard error now and then how many rows have been looked at."""
    last = time.monotonic()

    def tell(rows: int) -> None:
        nonlocal last
        if rows % 256 == 0 and time.monotonic() - last >= TELLING_INTERVAL:
            last = time.monotonic()
            click.echo(f"{rows} rows", err=True)

    return tell


_redrawn: list[Console] = []
"""The console on which progress is being redrawn, if there is one: whatever passes it by would be drawn over."""


def notify(line: str) -> None:
    """Print a line on standard error, whole, and above the progress that is redrawn there."""
    console = _redrawn[-1] if _redrawn else stderr()
    console.print(Text(printable(SECRETS.hidden(line), longest=_LONGEST_NOTICE)), soft_wrap=True)


@contextmanager
def show_progress(progress: RunProgress) -> Iterator[None]:
    """Show progress on standard error: redrawn on a terminal, else a line now and then; notices at once."""
    console = stderr()
    progress.notify = notify
    if console.is_terminal:
        with Live(get_renderable=lambda: Text(progress_line(progress)), console=console, refresh_per_second=4):
            _redrawn.append(console)
            try:
                yield
            finally:
                _redrawn.remove(console)
        return
    with ticking(TELLING_INTERVAL, lambda: console.print(progress_line(progress))):
        yield
    console.print(progress_line(progress))


def label_table(summary: Summary, pool: Pool) -> Table:
    """Labels by workload and tier."""
    tiers = [tier.name for tier in pool.tiers]
    rows = (
        (benchmark, summary.instances[benchmark], sum(counts.values()), *(counts[tier] for tier in tiers))
        for benchmark, counts in sorted(summary.labels.items())
    )
    return Table("labels", ("workload", "instances", "steps", *tiers), tuple(tuple(map(str, row)) for row in rows))


def held_back(summary: Summary) -> Iterator[str]:
    """A line for each reason why instances have no rows; of those that differ in particulars only, the first."""
    for word, groups in (("blocked", summary.blocked), ("dropped", summary.drops)):
        for benchmark, reasons in sorted(groups.items()):
            said: dict[str, str] = {}
            counts: Counter[str] = Counter()
            for reason, count in sorted(reasons.items()):
                counts[said.setdefault(without_particulars(reason), reason)] += count
            for reason, count in counts.items():
                yield f"{word}: {count} of {printable(benchmark)}: {printable(reason)}"
    if summary.unfinished:
        yield f"unfinished: {summary.unfinished}"
