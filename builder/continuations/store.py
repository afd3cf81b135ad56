"""The file of continuations: the frozen checkpoints, and the record of every cell that was executed to its end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from stepdown.builder.continuations.cells import CellKey
from stepdown.builder.continuations.checkpoints import FrozenCheckpoint
from stepdown.builder.digests import exact_json
from stepdown.builder.records import OutcomeState
from stepdown.builder.run.own_store import OwnStore

_OF = "checkpoint = ? AND context = ? AND feedback = ? AND model = ? AND draw = ?"


class ContinuationStore(OwnStore):
    """Checkpoints and cells."""

    file_name, called, nothing, version = "continuations.sqlite", "the file of continuations", "no continuations", 1
    tables = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE checkpoints (place INTEGER PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE cells (
    checkpoint TEXT NOT NULL, context TEXT NOT NULL, feedback TEXT NOT NULL, model TEXT NOT NULL, draw INTEGER NOT NULL,
    state TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY (checkpoint, context, feedback, model, draw)
)"""

    def freeze(
        self, checkpoints: Sequence[FrozenCheckpoint], settings: Mapping[str, Any], versions: Mapping[str, str]
    ) -> None:
        """Keep the checkpoints, what the work depends on, and the versions of the workloads: all of it or, where this
        raises, none.
        """
        with self._file.transaction() as db:
            rows = ((place, exact_json(one.to_json())) for place, one in enumerate(checkpoints))
            db.executemany("INSERT INTO checkpoints VALUES (?, ?)", rows)
            self._file.put_meta(db, "settings", dict(settings))
            self._file.put_meta(db, "versions", dict(versions))

    def checkpoints(self) -> list[FrozenCheckpoint]:
        """The frozen checkpoints in the plan's order; empty before they are frozen."""
        rows = self._file.read("SELECT record FROM checkpoints ORDER BY place")
        return [FrozenCheckpoint.from_json(json.loads(record)) for (record,) in rows]

    @property
    def versions(self) -> Mapping[str, str]:
        """Of the workloads, by benchmark, when the checkpoints were frozen."""
        found: Mapping[str, str] = self._file.meta("versions") or {}
        return found

    def end(self, key: CellKey, state: OutcomeState, record: Mapping[str, Any]) -> None:
        """Keep what a cell came to. A technical one is executed again at the next start; why it was technical stays in
        the `attempts` of its later record.
        """
        with self._file.transaction() as db:
            before = db.execute(f"SELECT state, record FROM cells WHERE {_OF}", key).fetchone()  # noqa: S608
            if before is not None and before[0] == OutcomeState.TECHNICAL:
                earlier = json.loads(before[1])
                record = {**record, "attempts": [*earlier.get("attempts", ()), earlier["reason"]]}
            db.execute(
                "INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?, ?, ?)", (*key, state.value, exact_json(record))
            )
            self._file.put_meta(db, "written", None)

    @property
    def written(self) -> int | None:
        """For how many draws the file of records was written; None where it lacks what was executed since."""
        draws: int | None = self._file.meta("written")
        return draws

    @written.setter
    def written(self, draws: int) -> None:
        self._file.set_meta("written", draws)

    def states(self) -> dict[CellKey, OutcomeState]:
        """What the cells that were executed came to."""
        rows = self._file.read("SELECT checkpoint, context, feedback, model, draw, state FROM cells")
        return {CellKey(*row[:5]): OutcomeState(row[5]) for row in rows}

    def record(self, key: CellKey) -> dict[str, Any]:
        """What a cell that was executed came to."""
        record: dict[str, Any] = json.loads(self._file.find(f"SELECT record FROM cells WHERE {_OF}", key)[0])  # noqa: S608
        return record
