"""A SQLite file that lasts: whole transactions, shared by threads, every fault a line that names the file.

A ledger and an audit's store are made of parts that share one such file.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from stepdown.builder.errors import BadInput
from stepdown.builder.records import exact_json

_FAULTS = (sqlite3.Error, OverflowError)
"""What SQLite raises where a file can not be used."""


class SQLiteFile:
    """One file and its connection. Threads share one object. It has a table `meta` of JSON values by name."""

    def __init__(self, path: Path, called: str, mode: Literal["ro", "rw", "rwc"], pragmas: Sequence[str] = ()) -> None:
        """Open the file: to read, to write, or to make it where there is none. Messages call it `called`.

        Raises BadInput where it is no SQLite file or can not be opened.
        """
        self.path, self._called = path, called
        self._lock = threading.RLock()
        self._at_begin: list[Callable[[sqlite3.Connection], None]] = []
        self._at_commit: list[Callable[[], None]] = []
        self._at_rollback: list[Callable[[], None]] = []
        try:
            address = f"{path.resolve().as_uri()}?mode={mode}"
            self._db = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None, timeout=30)
            for pragma in pragmas:
                self._db.execute(f"PRAGMA {pragma}")
        except _FAULTS as error:
            raise self._unusable(error) from error

    def watch(
        self,
        *,
        begin: Callable[[sqlite3.Connection], None] | None = None,
        commit: Callable[[], None] | None = None,
        rollback: Callable[[], None] | None = None,
    ) -> None:
        """Have a part of the file's owner called from now on: first within every transaction, when one stands, and when
        one is taken back, for what is known of it elsewhere.
        """
        self._at_begin += [begin] if begin else []
        self._at_commit += [commit] if commit else []
        self._at_rollback += [rollback] if rollback else []

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All that is written within stands afterwards, or none of it."""
        try:
            with self._lock:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    for begin in self._at_begin:
                        begin(self._db)
                    yield self._db
                except BaseException:
                    for rollback in self._at_rollback:
                        rollback()
                    self._db.execute("ROLLBACK")
                    raise
                self._db.execute("COMMIT")
                for commit in self._at_commit:
                    commit()
        except _FAULTS as error:
            raise self._unusable(error) from error

    def write(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Execute one statement, a transaction of its own: what it changes stands when this returns. The parts that
        watch this file are not told.
        """
        try:
            with self._lock:
                self._db.execute(statement, values)
        except _FAULTS as error:
            raise self._unusable(error) from error

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows that a query finds."""
        try:
            with self._lock:
                return self._db.execute(query, values).fetchall()
        except _FAULTS as error:
            raise self._unusable(error) from error

    def read_while(self, query: str, values: Sequence[Any], take: Callable[[Any], bool]) -> None:
        """Give `take` the rows that a query finds, one at a time, until it returns False: so much is read."""
        try:
            with self._lock:
                for row in self._db.execute(query, values):
                    if not take(row):
                        return
        except _FAULTS as error:
            raise self._unusable(error) from error

    def find(self, query: str, values: Sequence[Any] = ()) -> Any:
        """The first row that a query finds; None where it finds none."""
        try:
            with self._lock:
                return self._db.execute(query, values).fetchone()
        except _FAULTS as error:
            raise self._unusable(error) from error

    def _unusable(self, error: BaseException) -> BadInput:
        return BadInput(f"{self._called} can not be used: {error}", file=self.path)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def meta(self, key: str) -> Any:
        """A JSON value kept under a name; None where there is none."""
        found = self.read("SELECT value FROM meta WHERE key = ?", (key,))
        return json.loads(found[0][0]) if found else None

    def set_meta(self, key: str, value: Any) -> None:
        """Keep a JSON value under a name, its order of keys included. In a transaction of its own."""
        with self.transaction() as db:
            self.put_meta(db, key, value)

    @staticmethod
    def put_meta(db: sqlite3.Connection, key: str, value: Any) -> None:
        """As `set_meta`, within a transaction of the caller's."""
        db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, exact_json(value)))


def open_prepared(
    path: Path,
    called: str,
    mode: Literal["ro", "rw", "rwc"],
    pragmas: Sequence[str],
    prepare: Callable[[SQLiteFile], None],
) -> SQLiteFile:
    """Open a file, and have its schema made or checked by `prepare`: where that raises, the file is closed again."""
    file = SQLiteFile(path, called, mode, pragmas)
    try:
        prepare(file)
    except BaseException:
        file.close()
        raise
    return file


def make_tables(db: sqlite3.Connection, tables: str, version: int) -> None:
    """Execute statements that make tables, and say which version of the schema they make. Within a transaction."""
    for statement in tables.split(";\n"):
        db.execute(statement)
    db.execute(f"PRAGMA user_version={version}")
