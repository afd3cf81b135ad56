"""Which revisions were applied and taken back, and how much of what was said each of them knows."""

from __future__ import annotations

from stepdown.audit.database import now
from stepdown.audit.verdicts import RevisionEntry
from stepdown.builder.common.sqlite import SQLiteFile

_HEARD = "heard"
"""Under which name is kept how many entries of the logs the latest revision knows."""


class RevisionLog:
    """The audit's record of its revisions."""

    def __init__(self, file: SQLiteFile) -> None:
        self._file = file

    def all(self) -> list[RevisionEntry]:
        """Every revision that was applied or taken back, in that order."""
        query = "SELECT number, action, manifest, at FROM revisions ORDER BY entry"
        return [RevisionEntry(*row) for row in self._file.read(query)]

    def said(self) -> int:
        """How many entries the logs have of what was said, taken back, and reassigned. They can only grow."""
        query = "SELECT (SELECT count(*) FROM log) + (SELECT count(*) FROM reassignments)"
        return int(self._file.read(query)[0][0])

    def unheard(self) -> int:
        """How many entries the logs have that came after the latest revision was applied or taken back."""
        heard = self._file.meta(_HEARD)
        return 0 if heard is None else self.said() - int(heard)

    def record(self, number: int, action: str, manifest: str, heard: int) -> None:
        """Keep that a revision was `applied` or `undone`, by somebody who knew `heard` entries of the logs."""
        with self._file.transaction() as db:
            self._file.put_meta(db, _HEARD, heard)
            db.execute(
                "INSERT INTO revisions (number, action, manifest, at) VALUES (?, ?, ?, ?)",
                (number, action, manifest, now()),
            )
