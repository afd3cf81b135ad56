"""How a ledger keeps trajectories: every message once, each step as what it adds to the one before.

What is written and what is read are records of their own, which know no file: a trial may be executed on one machine
and recorded on another.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from stepdown.builder.common.sqlite import SQLiteFile
from stepdown.builder.records import Mask, Message, Prefix, Response, Step, Tool, Trajectory, exact_json

Text = tuple[str, Any]
"""A message or a list of tools with its exact digest; None in place of what the ledger is known to hold already."""


class AddedStep(NamedTuple):
    """A step as what it adds to the one before."""

    number: int
    model: str
    kept: int
    """So many messages are those of the step before."""
    messages: tuple[Text, ...]
    tools: Text | None
    response: str
    """JSON."""


class StoredSteps(NamedTuple):
    """Steps as they were read: a row each, and the texts that the rows name."""

    rows: Sequence[Any]
    texts: Mapping[int, Any]

    def trajectory(self, mask: Mask | None = None) -> Trajectory:
        """The steps themselves, their prefixes under a mask."""
        steps: list[Step] = []
        for row in self.rows:
            steps.append(_step(row, steps[-1].prefix if steps else None, mask, self.texts))
        return tuple(steps)


def added_steps(trajectory: Trajectory, first: int) -> tuple[AddedStep, ...]:
    """What is kept of a trajectory's steps from number `first` on."""
    return tuple(
        _added_step(number, trajectory[number - 1], trajectory[number - 2].prefix if number > 1 else None)
        for number in range(first, len(trajectory) + 1)
    )


def _added_step(number: int, step: Step, previous: Prefix | None) -> AddedStep:
    """`previous` is the prefix of the step before."""
    prefix = step.prefix
    kept = len(previous.messages) if previous is not None and prefix.grew_from(previous) else 0
    messages = tuple(zip(prefix.message_digests[kept:], prefix.messages[kept:], strict=True))
    tools = (prefix.tools_digest, prefix.tools) if prefix.tools else None
    return AddedStep(number, step.model, kept, messages, tools, exact_json(step.response.to_json()))


def _step(row: Any, previous: Prefix | None, mask: Mask | None, texts: Mapping[int, Any]) -> Step:
    model, kept, added, tools, response = row
    messages: list[Message] = [texts[text] for text in json.loads(added)]
    definitions: list[Tool] = texts[tools] if tools is not None else []
    if kept and previous is not None:
        prefix = previous.extend(messages)
        if list(prefix.tools) != definitions:
            prefix = prefix.with_tools(definitions)
    else:
        prefix = Prefix.start(messages, definitions, mask)
    return Step(prefix, Response.from_json(json.loads(response)), model)


class Trajectories:
    """The steps of a ledger's trials, and the texts in them."""

    def __init__(self, file: SQLiteFile) -> None:
        self._file = file
        self._known: dict[str, int] = {}
        """Ids of stored texts by digest."""
        file.watch(rollback=self._known.clear)  # texts that are not there any more

    # Writing

    def write(self, db: sqlite3.Connection, trial: int, steps: Iterable[AddedStep]) -> None:
        """Keep a trial's steps. Within the caller's transaction."""
        rows = []
        for step in steps:
            added = exact_json([self._store_text(db, *text) for text in step.messages])
            tools = self._store_text(db, *step.tools) if step.tools else None
            rows.append((trial, step.number, step.model, step.kept, added, tools, step.response))
        db.executemany("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def _store_text(self, db: sqlite3.Connection, link: str, value: Any) -> int:
        """The id of a stored message or tool list, storing it once. Within the caller's transaction."""
        found = self._known.get(link)
        if found is not None:
            return found
        key = bytes.fromhex(link)
        cursor = None
        if value is not None:
            cursor = db.execute("INSERT OR IGNORE INTO texts (digest, body) VALUES (?, ?)", (key, exact_json(value)))
        if cursor is not None and cursor.rowcount == 1:
            found = int(cursor.lastrowid or 0)
        else:
            (found,) = db.execute("SELECT id FROM texts WHERE digest = ?", (key,)).fetchone()
        if len(self._known) >= 50_000:
            self._known.clear()
        self._known[link] = found
        return found

    # Reading

    def candidate_response(self, trial: int, step: int) -> Response | None:
        """What the candidate of a trial answered; None where it came to no answer."""
        found = self._file.read("SELECT response FROM steps WHERE trial = ? AND step = ?", (trial, step))
        return Response.from_json(json.loads(found[0][0])) if found else None

    def read(self, trial: int, mask: Mask | None = None) -> Trajectory:
        """The steps that a trial's record holds, those of the trajectories it started from included."""
        return self.stored(trial).trajectory(mask)

    def stored(self, trial: int) -> StoredSteps:
        """What `read` makes the steps of."""
        rows = self._rows(trial, "model, kept, added, tools, response")
        return StoredSteps(rows, self._read_texts({text for row in rows for text in (*json.loads(row[2]), row[3])}))

    def responses(self, trial: int) -> tuple[Response, ...]:
        """The responses of the steps that `read` gives, without what a step saw."""
        return tuple(Response.from_json(json.loads(text)) for (text,) in self._rows(trial, "response"))

    def _rows(self, trial: int, columns: str) -> list[Any]:
        """Some columns of the steps that a trial's record holds, those of the trajectories it started from included."""
        chain: list[tuple[int, int]] = []  # (trial, its own first step), latest first
        following: int | None = trial
        while following is not None:
            base, first = self._file.read("SELECT base, step FROM trials WHERE id = ?", (following,))[0]
            chain.append((following, first))
            following = base
        rows: list[Any] = []
        for number, (trial_id, first) in reversed(list(enumerate(chain))):
            end = chain[number - 1][1] if number else None
            rows[max(first, 1) - 1 :] = self._file.read(
                f"SELECT {columns} FROM steps WHERE trial = ? AND step < ? ORDER BY step",  # noqa: S608
                (trial_id, end if end is not None else 1 << 40),
            )
        return rows

    def _read_texts(self, ids: Iterable[int | None]) -> dict[int, Any]:
        """Messages and tool lists by id, in one query."""
        query = "SELECT id, body FROM texts WHERE id IN (SELECT value FROM json_each(?))"
        return {text: json.loads(body) for text, body in self._file.read(query, (json.dumps(list(ids)),))}
