"""A SQLite file that lasts: whole transactions, shared by threads, every fault a line that names the file."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

from stepdown.builder.errors import BadInput


class SQLiteFile:
    """One file and its connection. Threads share one object. It has a table `meta` of JSON values by name."""

    called: ClassVar[str]
    """What messages call it."""
    _db: sqlite3.Connection

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()

    def _connect(self, mode: Literal["ro", "rw", "rwc"]) -> sqlite3.Connection:
        address = f"{self.path.resolve().as_uri()}?mode={mode}"
        return sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None, timeout=30)

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """Raises BadInput for what SQLite raises."""
        try:
            yield
        except (sqlite3.Error, OverflowError) as error:
            raise BadInput(f"{self.called} can not be used: {error}", file=self.path) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All that is written within stands afterwards, or none of it."""
        with self._lock, self._usable():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._begun()
                yield self._db
            except BaseException:
                self._rolled_back()
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
            self._committed()

    def _begun(self) -> None:
        """Called first within every transaction."""

    def _committed(self) -> None:
        """Called when a transaction stands."""

    def _rolled_back(self) -> None:
        """Called when a transaction is taken back, for what is known of it elsewhere."""

    def _read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock, self._usable():
            return self._db.execute(query, values).fetchall()

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def meta(self, key: str) -> Any:
        """A JSON value kept under a name; None where there is none."""
        found = self._read("SELECT value FROM meta WHERE key = ?", (key,))
        return json.loads(found[0][0]) if found else None
