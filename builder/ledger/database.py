"""The ledger's SQLite file: opened, checked, and written in whole transactions."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from builder.errors import BadInput
from builder.ledger.schema import SCHEMA_VERSION, TABLES
from builder.records import exact_json

FILE_NAME = "ledger.sqlite"


class Database:
    """The SQLite file of a run: opened and checked, written in transactions, with a few values kept under names.

    Threads share one object; `runs` sees to it that processes do not.
    """

    def __init__(self, folder: Path, read_only: bool = False) -> None:
        """Open the ledger of a run's folder, making it where there is none. Raises BadInput where it is unusable.

        `read_only` looks at a run that another process may be working on.
        """
        self._path = folder / FILE_NAME
        self._lock = threading.RLock()
        self._may_be_released = False
        with self._usable():
            address = f"{self._path.resolve().as_uri()}?mode={'ro' if read_only else 'rwc'}"
            self._db = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None, timeout=30)
            if not read_only:
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute("PRAGMA synchronous=NORMAL")
                # Trials touch many pages, and each checkpoint waits for the disk twice: make them rarer.
                self._db.execute("PRAGMA wal_autocheckpoint=4000")
            self._db.execute("PRAGMA foreign_keys=ON")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version == 0 and not self._db.execute("SELECT 1 FROM sqlite_master").fetchone():
                with self._transaction():
                    for statement in TABLES.split(";\n"):
                        self._db.execute(statement)
                    self._db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
            elif version != SCHEMA_VERSION:
                raise BadInput(
                    f"the ledger has schema {version}, this stepdown reads {SCHEMA_VERSION}", file=self._path
                )
        self._may_be_released = True

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OverflowError) as error:
            raise BadInput(f"the ledger can not be used: {error}", file=self._path) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._usable():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                if self._may_be_released:
                    self._db.execute("DELETE FROM meta WHERE key = 'released'")
                yield self._db
            except BaseException:
                self._rolled_back()
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
            self._may_be_released = False

    def _rolled_back(self) -> None:
        """Called when a transaction is taken back, for what is known of it elsewhere."""

    def _read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock, self._usable():
            return self._db.execute(query, values).fetchall()

    def close(self) -> None:
        with self._lock:
            self._db.close()

    # What the run is

    def meta(self, key: str) -> Any:
        """A JSON value kept under a name; None where there is none."""
        found = self._read("SELECT value FROM meta WHERE key = ?", (key,))
        return json.loads(found[0][0]) if found else None

    def set_meta(self, key: str, value: Any) -> None:
        """Keep a JSON value, its order of keys included: a source's order may be the order of its instances."""
        if self.meta(key) == value:
            return
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, exact_json(value)))

    @property
    def released(self) -> dict[str, str] | None:
        """The digests of the files that say what stands here, by name; None once anything has changed since."""
        found: dict[str, str] | None = self.meta("released")
        return found

    def set_released(self, digests: Mapping[str, str]) -> None:
        """The files of these digests say what stands here. The next transaction of any kind takes it back."""
        with self._transaction() as db:
            db.execute("INSERT INTO meta VALUES ('released', ?)", (exact_json(digests),))
        self._may_be_released = True
