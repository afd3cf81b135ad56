"""The cache's own file: one SQLite table of responses. A look-up and a store take a quarter of what diskcache takes."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from stepdown.builder.cache.stored import PAGE, StoredValue
from stepdown.builder.common.sqlite import SQLiteFile, make_tables, open_prepared
from stepdown.builder.digests import json_writer
from stepdown.builder.errors import BadInput

FILE_NAME = "responses.sqlite"
SCHEMA_VERSION = 1
TABLES = """
CREATE TABLE responses (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,  -- of the question, the bytes of its digest
    value NOT NULL,            -- JSON: its text or, where it is long, its text compressed by zlib
    stored REAL NOT NULL       -- seconds since the epoch
)
"""

_LONG = 1000
"""Characters from which on a value is compressed. For a shorter one that takes longest of all, and saves little."""
_LONGEST = 1 << 28
"""Bytes that a value may decompress to: a cache may come from somebody else."""
_encode = json_writer(ascii_only=True, allow_nan=True)

UNREADABLE = (ValueError, TypeError, KeyError, EOFError, RecursionError, zlib.error)
"""What reading a value raises that is truncated, foreign or broken."""


def is_table(folder: Path) -> bool:
    return (folder / FILE_NAME).is_file()


class ResponseTable:
    """The table in a folder, made where there is none. Threads and processes may share it."""

    def __init__(self, folder: Path) -> None:
        """Raises BadInput where the folder or the file is unusable."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"the response cache can not be used: {error.strerror}", file=folder) from error
        # Each checkpoint waits for the disk twice: make them rarer. A killed process loses nothing that was written.
        pragmas = ("journal_mode=WAL", "synchronous=NORMAL", "wal_autocheckpoint=4000", "cache_size=-8000")
        self._file = open_prepared(folder / FILE_NAME, _CALLED, "rwc", pragmas, _prepare)

    def get(self, key: str) -> Any | None:
        """The value, or None. An entry that cannot be read (truncated, foreign) counts as absent."""
        found = self._file.find("SELECT value FROM responses WHERE key = ?", (bytes.fromhex(key),))
        try:
            return _decoded(found[0]) if found else None
        except UNREADABLE:
            return None

    def put(self, key: str, value: Any) -> None:
        """Keep a value. It is in the file when this returns."""
        self._file.write(
            "INSERT OR REPLACE INTO responses (key, value, stored) VALUES (?, ?, ?)",
            (bytes.fromhex(key), _encoded(value), time.time()),
        )

    def delete(self, key: str) -> None:
        self._file.write("DELETE FROM responses WHERE key = ?", (bytes.fromhex(key),))

    def close(self) -> None:
        self._file.close()


class TableValues:
    """Reads a folder's table. Raises BadInput where it cannot be read."""

    def __init__(self, folder: Path) -> None:
        self._file = open_prepared(folder / FILE_NAME, _CALLED, "ro", (), _check)

    def read(self) -> Iterator[StoredValue]:
        """Every entry that is there now, read in portions. What others add meanwhile is left out."""
        ((end,),) = self._file.read("SELECT coalesce(max(id), 0) FROM responses")
        last = 0
        while page := self._file.read(
            "SELECT id, key, value, stored, length(CAST(key AS BLOB)) + length(CAST(value AS BLOB)) "
            "FROM responses WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
            (last, end, PAGE),
        ):
            last = page[-1][0]
            for number, key, value, stored, size in page:
                yield _read_value(f"entry {number}", key, value, size, stored)

    def held(self, keys: Sequence[str]) -> dict[str, float]:
        """Which of these keys stand in the file, and when each was stored."""
        marks = ",".join("?" * len(keys))
        query = f"SELECT key, stored FROM responses WHERE key IN ({marks})"  # noqa: S608
        found = self._file.read(query, [bytes.fromhex(key) for key in keys])
        return {key.hex(): when if isinstance(when, float) else 0.0 for key, when in found}

    def close(self) -> None:
        self._file.close()


_CALLED = "the response cache"


def _prepare(file: SQLiteFile) -> None:
    """Make the table of a new file; refuse a file of another schema."""
    with file.transaction() as db:
        # Looked at within the transaction, since processes may begin one cache together.
        if not db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            make_tables(db, TABLES, SCHEMA_VERSION)
    _check(file)


def _check(file: SQLiteFile) -> None:
    ((version,),) = file.read("PRAGMA user_version")
    if version != SCHEMA_VERSION:
        problem = f"the response cache has schema {version}, this stepdown reads {SCHEMA_VERSION}"
        raise BadInput(problem, file=file.path)


def _encoded(value: Any) -> str | bytes:
    text = _encode(value)
    return text if len(text) < _LONG else zlib.compress(text.encode(), 1)


def _decoded(stored: Any) -> Any:
    """Raises one of UNREADABLE."""
    if isinstance(stored, str):
        return json.loads(stored)
    if not isinstance(stored, bytes):
        raise TypeError("it is no text")
    unpacking = zlib.decompressobj()
    text = unpacking.decompress(stored, _LONGEST)
    if not unpacking.eof:
        raise ValueError("it is cut short, or far too long")
    return json.loads(text)


def _read_value(place: str, key: Any, value: Any, size: int, stored: Any) -> StoredValue:
    when = stored if isinstance(stored, float) else 0.0
    name = key.hex() if isinstance(key, bytes) else None
    try:
        return StoredValue(place, name, _decoded(value), size, when)
    except UNREADABLE as error:
        return StoredValue(place, name, None, size, when, f"it does not decode: {error}")
