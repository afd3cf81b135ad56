"""Where a response cache keeps its entries: durable, shared by threads, processes and runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from stepdown.builder.cache.table import ResponseTable, is_table

if TYPE_CHECKING:
    from stepdown.builder.cache.earlier import EarlierStore


class Store(Protocol):
    """Keeps the entries of a response cache: in a folder here; a shared service could do it too. Keys are digests,
    values JSON.
    """

    def get(self, key: str) -> Any | None: ...

    def put(self, key: str, value: Any) -> None:
        """Durable when it returns."""

    def delete(self, key: str) -> None:
        """Remove an entry, if there is one. Others may read and write meanwhile."""

    def close(self) -> None: ...


EARLIER_DATABASE = "cache.db"
"""diskcache's file. It lies in a folder where an earlier stepdown kept responses."""


def is_earlier(folder: Path) -> bool:
    return (folder / EARLIER_DATABASE).is_file()


def is_cache(folder: Path) -> bool:
    return is_table(folder) or is_earlier(folder)


class DiskStore:
    """A folder. Threads and processes may share it. Raises BadInput where it is unusable.

    Entries stand in one table. Where an earlier stepdown made the folder, its entries stay where they are and are
    found there; what is new goes into the table beside them.
    """

    def __init__(self, folder: Path) -> None:
        self._earlier = _open_earlier(folder) if is_earlier(folder) else None
        self._table = ResponseTable(folder)

    def get(self, key: str) -> Any | None:
        """The value, or None. An entry that cannot be read (truncated, foreign) counts as absent."""
        found = self._table.get(key)
        return self._earlier.get(key) if found is None and self._earlier is not None else found

    def put(self, key: str, value: Any) -> None:
        self._table.put(key, value)
        if self._earlier is not None:
            self._earlier.delete(key)  # one that could not be read, or is read otherwise today

    def delete(self, key: str) -> None:
        self._table.delete(key)
        if self._earlier is not None:
            self._earlier.delete(key)

    def close(self) -> None:
        self._table.close()
        if self._earlier is not None:
            self._earlier.close()


def _open_earlier(folder: Path) -> EarlierStore:
    from stepdown.builder.cache.earlier import EarlierStore  # diskcache is loaded by those who need it

    return EarlierStore(folder)
