"""Reads all that a response cache holds, entry by entry. It changes nothing, and others may use the cache meanwhile."""

from __future__ import annotations

import itertools
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepdown.builder.cache.question import is_key
from stepdown.builder.cache.responses import Entry
from stepdown.builder.cache.store import COMPRESSION, DATABASE, JsonOnly, is_cache
from stepdown.builder.errors import BadInput

PAGE = 500


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry as it is stored. `key` or `entry` is None where it cannot be read; `problem` then says why."""

    row: int
    """Its place in the cache's table, which names it where the key is unreadable."""
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
        self._disk = JsonOnly(str(folder), compress_level=COMPRESSION)
        with self._report_unreadable():
            address = f"{(folder / DATABASE).resolve().as_uri()}?mode=ro"
            self._db = sqlite3.connect(address, uri=True, isolation_level=None, timeout=60)

    @contextmanager
    def _report_unreadable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise BadInput(f"the response cache can not be read: {error}", file=self._folder) from error

    def _read(self, query: str, values: Iterable[Any] = ()) -> list[Any]:
        with self._report_unreadable():
            return self._db.execute(query, tuple(values)).fetchall()

    def read_entries(self) -> Iterator[StoredEntry]:
        """Every entry that is there now, read in portions. What others add meanwhile is left out."""
        ((end,),) = self._read("SELECT coalesce(max(rowid), 0) FROM Cache")
        last = 0
        while page := self._read(
            "SELECT rowid, key, raw, mode, filename, value, store_time, "
            "coalesce(length(key), 0) + coalesce(length(value), 0) + coalesce(size, 0) "
            "FROM Cache WHERE rowid > ? AND rowid <= ? ORDER BY rowid LIMIT ?",
            (last, end, PAGE),
        ):
            last = page[-1][0]
            yield from (self._read_entry(*row) for row in page)

    def _read_entry(
        self,
        row: int,
        key: Any,
        raw: int,
        mode: int,
        filename: str | None,
        value: Any,
        stored: float | None,
        size: int,
    ) -> StoredEntry:
        name: Any = None
        try:
            name = self._disk.get(key, bool(raw))
            if not is_key(name):
                return StoredEntry(row, None, None, size, stored or 0.0, "its key is not a digest")
            entry = Entry.from_json(name, self._disk.fetch(mode, filename, value, False))
            if not is_key(entry.prefix_digest):
                raise ValueError("its prefix is not a digest")
        except OSError as error:
            problem = f"its file can not be read: {error.strerror}"
        except (ValueError, TypeError, KeyError, EOFError, RecursionError, zlib.error) as error:
            problem = f"{'its key' if name is None else 'it'} does not decode: {error}"
        else:
            return StoredEntry(row, name, entry, size, stored or 0.0)
        return StoredEntry(row, name, None, size, stored or 0.0, problem)

    def count_held(self, keys: Iterable[str]) -> tuple[int, int]:
        """How many of these keys the cache holds, and how many keys these are."""
        found = asked = 0
        stored = (self._disk.put(key)[0] for key in keys)
        while page := list(itertools.islice(stored, PAGE)):
            marks = ",".join("?" * len(page))
            ((there,),) = self._read(f"SELECT count(*) FROM Cache WHERE raw = 1 AND key IN ({marks})", page)  # noqa: S608
            found, asked = found + int(there), asked + len(page)
        return found, asked

    def bytes_on_disk(self) -> int:
        """Bytes of all files in the folder, the table's free pages included."""
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Inventory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
