"""`stepdown cache stats`, `prune` and `verify`."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from stepdown.builder.cache.inventory import Inventory, StoredEntry
from stepdown.builder.cli.documents import as_json_option, print_document
from stepdown.builder.common.text import printable
from stepdown.builder.inspect.pruning import EntryTotal, Pruning
from stepdown.builder.run.folder import cache_of, open_for_reading, open_for_work
from stepdown.builder.run.ledger import InstanceState
from stepdown.builder.run.reading import is_run

CORRUPT = 2


@click.group("cache")
def command() -> None:
    """Look into a response cache, check it, and remove what no run needs any more."""


def _find_cache(path: Path) -> Path:
    """The cache of a run, where `path` is a run; else `path` itself."""
    if not is_run(path):
        return path
    with open_for_reading(path) as (ledger, _):
        return cache_of(path, ledger)


_dir_argument = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))


@dataclass
class _Paid(EntryTotal):
    """The entries that one run paid for, and when."""

    first: float = float("inf")
    last: float = 0.0

    def add(self, item: StoredEntry) -> None:
        super().add(item)
        self.first, self.last = min(self.first, item.stored), max(self.last, item.stored)


@command.command()
@_dir_argument
@as_json_option
def stats(folder: Path, as_json: bool) -> None:
    """Count the entries of the cache in DIR, a cache's folder or a run's, by the run that paid for them."""
    paid: dict[str, _Paid] = defaultdict(_Paid)
    total, unreadable = EntryTotal(), 0
    with Inventory(_find_cache(folder)) as inventory:
        for item in inventory.read_entries():
            total.add(item)
            if item.entry is None:
                unreadable += 1
            else:
                paid[item.entry.run].add(item)
        on_disk = inventory.bytes_on_disk()
    ordered = sorted(paid.items(), key=lambda pair: pair[1].first)
    if as_json:
        runs = [
            {"run": run, "entries": one.entries, "bytes": one.size, "first": _day(one.first), "last": _day(one.last)}
            for run, one in ordered
        ]
        about = {"entries": total.entries, "bytes": total.size, "bytes_on_disk": on_disk, "unreadable": unreadable}
        print_document({**about, "paid_by": runs})
        return
    click.echo(f"entries: {total.entries}, {total.size} bytes; on disk: {on_disk} bytes")
    if unreadable:
        click.echo(f"unreadable: {unreadable}; `stepdown cache verify` names them")
    for run, amount in ordered:
        when = f"{_day(amount.first)} to {_day(amount.last)}"
        click.echo(f"paid by run {printable(run, 64)}: {amount.entries} entries, {amount.size} bytes, {when}")


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


@command.command()
@click.argument("run", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Remove the entries; without it they are counted only.")
@as_json_option
def prune(run: tuple[Path, ...], yes: bool, as_json: bool) -> None:
    """Keep what the RUNs need of the one cache that they share, and remove all else.

    Every response is kept that any trial, hint or seed of the named runs used, and all that an unfinished run paid for
    and has not used yet. Name every run that is to stay cheap to resume or relabel: the others' responses go.
    """
    with ExitStack() as stack:
        folders = {path.resolve(): path for path in run}
        named = [stack.enter_context(open_for_work(path)) for path in folders.values()]
        pruning = Pruning(named)
        stack.callback(pruning.close)
        for one in named:
            if one.origin and one.ledger.counts().get(InstanceState.OPEN, 0):
                click.echo(
                    f"{printable(str(one.path))} is unfinished: responses of the run that it relabels go, where it has "
                    "not used them yet",
                    err=as_json,
                )
        plan = pruning.plan
        if as_json:
            if yes:
                pruning.carry_out()
            print_document(
                {"cache": pruning.folder, "removed": yes, "kept": plan.kept, "going": plan.going, "by_run": plan.by_run}
            )
            return
        click.echo(f"cache {printable(str(pruning.folder))}: {_amount(plan.kept)} stay, {_amount(plan.going)} go")
        _show(plan.by_run)
        if yes:
            pruning.carry_out()
            click.echo(f"removed: {_amount(plan.going)}")
        elif plan.going.entries:
            click.echo("nothing was removed: --yes removes them")


def _show(by_run: Mapping[str, EntryTotal]) -> None:
    for payer, amount in sorted(by_run.items()):
        whose = f"paid by run {printable(payer, 64)}" if payer else "unreadable"
        click.echo(f"goes: {_amount(amount)}, {whose}")


def _amount(amount: EntryTotal) -> str:
    return f"{amount.entries} entries ({amount.size} bytes)"


@command.command()
@_dir_argument
@as_json_option
def verify(folder: Path, as_json: bool) -> None:
    """Read every entry of the cache in DIR, a cache's folder or a run's; name those that are corrupt.

    A corrupt entry is never served: its question is asked again. Exit code 2 where there is one.
    """
    total, corrupt = 0, list[dict[str, str]]()
    with Inventory(_find_cache(folder)) as inventory:
        for item in inventory.read_entries():
            total += 1
            if item.problem:
                corrupt.append({"place": str(item.place), "key": item.key or "", "problem": item.problem})
                if not as_json:
                    click.echo(printable(f"corrupt: {item.place} ({item.key or 'no key'}): {item.problem}"))
    if as_json:
        print_document({"entries": total, "corrupt": corrupt})
    else:
        click.echo(f"{total} entries, {len(corrupt)} corrupt")
    if corrupt:
        sys.exit(CORRUPT)
