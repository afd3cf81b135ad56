"""Which revisions were applied and taken back, and how much of the audit's logs the latest one took into account."""

from __future__ import annotations

from stepdown.audit.database import now
from stepdown.audit.verdicts import RevisionEntry
from stepdown.builder.common.sqlite import SQLiteFile

_HEARD = "heard"
"""The name under which is kept how many entries of the logs the latest revision took into account."""


class RevisionLog:
    """The audit's record of its revisions."""

    def __init__(self, file: SQLiteFile) -> None:
        self._file = file

    def all(self) -> list[RevisionEntry]:
        """Every revision that was applied or taken back, in that order."""
        query = "SELECT number, action, manifest, at FROM revisions ORDER BY entry"
        return [RevisionEntry(*row) for row in self._file.read(query)]

    def count_entries(self) -> int:
        """Count the entries of the logs: verdicts, verdicts taken back, and reassignments. The logs can only grow."""
        query = "SELECT (SELECT count(*) FROM log) + (SELECT count(*) FROM reassignments)"
        return int(self._file.read(query)[0][0])

    def count_newer_entries(self) -> int:
        """Count the entries of the logs that the latest revision, applied or taken back, did not take into account."""
        known = self._file.meta(_HEARD)
        return 0 if known is None else self.count_entries() - int(known)

    def record(self, number: int, action: str, manifest: str, known_entries: int) -> None:
        """Record that a revision was `applied` or `undone`, taking `known_entries` entries of the logs into account."""
        with self._file.transaction() as db:
            self._file.put_meta(db, _HEARD, known_entries)
            db.execute(
                "INSERT INTO revisions (number, action, manifest, at) VALUES (?, ?, ?, ?)",
                (number, action, manifest, now()),
            )
