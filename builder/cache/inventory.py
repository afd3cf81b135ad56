"""Reads all that a response cache holds, entry by entry. It changes nothing, and others may use the cache meanwhile."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepdown.builder.cache.question import is_key
from stepdown.builder.cache.responses import Entry
from stepdown.builder.cache.store import is_cache, is_earlier
from stepdown.builder.cache.stored import PAGE, StoredValue, Values
from stepdown.builder.cache.table import TableValues, is_table
from stepdown.builder.errors import BadInput


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry as it is stored. `key` or `entry` is None where it cannot be read; `problem` then says why."""

    place: str
    """What names it where the key is unreadable: its row, and the file where that is not the cache's own table."""
    key: str | None
    entry: Entry | None
    size: int
    """Bytes of key and value as stored."""
    stored: float
    """Seconds since the epoch."""
    problem: str = ""


class Inventory:
    """The entries of a cache's folder. Raises BadInput where the folder is no cache or cannot be read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if not is_cache(folder):
            raise BadInput("no response cache is here", file=folder)
        self._files = list(_open_files(folder))

    def read_entries(self) -> Iterator[StoredEntry]:
        """Every entry that is there now, read in portions. What others add meanwhile is left out."""
        for file in self._files:
            yield from map(_entry, file.read())

    def count_held(self, keys: Iterable[str]) -> tuple[int, int]:
        """How many of these keys the cache holds, and how many keys these are."""
        found, asked, left = 0, 0, iter(keys)
        while page := list(itertools.islice(left, PAGE)):
            found += len(self._held(page))
            asked += len(page)
        return found, asked

    def read_times(self, keys: Iterable[str]) -> Iterator[float]:
        """When each of these keys that the cache holds was stored, in seconds since the epoch; in no order."""
        left = iter(keys)
        while page := list(itertools.islice(left, PAGE)):
            yield from self._held(page).values()

    def _held(self, page: Sequence[str]) -> dict[str, float]:
        return {key: stored for file in self._files for key, stored in file.held(page).items()}

    def bytes_on_disk(self) -> int:
        """Bytes of all files in the folder, the table's free pages included."""
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    def close(self) -> None:
        for file in self._files:
            file.close()

    def __enter__(self) -> Inventory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open_files(folder: Path) -> Iterator[Values]:
    if is_earlier(folder):
        from stepdown.builder.cache.earlier import EarlierValues  # diskcache is loaded by those who need it

        yield EarlierValues(folder)
    if is_table(folder):
        yield TableValues(folder)


def _entry(found: StoredValue) -> StoredEntry:
    key = found.key if is_key(found.key) else None
    entry, problem = None, found.problem
    if not problem:
        entry, problem = _read_entry(key, found.value)
    return StoredEntry(found.place, key, entry, found.size, found.stored, problem)


def _read_entry(key: str | None, value: Any) -> tuple[Entry | None, str]:
    """The entry of this value, or what is wrong with it."""
    if key is None:
        return None, "its key is not a digest"
    try:
        entry = Entry.from_json(key, value)
    except (ValueError, TypeError, KeyError) as error:
        return None, f"it does not decode: {error}"
    return (entry, "") if is_key(entry.prefix_digest) else (None, "its prefix is not a digest")
