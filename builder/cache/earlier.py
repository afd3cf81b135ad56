"""Responses that an earlier stepdown kept by diskcache: they are found where they lie, and nothing is added to them."""

from __future__ import annotations

import gc
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import diskcache
from diskcache.core import MODE_PICKLE

from stepdown.builder.cache.stored import PAGE, StoredValue
from stepdown.builder.errors import BadInput

FILE_NAME: str = diskcache.core.DBNAME
COMPRESSION = 1
"""zlib's level. Stored keys are compressed too: with another level no key would be found."""
_UNUSABLE = (OSError, sqlite3.Error, diskcache.Timeout)
_UNREADABLE = (ValueError, TypeError, KeyError, EOFError, RecursionError, zlib.error)


class JsonOnly(diskcache.JSONDisk):  # type: ignore[misc]
    """A JSONDisk that refuses pickled rows, which its base class would load: a cache may come from somebody else."""

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> Any:
        if mode == MODE_PICKLE:
            raise ValueError("a pickled entry")
        return super().fetch(mode, filename, value, read)

    def get(self, key: Any, raw: bool) -> Any:
        if not raw:
            raise ValueError("a pickled key")
        return super().get(key, raw)


class EarlierStore:
    """A folder, by diskcache, without eviction. Threads and processes may share it. Raises BadInput where unusable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._cache = diskcache.Cache(
                str(folder),
                disk=JsonOnly,
                disk_compress_level=COMPRESSION,
                eviction_policy="none",
                cull_limit=0,
                statistics=False,
                timeout=60,
                # Every thread has a connection of its own: what each may hold in memory counts as often.
                sqlite_cache_size=2000,
                sqlite_mmap_size=0,
            )
        except _UNUSABLE as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> BadInput:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return BadInput(f"the response cache can not be used: {reason}", file=self._folder)

    def get(self, key: str) -> Any | None:
        """The value, or None. An entry that cannot be read (truncated, foreign) counts as absent."""
        try:
            return self._cache.get(key)
        except _UNUSABLE as error:
            raise self._unusable(error) from error
        except _UNREADABLE:
            return None

    def put(self, key: str, value: Any) -> None:
        """Keep a value as an earlier stepdown did. Today's are kept in the table."""
        try:
            self._cache.set(key, value)
        except _UNUSABLE as error:
            raise self._unusable(error) from error

    def delete(self, key: str) -> None:
        try:
            self._cache.delete(key)
        except _UNUSABLE as error:
            raise self._unusable(error) from error

    def close(self) -> None:
        # Connections of threads that have ended are freed by the garbage collector only. While one is open, SQLite
        # leaves its log, which may have megabytes, beside the file.
        gc.collect()
        self._cache.close()


class EarlierValues:
    """Reads what an earlier stepdown kept in a folder. Raises BadInput where it cannot be read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._disk = JsonOnly(str(folder), compress_level=COMPRESSION)
        with self._report_unreadable():
            address = f"{(folder / FILE_NAME).resolve().as_uri()}?mode=ro"
            self._db = sqlite3.connect(address, uri=True, isolation_level=None, timeout=60)

    @contextmanager
    def _report_unreadable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise BadInput(f"the response cache can not be read: {error}", file=self._folder) from error

    def _query(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._report_unreadable():
            return self._db.execute(query, values).fetchall()

    def read(self) -> Iterator[StoredValue]:
        """Every entry that is there now, read in portions. What others add meanwhile is left out."""
        ((end,),) = self._query("SELECT coalesce(max(rowid), 0) FROM Cache")
        last = 0
        while page := self._query(
            "SELECT rowid, key, raw, mode, filename, value, store_time, "
            "coalesce(length(key), 0) + coalesce(length(value), 0) + coalesce(size, 0) "
            "FROM Cache WHERE rowid > ? AND rowid <= ? ORDER BY rowid LIMIT ?",
            (last, end, PAGE),
        ):
            last = page[-1][0]
            yield from (self._read_value(*row) for row in page)

    def _read_value(
        self,
        row: int,
        key: Any,
        raw: int,
        mode: int,
        filename: str | None,
        value: Any,
        stored: float | None,
        size: int,
    ) -> StoredValue:
        place, when, name = f"entry {row} of {FILE_NAME}", stored or 0.0, None
        try:
            name = self._disk.get(key, bool(raw))
            return StoredValue(place, name, self._disk.fetch(mode, filename, value, False), size, when)
        except OSError as error:
            problem = f"its file can not be read: {error.strerror}"
        except _UNREADABLE as error:
            problem = f"{'its key' if name is None else 'it'} does not decode: {error}"
        return StoredValue(place, name, None, size, when, problem)

    def held(self, keys: Sequence[str]) -> dict[str, float]:
        """Which of these keys stand in the file, and when each was stored."""
        stored = {self._disk.put(key)[0]: key for key in keys}
        marks = ",".join("?" * len(stored))
        query = f"SELECT key, store_time FROM Cache WHERE raw = 1 AND key IN ({marks})"  # noqa: S608
        return {stored[found]: when or 0.0 for found, when in self._query(query, list(stored))}

    def close(self) -> None:
        self._db.close()
