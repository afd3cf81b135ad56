"""The ledger's SQLite file: opened, and its schema checked."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from stepdown.builder.common.sqlite import SQLiteFile, make_tables, open_prepared
from stepdown.builder.errors import BadInput
from stepdown.builder.run.ledger.schema import SCHEMA_VERSION, TABLES

FILE_NAME = "ledger.sqlite"


def open_database(folder: Path, read_only: bool = False) -> SQLiteFile:
    """Open the ledger's file in a run's folder, making it where there is none. Raises BadInput where it is unusable.

    Threads share one object; `run.folder` sees to it that processes do not.
    """
    # Trials touch many pages, and each checkpoint waits for the disk twice: make them rarer.
    writing = () if read_only else ("journal_mode=WAL", "synchronous=NORMAL", "wal_autocheckpoint=4000")
    mode: Literal["ro", "rwc"] = "ro" if read_only else "rwc"
    return open_prepared(folder / FILE_NAME, "the ledger", mode, (*writing, "foreign_keys=ON"), _prepare)


def _prepare(file: SQLiteFile) -> None:
    """Make the tables of a new file; refuse a file of another schema."""
    ((version,),) = file.read("PRAGMA user_version")
    if version == 0 and not file.read("SELECT 1 FROM sqlite_master LIMIT 1"):
        with file.transaction() as db:
            make_tables(db, TABLES, SCHEMA_VERSION)
    elif version != SCHEMA_VERSION:
        raise BadInput(f"the ledger has schema {version}, this stepdown reads {SCHEMA_VERSION}", file=file.path)
