"""The audit's SQLite file: opened, checked, and written in whole transactions that last."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from stepdown.audit.schema import SCHEMA_VERSION, TABLES, UPGRADES
from stepdown.builder.common.sqlite import SQLiteFile
from stepdown.builder.errors import BadInput
from stepdown.builder.records import exact_json

FILE_NAME = "audit.sqlite"


class AuditDatabase(SQLiteFile):
    """The file with its connection. A context manager; threads may share one, processes have one each."""

    called = "the audit's store"

    def __init__(self, run_folder: Path, *, create: bool = False) -> None:
        """Open the store of a run's folder. Raises BadInput where there is none (unless `create`) or it is unusable."""
        super().__init__(run_folder / FILE_NAME)
        if not create and not self.path.is_file():
            raise BadInput(f"nothing is sampled yet: stepdown audit sample {run_folder}", file=run_folder)
        with self._usable():
            self._db = self._connect("rwc" if create else "rw")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute("PRAGMA foreign_keys=ON")
            self._prepare()

    def _prepare(self) -> None:
        """Make the tables of a new file, and those that an earlier schema lacks; refuse one of a later schema."""
        with self._transaction() as db:  # one process makes them where several open a new file at once
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version == 0 and not db.execute("SELECT 1 FROM sqlite_master").fetchone():
                self._make(TABLES)
                return
            while version in UPGRADES:
                self._make(UPGRADES[version])
                version += 1
            if version != SCHEMA_VERSION:
                raise BadInput(f"the audit has schema {version}, this stepdown reads {SCHEMA_VERSION}", file=self.path)

    def _make(self, tables: str) -> None:
        for statement in tables.split(";\n"):
            self._db.execute(statement)
        self._db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def set_meta(self, key: str, value: Any) -> None:
        with self._transaction():
            self._put_meta(key, value)

    def _put_meta(self, key: str, value: Any) -> None:
        """Within a transaction."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, exact_json(value)))


def now() -> str:
    """The time as the log has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
