"""The ledger's SQLite file: opened, and its schema checked."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from stepdown.builder.common.sqlite import SQLiteFile, make_tables, open_prepared
from stepdown.builder.errors import BadInput
from stepdown.builder.run.ledger.schema import LATER_TABLES, SCHEMA_VERSION, TABLES

FILE_NAME = "ledger.sqlite"


def open_database(folder: Path, read_only: bool = False) -> SQLiteFile:
    """Open the ledger's file in a run's folder, making it where there is none. Raises BadInput where it is unusable.

    Threads share one object; `run.folder` sees to it that processes do not.
    """
    # Trials touch many pages, and each checkpoint waits for the disk twice: make them rarer.
    writing = () if read_only else ("journal_mode=WAL", "synchronous=NORMAL", "wal_autocheckpoint=4000")
    mode: Literal["ro", "rwc"] = "ro" if read_only else "rwc"
    prepare = _prepare_reading if read_only else _prepare
    return open_prepared(folder / FILE_NAME, "the ledger", mode, (*writing, "foreign_keys=ON"), prepare)


def _prepare(file: SQLiteFile) -> None:
    """Make the tables that are not there yet; refuse a file of another schema."""
    _check_schema(file)
    for table in _lacking(file):
        with file.transaction() as db:
            make_tables(db, table, SCHEMA_VERSION)


def _prepare_reading(file: SQLiteFile) -> None:
    """Let an older ledger be read, which nobody may change: the tables that it lacks are there, empty, meanwhile."""
    _check_schema(file)
    for table in _lacking(file):
        file.read(table.replace("CREATE TABLE", "CREATE TEMP TABLE"))


def _lacking(file: SQLiteFile) -> list[str]:
    """The later tables that the ledger has not."""
    there = {name for (name,) in file.read("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return [table for name, table in LATER_TABLES.items() if name not in there]


def _check_schema(file: SQLiteFile) -> None:
    """Make the tables of a new file; refuse a file of another schema."""
    ((version,),) = file.read("PRAGMA user_version")
    if version == 0 and not file.read("SELECT 1 FROM sqlite_master LIMIT 1"):
        with file.transaction() as db:
            make_tables(db, TABLES, SCHEMA_VERSION)
    elif version != SCHEMA_VERSION:
        raise BadInput(f"the ledger has schema {version}, this stepdown reads {SCHEMA_VERSION}", file=file.path)
