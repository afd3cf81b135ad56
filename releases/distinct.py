"""Which texts have been seen, for any number of them: kept on disk, so that memory stays as it is."""

from __future__ import annotations

import hashlib
import sqlite3
from types import TracebackType


class Distinct:
    """A set of texts that only grows. Holds 16-byte digests in a private temporary database."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)  # no name: a file of its own, gone when it is closed
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute("PRAGMA cache_size = -8192")  # KiB
        self._db.execute("CREATE TABLE seen (text BLOB PRIMARY KEY) WITHOUT ROWID")
        self._db.execute("BEGIN")
        self._count = 0

    def add(self, text: str) -> bool:
        """Whether the text is new.

        >>> with Distinct() as seen:
        ...     seen.add("a"), seen.add("a"), len(seen)
        (True, False, 1)
        """
        short = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
        new = self._db.execute("INSERT OR IGNORE INTO seen VALUES (?)", (short,)).rowcount == 1
        self._count += new
        return new

    def __len__(self) -> int:
        return self._count

    def __enter__(self) -> Distinct:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._db.close()
