"""Which artifacts say all that a ledger holds: their digests, until anything more is recorded."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from stepdown.builder.common.sqlite import SQLiteFile

_KEY = "released"
"""Under which name the digests stand in the ledger."""


class WrittenArtifacts:
    """The digests of a run's artifacts. The next transaction of any kind takes them back."""

    def __init__(self, file: SQLiteFile) -> None:
        self._file = file
        self._may_be_kept = True
        """Whether digests may stand in the file: once taken back, no further transaction looks for them."""
        file.watch(begin=self._on_begin, commit=self._on_commit)

    @property
    def digests(self) -> dict[str, str] | None:
        """The digests of the files that say what stands here, by name; None once anything has changed since."""
        found: dict[str, str] | None = self._file.meta(_KEY)
        return found

    def keep(self, digests: Mapping[str, str]) -> None:
        """The files of these digests say what stands here."""
        self._file.set_meta(_KEY, digests)
        self._may_be_kept = True

    def _on_begin(self, db: sqlite3.Connection) -> None:
        if self._may_be_kept:
            db.execute("DELETE FROM meta WHERE key = ?", (_KEY,))

    def _on_commit(self) -> None:
        self._may_be_kept = False
