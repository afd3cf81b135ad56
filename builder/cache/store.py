"""Where a response cache keeps its entries: durable, shared by threads, processes and runs."""

from __future__ import annotations

import gc
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import diskcache
from diskcache.core import MODE_PICKLE

from stepdown.builder.errors import BadInput


class Store(Protocol):
    """Keeps the entries of a response cache: in a folder here; a shared service could do it too. Values are JSON."""

    def get(self, key: str) -> Any | None: ...

    def put(self, key: str, value: Any) -> None:
        """Durable when it returns."""

    def keys(self) -> Iterator[str]: ...

    def delete(self, key: str) -> None:
        """Remove an entry, if there is one. Others may read and write meanwhile."""

    def close(self) -> None: ...


COMPRESSION = 1
"""zlib's level. Stored keys are compressed too: with another level no key would be found."""


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


DATABASE: str = diskcache.core.DBNAME


def is_cache(folder: Path) -> bool:
    return (folder / DATABASE).is_file()


_UNUSABLE = (OSError, sqlite3.Error, diskcache.Timeout)


class DiskStore:
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
        except (ValueError, TypeError, EOFError, zlib.error):
            return None

    def put(self, key: str, value: Any) -> None:
        try:
            self._cache.set(key, value)
        except _UNUSABLE as error:
            raise self._unusable(error) from error

    def keys(self) -> Iterator[str]:
        return iter(self._cache)

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
