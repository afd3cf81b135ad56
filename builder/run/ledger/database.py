"""The ledger's SQLite file: opened, checked, and written in whole transactions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stepdown.builder.common.sqlite import SQLiteFile
from stepdown.builder.errors import BadInput
from stepdown.builder.records import exact_json
from stepdown.builder.run.ledger.meta import JsonRecord, JudgeVersion, Origin, RunMeta, RunVersions, WorkloadVersion
from stepdown.builder.run.ledger.schema import SCHEMA_VERSION, TABLES

FILE_NAME = "ledger.sqlite"


class LedgerDatabase(SQLiteFile):
    """The SQLite file of a run: opened and checked, written in transactions, with a few values kept under names.

    Threads share one object; `runs` sees to it that processes do not.
    """

    called = "the ledger"

    def __init__(self, folder: Path, read_only: bool = False) -> None:
        """Open the ledger of a run's folder, making it where there is none. Raises BadInput where it is unusable.

        `read_only` looks at a run that another process may be working on.
        """
        super().__init__(folder / FILE_NAME)
        self._may_be_released = False
        with self._usable():
            self._db = self._connect("ro" if read_only else "rwc")
            if not read_only:
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute("PRAGMA synchronous=NORMAL")
                # Trials touch many pages, and each checkpoint waits for the disk twice: make them rarer.
                self._db.execute("PRAGMA wal_autocheckpoint=4000")
            self._db.execute("PRAGMA foreign_keys=ON")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version == 0 and not self._db.execute("SELECT 1 FROM sqlite_master").fetchone():
                with self._transaction():
                    for statement in TABLES.split(";\n"):
                        self._db.execute(statement)
                    self._db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
            elif version != SCHEMA_VERSION:
                raise BadInput(f"the ledger has schema {version}, this stepdown reads {SCHEMA_VERSION}", file=self.path)
        self._may_be_released = True

    def _begun(self) -> None:
        if self._may_be_released:
            self._db.execute("DELETE FROM meta WHERE key = 'released'")

    def _committed(self) -> None:
        self._may_be_released = False

    # What the run is

    def find_run(self) -> RunMeta | None:
        """What the run is; None where no process has kept it yet."""
        protocol = self.meta("protocol")
        if protocol is None:
            return None
        origin = self.meta("origin")
        return RunMeta(
            id=str(self.meta("id")),
            protocol=protocol,
            operation=self.meta("operation"),
            origin=Origin.from_json(origin) if origin else None,
        )

    @property
    def run(self) -> RunMeta:
        """What the run is. Raises BadInput where it was never begun."""
        run = self.find_run()
        if run is None:
            raise BadInput("the run was never begun", file=self.path)
        return run

    def keep_run(self, run: RunMeta) -> None:
        """Keep what the run is."""
        self._set_meta("id", run.id)
        self.keep_operation(run.operation)
        self._set_meta("protocol", run.protocol)
        self.keep_origin(run.origin)

    def keep_operation(self, operation: JsonRecord) -> None:
        """The run goes on under another operation."""
        self._set_meta("operation", operation)

    def keep_origin(self, origin: Origin | None) -> None:
        """The run goes on from this one."""
        self._set_meta("origin", asdict(origin) if origin else None)

    @property
    def versions(self) -> RunVersions:
        """The versions that the run is measured by. Raises BadInput where none are kept yet."""
        workloads, judge = self.meta("workloads"), self.meta("judge")
        if workloads is None:
            raise BadInput("the run was never begun", file=self.path)
        return RunVersions(
            workloads=tuple(WorkloadVersion.from_json(workload) for workload in workloads),
            judge=JudgeVersion.from_json(judge) if judge else None,
        )

    def keep_versions(self, versions: RunVersions) -> None:
        """Keep the versions that the run is measured by from now on."""
        for key, value in versions.to_json().items():
            self._set_meta(key, value)

    def _set_meta(self, key: str, value: Any) -> None:
        """Keep a JSON value, its order of keys included: a source's order may be the order of its instances."""
        if self.meta(key) == value:
            return
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, exact_json(value)))

    @property
    def released(self) -> dict[str, str] | None:
        """The digests of the files that say what stands here, by name; None once anything has changed since."""
        found: dict[str, str] | None = self.meta("released")
        return found

    def set_released(self, digests: Mapping[str, str]) -> None:
        """The files of these digests say what stands here. The next transaction of any kind takes it back."""
        with self._transaction() as db:
            db.execute("INSERT INTO meta VALUES ('released', ?)", (exact_json(digests),))
        self._may_be_released = True
