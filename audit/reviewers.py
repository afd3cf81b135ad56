"""The reviewers of a run and what is assigned to them, in the audit's store."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stepdown.audit.database import now
from stepdown.audit.schema import STANDING, TO_REVIEW
from stepdown.audit.verdicts import look_alike, reviewer_name
from stepdown.builder.common.sqlite import SQLiteFile
from stepdown.builder.errors import BadInput

SPLIT = "split"
"""The name under which is kept how steps are shared out."""
_SETTLING = "settling"
"""The name under which is kept which steps reviewers got because others disagree on them."""


@dataclass(frozen=True, slots=True)
class Reassigned:
    """An open step that went from one reviewer to another."""

    step: str
    taker: str
    had: bool
    """Whether all who take over had it already. Then the step waits for one reviewer less."""


class Reviewers:
    """Who reviews what."""

    def __init__(self, file: SQLiteFile) -> None:
        self._file = file

    def names(self) -> list[str]:
        """All who are known, in the order of their names."""
        return [name for (name,) in self._file.read("SELECT name FROM reviewers ORDER BY name")]

    def reviews_everything(self, reviewer: str) -> bool:
        """Whether the reviewer's queue is every step, as it is unless steps were assigned to them."""
        found = self._file.read("SELECT everything FROM reviewers WHERE name = ?", (reviewer,))
        return bool(found[0][0]) if found else True

    def join(self, reviewer: str) -> str:
        """Make a reviewer known, and return the name. Their queue is every step unless steps were assigned to them."""
        name = reviewer_name(reviewer)
        with self._file.transaction() as db:
            self.refuse_look_alike(db, name)
            db.execute("INSERT OR IGNORE INTO reviewers VALUES (?, 1)", (name,))
        return name

    def refuse_look_alike(self, db: sqlite3.Connection, name: str) -> None:
        """Raises BadInput for a new name that is most likely a mistyped known one: one person would count as two.

        Within a transaction of the caller's.
        """
        known = [other for (other,) in db.execute("SELECT name FROM reviewers ORDER BY name")]
        alike = look_alike(name, known)
        if name not in known and alike is not None:
            raise BadInput(
                f"{name!r} is new and looks like the reviewer {alike!r}", file=self._file.path, field="reviewer"
            )

    def assign(self, assignments: Iterable[tuple[str, str]], reviewers: Sequence[str]) -> None:
        """Assign steps to reviewers, as (reviewer, step id). Their queues then hold only what is assigned to them."""
        with self._file.transaction() as db:
            for name in map(reviewer_name, reviewers):
                self.refuse_look_alike(db, name)
                db.execute(
                    "INSERT INTO reviewers VALUES (?, 0) ON CONFLICT (name) DO UPDATE SET everything = 0", (name,)
                )
            db.executemany("INSERT OR IGNORE INTO assignments VALUES (?, ?)", assignments)

    def note_settling(self, reviewer: str, steps: Iterable[str]) -> None:
        """Record that a reviewer gets these steps because others disagree on them."""
        settling = self._file.meta(_SETTLING) or {}
        self._file.set_meta(_SETTLING, {**settling, reviewer: sorted({*settling.get(reviewer, ()), *steps})})

    def settling(self) -> set[tuple[str, str]]:
        """Who reviews what only because others disagree on it, as (reviewer, step id)."""
        return {(who, step) for who, steps in (self._file.meta(_SETTLING) or {}).items() for step in steps}

    def wait_for(self, step_id: str, reviewers: Iterable[str]) -> None:
        """Have a step settled only when these reviewers have answered it too. Their queues stay what they are."""
        with self._file.transaction() as db:
            for reviewer in sorted(reviewers):
                db.execute("INSERT OR IGNORE INTO reviewers VALUES (?, 1)", (reviewer,))
                db.execute("INSERT OR IGNORE INTO assignments VALUES (?, ?)", (reviewer, step_id))

    def reassign(self, giver: str, takers: Sequence[str]) -> list[Reassigned]:
        """Give a reviewer's open steps to others, and return the moved steps in the queue's order. All of them or none.

        Each step goes to one of the takers, in equal shares, to one who does not have it already if there is one. The
        giver's verdicts stay. The queue of a new taker is what they take. Steps that are shared out later go to the
        takers in the giver's place. Raises BadInput where the giver is unknown or nothing is to be moved.
        """
        with self._file.transaction() as db:
            names = [reviewer_name(name, field="TO") for name in takers]
            self._check_handover(giver, names)
            for name in names:
                self.refuse_look_alike(db, name)
                db.execute("INSERT OR IGNORE INTO reviewers VALUES (?, 0)", (name,))
            moved = self._shared(self._open_steps(giver), names)
            db.executemany("DELETE FROM assignments WHERE reviewer = ? AND step = ?", ((giver, m.step) for m in moved))
            db.executemany(
                "INSERT INTO assignments VALUES (?, ?)", ((one.taker, one.step) for one in moved if not one.had)
            )
            db.executemany(
                "INSERT INTO reassignments (step, giver, taker, at) VALUES (?, ?, ?, ?)",
                ((one.step, giver, one.taker, now()) for one in moved),
            )
            self._follow(db, giver, names, moved)
        return moved

    def _check_handover(self, giver: str, takers: Sequence[str]) -> None:
        known = self.names()
        if giver not in known:
            raise BadInput(
                f"no reviewer {giver!r}; known are {', '.join(known) or 'none'}", file=self._file.path, field="FROM"
            )
        if len(set(takers)) < len(takers) or giver in takers:
            raise BadInput("a reviewer is named twice", field="TO")
        if not self._open_steps(giver):
            raise BadInput(f"nothing to reassign: no step waits for {giver!r}", file=self._file.path, field="FROM")

    def _open_steps(self, reviewer: str) -> list[str]:
        """Ids of the steps that wait for a reviewer, in the queue's order."""
        query = (
            "SELECT steps.id FROM assignments JOIN steps ON steps.id = assignments.step WHERE assignments.reviewer = ? "  # noqa: S608
            f"AND {TO_REVIEW} "
            f"AND NOT EXISTS ({STANDING} AND log.step = steps.id AND log.reviewer = assignments.reviewer) "
            "ORDER BY steps.place"
        )
        return [step for (step,) in self._file.read(query, (reviewer,))]

    def _shared(self, steps: Iterable[str], takers: Sequence[str]) -> list[Reassigned]:
        held = {name: self._held(name) for name in takers}
        load: Counter[str] = Counter()
        moved = []
        for step in steps:
            free = [name for name in takers if step not in held[name]]
            taker = min(free or takers, key=load.__getitem__)
            load[taker] += bool(free)
            moved.append(Reassigned(step, taker, not free))
        return moved

    def _held(self, reviewer: str) -> set[str]:
        """The steps that wait for a reviewer or that they have answered."""
        query = (
            f"SELECT step FROM assignments WHERE reviewer = ? UNION SELECT step FROM ({STANDING} AND log.reviewer = ?)"  # noqa: S608
        )
        return {step for (step,) in self._file.read(query, (reviewer, reviewer))}

    def _follow(self, db: sqlite3.Connection, giver: str, takers: Sequence[str], moved: Sequence[Reassigned]) -> None:
        """Put the takers in the giver's place in what is kept beside the assignments. Within a transaction."""
        if (split := self._file.meta(SPLIT)) and giver in split["reviewers"]:
            others = [name for name in split["reviewers"] if name != giver]
            self._file.put_meta(
                db, SPLIT, {**split, "reviewers": [*others, *(name for name in takers if name not in others)]}
            )
        settling = {name: set(steps) for name, steps in (self._file.meta(_SETTLING) or {}).items()}
        for one in moved:
            if one.step in settling.get(giver, ()):
                settling[giver].discard(one.step)
                if not one.had:
                    settling.setdefault(one.taker, set()).add(one.step)
        self._file.put_meta(db, _SETTLING, {name: sorted(steps) for name, steps in settling.items()})
