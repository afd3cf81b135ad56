"""The audit's SQLite file: opened, and its schema brought up to this one. A write is on disk when it returns."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from stepdown.audit.schema import SCHEMA_VERSION, TABLES, UPGRADES
from stepdown.builder.common.sqlite import SQLiteFile, make_tables, open_prepared
from stepdown.builder.errors import BadInput

FILE_NAME = "audit.sqlite"
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON")


def open_database(run_folder: Path, *, create: bool = False) -> SQLiteFile:
    """Open the audit's file in a run's folder. Threads may share one object, processes have one each.

    Raises BadInput where there is none (unless `create`) or it is unusable.
    """
    path = run_folder / FILE_NAME
    if not create and not path.is_file():
        raise BadInput(f"nothing is sampled yet: stepdown audit sample {run_folder}", file=run_folder)
    return open_prepared(path, "the audit's store", "rwc" if create else "rw", _PRAGMAS, _prepare)


def _prepare(file: SQLiteFile) -> None:
    """Make the tables of a new file, and those that an earlier schema lacks; refuse one of a later schema."""
    with file.transaction() as db:  # one process makes them where several open a new file at once
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version == 0 and not db.execute("SELECT 1 FROM sqlite_master").fetchone():
            make_tables(db, TABLES, SCHEMA_VERSION)
            return
        while version in UPGRADES:
            make_tables(db, UPGRADES[version], SCHEMA_VERSION)
            version += 1
        if version != SCHEMA_VERSION:
            raise BadInput(f"the audit has schema {version}, this stepdown reads {SCHEMA_VERSION}", file=file.path)


def now() -> str:
    """The time as the log has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
