"""Finds and removes the entries of a response cache that none of the named runs needs."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from stepdown.builder.cache.inventory import Inventory, StoredEntry
from stepdown.builder.cache.store import DiskStore
from stepdown.builder.errors import BadInput
from stepdown.builder.run.folder import RunFolder
from stepdown.builder.run.ledger import InstanceState


@dataclass(slots=True)
class EntryTotal:
    """A number of entries, and their bytes."""

    entries: int = 0
    size: int = 0

    def add(self, item: StoredEntry) -> None:
        self.entries += 1
        self.size += item.size


@dataclass(slots=True)
class PruningPlan:
    """What is kept and what is removed. `by_run` has the latter by the id of the run that paid."""

    kept: EntryTotal = field(default_factory=EntryTotal)
    going: EntryTotal = field(default_factory=EntryTotal)
    by_run: dict[str, EntryTotal] = field(default_factory=dict)


class Pruning:
    """Keeps all that any trial or hint of the runs used, and all that an unfinished run paid for and has not used yet.

    Each run must be open in this process, since another process could use an entry that is about to be removed. Keys
    are kept in a temporary table, so that memory does not grow with the cache. Raises BadInput where the runs do not
    share a cache.
    """

    def __init__(self, runs: Sequence[RunFolder]) -> None:
        self.folder = runs[0].cache_folder
        for run in runs[1:]:
            if run.cache_folder.resolve() != self.folder.resolve():
                raise BadInput(
                    f"it uses another response cache ({run.cache_folder}) than {runs[0].path} ({self.folder})",
                    file=run.path,
                )
        self._working = {run.ledger.meta.run.id for run in runs if _has_work_left(run)}
        self._keys = sqlite3.connect("")
        self._keys.execute("CREATE TABLE used (key TEXT PRIMARY KEY) WITHOUT ROWID")
        self._keys.execute("CREATE TABLE going (key TEXT PRIMARY KEY) WITHOUT ROWID")
        for run in runs:
            self._note("used", run.ledger.call_keys())
        self.plan = self._make_plan()

    def _note(self, table: str, keys: Iterable[str]) -> None:
        self._keys.executemany(f"INSERT OR IGNORE INTO {table} VALUES (?)", ((key,) for key in keys))  # noqa: S608

    def _make_plan(self) -> PruningPlan:
        plan = PruningPlan()
        with Inventory(self.folder) as inventory:
            for item in inventory.read_entries():
                if item.key is None or self._is_needed(item.key, item):
                    plan.kept.add(item)
                    continue
                plan.going.add(item)
                payer = item.entry.run if item.entry else ""
                plan.by_run.setdefault(payer, EntryTotal()).add(item)
                self._note("going", [item.key])
        return plan

    def _is_needed(self, key: str, item: StoredEntry) -> bool:
        if item.entry is not None and item.entry.run in self._working:
            return True
        return self._keys.execute("SELECT 1 FROM used WHERE key = ?", (key,)).fetchone() is not None

    def carry_out(self) -> None:
        """Remove what the plan names, each entry in its own transaction, since others may be using the cache."""
        store = DiskStore(self.folder)
        try:
            for key in self._going():
                store.delete(key)
        finally:
            store.close()

    def _going(self) -> Iterator[str]:
        rows: Iterator[tuple[str]] = self._keys.execute("SELECT key FROM going")
        return itertools.chain.from_iterable(rows)

    def close(self) -> None:
        self._keys.close()


def _has_work_left(run: RunFolder) -> bool:
    counts = run.ledger.counts()
    return bool(counts.get(InstanceState.OPEN, 0) or counts.get(InstanceState.BLOCKED, 0))
