"""The audit's durable store: the sampled steps of a run, its reviewers, and every verdict, in `audit.sqlite`.

Threads may share one store, and processes may have one each: a server records while the command line reads.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from audit.schema import SCHEMA_VERSION, STANDING, TABLES
from audit.verdicts import (
    LONGEST_NOTES,
    AuditVerdict,
    Choice,
    Former,
    PreLabel,
    Progress,
    QueueItem,
    Recorded,
    reviewer_name,
)
from builder.errors import BadInput
from builder.records import clean_text, exact_json

FILE_NAME = "audit.sqlite"


class AuditStore:
    """One run's audit. A context manager.

    What `record`, `undo` and the other writing methods did is on disk when they return (`synchronous=FULL`), and
    survives the process and the power.
    """

    def __init__(self, run_folder: Path, *, create: bool = False) -> None:
        """Open the store of a run's folder. Raises BadInput where there is none (unless `create`) or it is unusable."""
        self.path = run_folder / FILE_NAME
        self._lock = threading.RLock()
        if not create and not self.path.is_file():
            raise BadInput(f"nothing is sampled yet: stepdown audit sample {run_folder}", file=run_folder)
        with self._usable():
            address = f"{self.path.resolve().as_uri()}?mode={'rwc' if create else 'rw'}"
            self._db = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None, timeout=30)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute("PRAGMA foreign_keys=ON")
            self._prepare()

    def _prepare(self) -> None:
        """Make the tables of a new file; refuse one of another schema."""
        with self._transaction() as db:  # one process makes them where several open a new file at once
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version == 0 and not db.execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in TABLES.split(";\n"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
            elif version != SCHEMA_VERSION:
                raise BadInput(f"the audit has schema {version}, this stepdown reads {SCHEMA_VERSION}", file=self.path)

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OverflowError) as error:
            raise BadInput(f"the audit's store can not be used: {error}", file=self.path) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._usable():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock, self._usable():
            return self._db.execute(query, values).fetchall()

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def __enter__(self) -> AuditStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def meta(self, key: str) -> Any:
        """A JSON value kept under a name; None where there is none."""
        found = self._read("SELECT value FROM meta WHERE key = ?", (key,))
        return json.loads(found[0][0]) if found else None

    def set_meta(self, key: str, value: Any) -> None:
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, exact_json(value)))

    # The sampled steps

    def add(self, choices: Iterable[Choice]) -> int:
        """Keep sampled steps, in order, after those that are kept; returns how many are new. All of them or none."""
        with self._transaction() as db:
            before = db.total_changes
            db.executemany(
                "INSERT OR IGNORE INTO steps (id, benchmark, instance_id, step_index, tier, tier_id, lowest, below) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (c.id, c.benchmark, c.instance_id, c.step_index, c.tier, c.tier_id, c.lowest, c.below)
                    for c in choices
                ),
            )
            return db.total_changes - before

    def steps(self) -> Iterator[Choice]:
        """Every sampled step in the queue's order, read in portions."""
        last = 0
        query = f"SELECT place, {_CHOICE} FROM steps WHERE place > ? ORDER BY place LIMIT 2000"  # noqa: S608
        while page := self._read(query, (last,)):
            last = page[-1][0]
            yield from (_choice(row[1:]) for row in page)

    def step(self, step_id: str) -> Choice:
        """A sampled step. Raises BadInput where it is not sampled."""
        found = self._read(f"SELECT {_CHOICE} FROM steps WHERE id = ?", (clean_text(step_id),))  # noqa: S608
        if not found:
            raise BadInput(f"step {step_id[:200]!r} is not in the sample", file=self.path)
        return _choice(found[0])

    def count(self) -> int:
        """How many steps are sampled."""
        return int(self._read("SELECT count(*) FROM steps")[0][0])

    # Reviewers and their queues

    def reviewers(self) -> list[str]:
        return [name for (name,) in self._read("SELECT name FROM reviewers ORDER BY name")]

    def join(self, reviewer: str) -> str:
        """Make a reviewer known, whose queue is every step unless steps were assigned to them; returns the name."""
        name = reviewer_name(reviewer)
        with self._transaction() as db:
            db.execute("INSERT OR IGNORE INTO reviewers VALUES (?, 1)", (name,))
        return name

    def assign(self, assignments: Iterable[tuple[str, str]], reviewers: Sequence[str]) -> None:
        """Give steps to reviewers, as (reviewer, step id): these reviewers' queues hold what is assigned to them."""
        with self._transaction() as db:
            db.executemany(
                "INSERT INTO reviewers VALUES (?, 0) ON CONFLICT (name) DO UPDATE SET everything = 0",
                ((reviewer_name(name),) for name in reviewers),
            )
            db.executemany("INSERT OR IGNORE INTO assignments VALUES (?, ?)", assignments)

    def queue(self, reviewer: str) -> list[QueueItem]:
        """The reviewer's own steps, in order, each with that reviewer's verdict where it has one."""
        current = self.current(reviewer)
        items = []
        for row in self._read(f"SELECT {_CHOICE} FROM steps WHERE {_OWN} ORDER BY place", (reviewer, reviewer)):  # noqa: S608
            choice = _choice(row)
            said = current.get(choice.id)
            if said is None:
                items.append(QueueItem(choice, None, "", None))
            else:
                items.append(QueueItem(choice, said.verdict, said.notes, said.at))
        return items

    def progress(self, reviewer: str) -> Progress:
        """How much of their queue the reviewer has done."""
        queue = self.queue(reviewer)
        counts = Counter(item.verdict for item in queue if item.verdict is not None)
        return Progress(
            total=len(queue),
            done=sum(counts.values()),
            tight=counts[AuditVerdict.TIGHT],
            uncertain=counts[AuditVerdict.UNCERTAIN],
            lower=counts[AuditVerdict.LOWER],
        )

    # Verdicts

    def record(
        self,
        reviewer: str,
        step_id: str,
        verdict: AuditVerdict | str,
        notes: str = "",
        *,
        prefix: str,
        source: str = "page",
    ) -> None:
        """Keep a verdict; it is on disk when this returns. A later one of the same reviewer on the step replaces it.

        `prefix` is the exact digest of the prefix that the reviewer was shown (`ReviewCase.prefix`). Raises BadInput
        where the step is not in this reviewer's queue.
        """
        said = Recorded(step_id, reviewer, AuditVerdict(verdict), notes, prefix, now(), source)
        self.record_all([said])

    def record_all(self, verdicts: Iterable[Recorded]) -> None:
        """Keep several verdicts: all of them or, where one can not be kept, none."""
        with self._transaction() as db:
            for said in verdicts:
                name = reviewer_name(said.reviewer)
                db.execute("INSERT OR IGNORE INTO reviewers VALUES (?, 1)", (name,))
                self._check_own(db, name, said.step)
                db.execute(
                    "INSERT INTO log (reviewer, step, verdict, notes, prefix, source, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (
                        name,
                        clean_text(said.step),
                        said.verdict.value,
                        _notes(said.notes),
                        said.prefix,
                        said.source,
                        said.at,
                    ),
                )

    def _check_own(self, db: sqlite3.Connection, reviewer: str, step_id: str) -> None:
        query = f"SELECT 1 FROM steps WHERE id = ? AND {_OWN}"  # noqa: S608
        if not db.execute(query, (clean_text(step_id), reviewer, reviewer)).fetchone():
            raise BadInput(f"step {step_id[:200]!r} is not in the queue of {reviewer!r}", file=self.path)

    def undo(self, reviewer: str, step_id: str | None = None) -> str | None:
        """Take back the reviewer's latest verdict (on a step, where one is named): the one before it stands again.

        Returns the step's id; None where there is nothing to take back. The log keeps both entries.
        """
        query = (
            "SELECT entry, step FROM log WHERE reviewer = ? AND verdict IS NOT NULL AND step = coalesce(?, step) "
            "AND NOT EXISTS (SELECT 1 FROM log AS back WHERE back.undoes = log.entry) ORDER BY entry DESC LIMIT 1"
        )
        with self._transaction() as db:
            found = db.execute(query, (reviewer, step_id)).fetchone()
            if found is None:
                return None
            entry, step = found
            db.execute(
                "INSERT INTO log (reviewer, step, undoes, source, at) VALUES (?, ?, ?, 'page', ?)",
                (reviewer, step, entry, now()),
            )
        return str(step)

    def current(self, reviewer: str) -> dict[str, Recorded]:
        """The reviewer's verdicts that stand, by step id."""
        rows = self._read(f"{STANDING} AND log.reviewer = ?", (reviewer,))
        return {row[0]: _recorded(row) for row in rows}

    def latest(self, reviewer: str) -> Recorded | None:
        """The verdict that `undo` would take back; None where there is none."""
        rows = self._read(f"{STANDING} AND log.reviewer = ? ORDER BY log.entry DESC LIMIT 1", (reviewer,))
        return _recorded(rows[0]) if rows else None

    def said(self, step_id: str) -> list[Recorded]:
        """All reviewers' verdicts on a step that stand, in the order of their names."""
        return [_recorded(row) for row in self._read(f"{STANDING} AND log.step = ? ORDER BY log.reviewer", (step_id,))]

    def standing(self) -> Iterator[Recorded]:
        """Every verdict that stands, by step in the queue's order and then by reviewer, read in portions."""
        query = f"{STANDING} AND log.step IN (SELECT value FROM json_each(?))"  # noqa: S608
        for choice_ids in _portions((choice.id for choice in self.steps()), 500):
            rows = self._read(query, (json.dumps(choice_ids),))
            order = {step: place for place, step in enumerate(choice_ids)}
            yield from map(_recorded, sorted(rows, key=lambda row: (order[row[0]], row[1])))

    # Beside the verdicts

    def set_prelabels(self, prelabels: Mapping[str, PreLabel]) -> None:
        """Keep a model's guesses by step id; those that were there for the steps are replaced."""
        with self._transaction() as db:
            db.executemany(
                "INSERT OR REPLACE INTO prelabels VALUES (?, ?, ?)",
                ((step, guess.verdict.value, _notes(guess.notes)) for step, guess in prelabels.items()),
            )

    def prelabel(self, reviewer: str, step_id: str) -> PreLabel | None:
        """The model's guess at a step; None where there is none, or this reviewer has not answered yet."""
        answered = f"EXISTS ({STANDING} AND log.step = prelabels.step AND log.reviewer = ?)"
        rows = self._read(f"SELECT verdict, notes FROM prelabels WHERE step = ? AND {answered}", (step_id, reviewer))  # noqa: S608
        return PreLabel(AuditVerdict(rows[0][0]), rows[0][1]) if rows else None

    def set_former(self, step_id: str, former: Iterable[Former]) -> None:
        """Keep what was said of a step in an earlier version, where it does not hold here."""
        with self._transaction() as db:
            db.executemany(
                "INSERT OR IGNORE INTO former VALUES (?, ?, ?, ?, ?, ?)",
                ((step_id, f.reviewer, f.verdict.value, _notes(f.notes), f.at, f.why) for f in former),
            )

    def former(self, step_id: str) -> list[Former]:
        """What was said of the step in the run that this one relabels, and why it does not hold any more."""
        rows = self._read(
            "SELECT reviewer, verdict, notes, at, why FROM former WHERE step = ? ORDER BY reviewer", (step_id,)
        )
        return [Former(reviewer, AuditVerdict(verdict), notes, at, why) for reviewer, verdict, notes, at, why in rows]


def now() -> str:
    """The time as the log has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


_CHOICE = "id, benchmark, instance_id, step_index, tier, tier_id, lowest, below"
_OWN = (
    "(EXISTS (SELECT 1 FROM assignments WHERE assignments.step = steps.id AND assignments.reviewer = ?) "
    "OR coalesce((SELECT everything FROM reviewers WHERE name = ?), 1))"
)
"""Whether a step is a reviewer's: assigned to them, or nothing was, so all are. A stranger's queue is everything."""


def _choice(row: Sequence[Any]) -> Choice:
    row_id, benchmark, instance_id, step_index, tier, tier_id, lowest, below = row
    return Choice(row_id, benchmark, instance_id, step_index, tier, tier_id, bool(lowest), below)


def _recorded(row: Sequence[Any]) -> Recorded:
    step, reviewer, verdict, notes, prefix, at, source = row[:7]
    return Recorded(step, reviewer, AuditVerdict(verdict), notes, prefix, at, source)


def _notes(text: str) -> str:
    return clean_text(text)[:LONGEST_NOTES]


def _portions(items: Iterable[str], size: int) -> Iterator[list[str]]:
    portion: list[str] = []
    for item in items:
        portion.append(item)
        if len(portion) == size:
            yield portion
            portion = []
    if portion:
        yield portion
