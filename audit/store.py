"""The audit's durable store: the sampled steps of a run, its reviewers, and every verdict, in `audit.sqlite`.

Threads may share one store, and processes may have one each: a server records while the command line reads.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from stepdown.audit.database import FILE_NAME, now, open_database
from stepdown.audit.reviewers import Reviewers
from stepdown.audit.revisionlog import RevisionLog
from stepdown.audit.schema import STANDING, TO_REVIEW
from stepdown.audit.verdicts import (
    LONGEST_NOTES,
    AuditStep,
    AuditVerdict,
    FormerVerdict,
    PreLabel,
    QueueItem,
    RecordedVerdict,
    ReviewedStep,
    ReviewProgress,
    reviewer_name,
)
from stepdown.builder.errors import BadInput
from stepdown.builder.records import clean_text

__all__ = ["FILE_NAME", "AuditStore", "now", "plain_notes"]

T = TypeVar("T")


class AuditStore:
    """One run's audit: its sampled steps, reviewers, verdicts and revisions. A context manager.

    What `record`, `undo` and the other writing methods did is on disk when they return (`synchronous=FULL`). It
    survives a crash and a power failure.
    """

    def __init__(self, run_folder: Path, *, create: bool = False) -> None:
        """Open the store of a run's folder. Raises BadInput where there is none (unless `create`) or it is unusable."""
        self._file = open_database(run_folder, create=create)
        self.reviewers = Reviewers(self._file)
        self.revisions = RevisionLog(self._file)

    @property
    def path(self) -> Path:
        return self._file.path

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> AuditStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def meta(self, key: str) -> Any:
        """A JSON value kept under a name; None where there is none."""
        return self._file.meta(key)

    def set_meta(self, key: str, value: Any) -> None:
        """Keep a JSON value under a name."""
        self._file.set_meta(key, value)

    # The sampled steps

    def add(self, steps: Iterable[AuditStep]) -> int:
        """Add sampled steps, in order, after those that are there; return how many are new. All of them or none."""
        with self._file.transaction() as db:
            before = db.total_changes
            db.executemany(
                "INSERT OR IGNORE INTO steps (id, benchmark, instance_id, step_index, tier, tier_id, lowest, below) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                steps,
            )
            return db.total_changes - before

    def steps(self) -> Iterator[AuditStep]:
        """Every sampled step in the queue's order, read in portions."""
        last = 0
        query = f"SELECT place, {_STEP_COLUMNS} FROM steps WHERE place > ? ORDER BY place LIMIT 2000"  # noqa: S608
        while page := self._file.read(query, (last,)):
            last = page[-1][0]
            yield from (_audit_step(row[1:]) for row in page)

    def of_instance(self, benchmark: str, instance_id: str) -> list[ReviewedStep]:
        """The sampled steps of an instance, each with its verdicts."""
        query = f"SELECT {_STEP_COLUMNS} FROM steps WHERE benchmark = ? AND instance_id = ? ORDER BY step_index"  # noqa: S608
        return self._reviewed([_audit_step(row) for row in self._file.read(query, (benchmark, instance_id))])

    def reviewed(self) -> Iterator[ReviewedStep]:
        """Every sampled step in the queue's order with its verdicts, read in portions."""
        for portion in _portions(self.steps(), 500):
            yield from self._reviewed(portion)

    def _reviewed(self, steps: Sequence[AuditStep]) -> list[ReviewedStep]:
        if not steps:
            return []
        ids = json.dumps([step.id for step in steps])
        said: dict[str, list[RecordedVerdict]] = {step.id: [] for step in steps}
        among = "IN (SELECT value FROM json_each(?))"
        for row in self._file.read(f"{STANDING} AND log.step {among} ORDER BY log.reviewer", (ids,)):
            said[row[0]].append(_recorded(row))
        assigned: dict[str, list[str]] = {}
        query = f"SELECT step, reviewer FROM assignments WHERE step {among}"  # noqa: S608
        for step, reviewer in self._file.read(query, (ids,)):
            assigned.setdefault(step, []).append(reviewer)
        found = []
        for step in steps:
            waiting = sorted(set(assigned.get(step.id, ())) - {one.reviewer for one in said[step.id]})
            found.append(ReviewedStep(step, tuple(said[step.id]), len(waiting), tuple(waiting)))
        return found

    def step(self, step_id: str) -> AuditStep:
        """A sampled step. Raises BadInput where it is not sampled."""
        found = self._file.read(f"SELECT {_STEP_COLUMNS} FROM steps WHERE id = ?", (clean_text(step_id),))  # noqa: S608
        if not found:
            raise BadInput(f"step {step_id[:200]!r} is not in the sample", file=self.path)
        return _audit_step(found[0])

    def count(self) -> int:
        """How many steps are sampled."""
        return int(self._file.read("SELECT count(*) FROM steps")[0][0])

    def count_to_review(self) -> int:
        """How many sampled steps people are asked about: all but those of the lowest label, which settle themselves."""
        return int(self._file.read(f"SELECT count(*) FROM steps WHERE {TO_REVIEW}")[0][0])  # noqa: S608

    # Queues

    def unassigned(self) -> Iterator[str]:
        """Ids of the sampled steps for people that are assigned to nobody, in the queue's order."""
        for portion in _portions((step for step in self.steps() if not step.lowest), 500):
            ids = json.dumps([step.id for step in portion])
            query = "SELECT DISTINCT step FROM assignments WHERE step IN (SELECT value FROM json_each(?))"
            taken = {step for (step,) in self._file.read(query, (ids,))}
            yield from (step.id for step in portion if step.id not in taken)

    def queue(self, reviewer: str) -> list[QueueItem]:
        """The reviewer's own steps, in order, each with that reviewer's verdict where it has one.

        Steps of the lowest label are in nobody's queue.
        """
        current = self.current(reviewer)
        items = []
        query = f"SELECT {_STEP_COLUMNS} FROM steps WHERE {TO_REVIEW} AND {_OWN} ORDER BY place"  # noqa: S608
        for row in self._file.read(query, (reviewer, reviewer)):
            step = _audit_step(row)
            said = current.get(step.id)
            if said is None:
                items.append(QueueItem(step, None, "", None))
            else:
                items.append(QueueItem(step, said.verdict, said.notes, said.at))
        return items

    def owned(self, reviewer: str) -> set[str]:
        """Ids of all steps on which the reviewer's word is taken: their queue, and steps of the lowest label."""
        return {step for (step,) in self._file.read(f"SELECT id FROM steps WHERE {_OWN}", (reviewer, reviewer))}  # noqa: S608

    def progress(self, reviewer: str) -> ReviewProgress:
        """How much of their queue the reviewer has done."""
        queue = self.queue(reviewer)
        counts = Counter(item.verdict for item in queue if item.verdict is not None)
        return ReviewProgress(
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
        prefix_digest: str,
        source: str = "page",
    ) -> None:
        """Keep a verdict; it is on disk when this returns. A later one of the same reviewer on the step replaces it.

        `prefix_digest` is of the prefix that the reviewer was shown (`ReviewCase.prefix_digest`). Raises BadInput
        where the step is not in this reviewer's queue, or has the lowest label and should go lower.
        """
        said = RecordedVerdict(step_id, reviewer, AuditVerdict(verdict), notes, prefix_digest, now(), source)
        self.record_all([said])

    def record_all(self, verdicts: Iterable[RecordedVerdict]) -> None:
        """Keep several verdicts: all of them or, where one can not be kept, none."""
        with self._file.transaction() as db:
            for said in verdicts:
                named = replace(said, reviewer=reviewer_name(said.reviewer), step_id=clean_text(said.step_id))
                self.reviewers.refuse_look_alike(db, named.reviewer)
                db.execute("INSERT OR IGNORE INTO reviewers VALUES (?, 1)", (named.reviewer,))
                self._check(db, named)
                self._add_verdict(db, named)

    def carry(self, verdicts: Iterable[RecordedVerdict]) -> int:
        """Keep verdicts of an earlier version that hold here too; how many were kept.

        Those of a reviewer who has said something of the step here already, taken back or not, are left out.
        """
        kept = 0
        with self._file.transaction() as db:
            for said in verdicts:
                spoken = "SELECT 1 FROM log WHERE reviewer = ? AND step = ?"
                if db.execute(spoken, (said.reviewer, said.step_id)).fetchone():
                    continue
                db.execute("INSERT OR IGNORE INTO reviewers VALUES (?, 1)", (said.reviewer,))
                owned = "SELECT ?, ? FROM reviewers WHERE name = ? AND NOT everything"
                db.execute(
                    f"INSERT OR IGNORE INTO assignments {owned}",
                    (said.reviewer, said.step_id, said.reviewer),
                )
                self._add_verdict(db, said)
                kept += 1
        return kept

    @staticmethod
    def _add_verdict(db: sqlite3.Connection, said: RecordedVerdict) -> None:
        db.execute(
            "INSERT INTO log (reviewer, step, verdict, notes, prefix, source, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                said.reviewer,
                said.step_id,
                said.verdict.value,
                plain_notes(said.notes),
                said.prefix_digest,
                said.source,
                said.at,
            ),
        )

    def _check(self, db: sqlite3.Connection, said: RecordedVerdict) -> None:
        query = f"SELECT lowest FROM steps WHERE id = ? AND {_OWN}"  # noqa: S608
        found = db.execute(query, (said.step_id, said.reviewer, said.reviewer)).fetchone()
        if not found:
            raise BadInput(f"step {said.step_id[:200]!r} is not in the queue of {said.reviewer!r}", file=self.path)
        if found[0] and said.verdict is AuditVerdict.LOWER:
            raise BadInput(f"step {said.step_id[:200]!r} has the lowest label: it cannot go lower", file=self.path)

    def undo(self, reviewer: str, step_id: str | None = None) -> str | None:
        """Take back the reviewer's latest verdict (on a step, where one is named): the one before it stands again.

        Returns the step's id; None where there is nothing to take back. The log keeps both entries. What was said of a
        step of the lowest label is history, and stays.
        """
        query = (
            "SELECT entry, step FROM log WHERE reviewer = ? AND verdict IS NOT NULL AND step = coalesce(?, step) "  # noqa: S608
            f"AND {_OF_QUEUE} "
            "AND NOT EXISTS (SELECT 1 FROM log AS back WHERE back.undoes = log.entry) ORDER BY entry DESC LIMIT 1"
        )
        with self._file.transaction() as db:
            found = db.execute(query, (reviewer, step_id)).fetchone()
            if found is None:
                return None
            entry, step = found
            db.execute(
                "INSERT INTO log (reviewer, step, undoes, source, at) VALUES (?, ?, ?, 'page', ?)",
                (reviewer, step, entry, now()),
            )
        return str(step)

    def current(self, reviewer: str) -> dict[str, RecordedVerdict]:
        """The reviewer's verdicts that stand, by step id."""
        rows = self._file.read(f"{STANDING} AND log.reviewer = ?", (reviewer,))
        return {row[0]: _recorded(row) for row in rows}

    def spoken(self, reviewer: str) -> set[tuple[str, str, str]]:
        """Every verdict that the reviewer ever gave, whether it stands or not, as (step id, verdict, notes)."""
        query = "SELECT step, verdict, notes FROM log WHERE reviewer = ? AND verdict IS NOT NULL"
        return set(self._file.read(query, (reviewer,)))

    def latest(self, reviewer: str) -> RecordedVerdict | None:
        """The verdict that `undo` would take back; None where there is none."""
        query = f"{STANDING} AND log.reviewer = ? AND {_OF_QUEUE} ORDER BY log.entry DESC LIMIT 1"
        rows = self._file.read(query, (reviewer,))
        return _recorded(rows[0]) if rows else None

    def said(self, step_id: str) -> list[RecordedVerdict]:
        """All reviewers' verdicts on a step that stand, in the order of their names."""
        return [
            _recorded(row) for row in self._file.read(f"{STANDING} AND log.step = ? ORDER BY log.reviewer", (step_id,))
        ]

    def standing(self) -> Iterator[RecordedVerdict]:
        """Every verdict that stands, by step in the queue's order and then by reviewer, read in portions."""
        for step in self.reviewed():
            yield from step.said

    # Beside the verdicts

    def set_prelabels(self, prelabels: Mapping[str, PreLabel]) -> None:
        """Keep a model's guesses by step id. They replace earlier guesses at the same steps."""
        with self._file.transaction() as db:
            db.executemany(
                "INSERT OR REPLACE INTO prelabels VALUES (?, ?, ?)",
                ((step, guess.verdict.value, plain_notes(guess.notes)) for step, guess in prelabels.items()),
            )

    def prelabel(self, reviewer: str, step_id: str) -> PreLabel | None:
        """The model's guess at a step; None where there is none, or this reviewer has not answered yet."""
        answered = f"EXISTS ({STANDING} AND log.step = prelabels.step AND log.reviewer = ?)"
        query = f"SELECT verdict, notes FROM prelabels WHERE step = ? AND {answered}"  # noqa: S608
        rows = self._file.read(query, (step_id, reviewer))
        return PreLabel(AuditVerdict(rows[0][0]), rows[0][1]) if rows else None

    def set_former(self, step_id: str, former: Iterable[FormerVerdict]) -> None:
        """Keep verdicts on a step from an earlier run that do not hold here."""
        with self._file.transaction() as db:
            db.executemany(
                "INSERT OR IGNORE INTO former VALUES (?, ?, ?, ?, ?, ?)",
                ((step_id, f.reviewer, f.verdict.value, plain_notes(f.notes), f.at, f.why) for f in former),
            )

    def former(self, step_id: str) -> list[FormerVerdict]:
        """The verdicts on a step from the run that this one relabels that do not hold here."""
        rows = self._file.read(
            "SELECT reviewer, verdict, notes, at, why FROM former WHERE step = ? ORDER BY reviewer", (step_id,)
        )
        return [
            FormerVerdict(reviewer, AuditVerdict(verdict), notes, at, why) for reviewer, verdict, notes, at, why in rows
        ]


_OF_QUEUE = f"EXISTS (SELECT 1 FROM steps WHERE steps.id = log.step AND {TO_REVIEW})"  # noqa: S608
_STEP_COLUMNS = "id, benchmark, instance_id, step_index, tier, tier_id, lowest, below"
_OWN = (
    "(EXISTS (SELECT 1 FROM assignments WHERE assignments.step = steps.id AND assignments.reviewer = ?) "
    "OR coalesce((SELECT everything FROM reviewers WHERE name = ?), 1))"
)
"""Whether a step is a reviewer's: it is assigned to them, or nothing is, as for an unknown name."""


def _audit_step(row: Sequence[Any]) -> AuditStep:
    row_id, benchmark, instance_id, step_index, tier, tier_id, lowest, below = row
    return AuditStep(row_id, benchmark, instance_id, step_index, tier, tier_id, bool(lowest), below)


def _recorded(row: Sequence[Any]) -> RecordedVerdict:
    step, reviewer, verdict, notes, prefix_digest, at, source = row[:7]
    return RecordedVerdict(step, reviewer, AuditVerdict(verdict), notes, prefix_digest, at, source)


_UNSHOWABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain_notes(text: str) -> str:
    """Notes as they are kept: with one form of line end, and without characters that file formats do not carry.

    >>> plain_notes("a\\r\\nb\\x00")
    'a\\nb'
    """
    return _UNSHOWABLE.sub("", clean_text(text).replace("\r\n", "\n").replace("\r", "\n"))[:LONGEST_NOTES]


def _portions(items: Iterable[T], size: int) -> Iterator[list[T]]:
    portion: list[T] = []
    for item in items:
        portion.append(item)
        if len(portion) == size:
            yield portion
            portion = []
    if portion:
        yield portion
