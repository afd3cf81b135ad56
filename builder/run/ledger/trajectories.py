"""How a ledger keeps trajectories: every message once, each step as what it adds to the one before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from stepdown.builder.records import Mask, Message, Prefix, Response, Step, Tool, Trajectory, exact_json
from stepdown.builder.run.ledger.database import LedgerDatabase


class TrajectoryDatabase(LedgerDatabase):
    """A ledger's file as far as steps and the texts in them go."""

    def __init__(self, folder: Path, read_only: bool = False) -> None:
        """Open the ledger of a run's folder, making it where there is none. Raises BadInput where it is unusable.

        `read_only` looks at a run that another process may be working on.
        """
        self._known: dict[str, int] = {}
        super().__init__(folder, read_only)

    def _rolled_back(self) -> None:
        self._known.clear()  # ids of texts that are not there any more

    # Writing

    def _step_row(self, step: Step, previous: Prefix | None) -> tuple[str, int, str, int | None, str]:
        prefix = step.prefix
        kept = len(previous.messages) if previous is not None and prefix.grew_from(previous) else 0
        added = [
            self._text_id(link, message)
            for link, message in zip(prefix.message_digests[kept:], prefix.messages[kept:], strict=True)
        ]
        tools = self._text_id(prefix.tools_digest, prefix.tools) if prefix.tools else None
        response = exact_json(step.response.to_json())
        return step.model, kept, json.dumps(added), tools, response

    def _text_id(self, link: str, value: Any) -> int:
        """The id of a stored message or tool list, storing it once. Within the caller's transaction."""
        found = self._known.get(link)
        if found is not None:
            return found
        key = bytes.fromhex(link)
        cursor = self._db.execute("INSERT OR IGNORE INTO texts (digest, body) VALUES (?, ?)", (key, exact_json(value)))
        if cursor.rowcount == 1:
            found = int(cursor.lastrowid or 0)
        else:
            (found,) = self._db.execute("SELECT id FROM texts WHERE digest = ?", (key,)).fetchone()
        if len(self._known) >= 50_000:
            self._known.clear()
        self._known[link] = found
        return found

    # Reading

    def candidate_response(self, trial: int, step: int) -> Response | None:
        """What the candidate of a trial answered; None where it came to no answer."""
        found = self._read("SELECT response FROM steps WHERE trial = ? AND step = ?", (trial, step))
        return Response.from_json(json.loads(found[0][0])) if found else None

    def trajectory(self, trial: int, mask: Mask | None = None) -> Trajectory:
        """The steps that a trial's record holds, those of the trajectories it started from included."""
        chain: list[tuple[int, int]] = []  # (trial, its own first step), latest first
        following: int | None = trial
        while following is not None:
            base, first = self._read("SELECT base, step FROM trials WHERE id = ?", (following,))[0]
            chain.append((following, first))
            following = base
        rows: list[Any] = []
        for number, (trial_id, first) in reversed(list(enumerate(chain))):
            end = chain[number - 1][1] if number else None
            rows[max(first, 1) - 1 :] = self._read(
                "SELECT model, kept, added, tools, response FROM steps WHERE trial = ? AND step < ? ORDER BY step",
                (trial_id, end if end is not None else 1 << 40),
            )
        texts = self._texts({text for row in rows for text in (*json.loads(row[2]), row[3])})
        steps: list[Step] = []
        for row in rows:
            steps.append(self._step(row, steps[-1].prefix if steps else None, mask, texts))
        return tuple(steps)

    @staticmethod
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

    def _texts(self, ids: Iterable[int | None]) -> dict[int, Any]:
        """Messages and tool lists by id, in one query."""
        query = "SELECT id, body FROM texts WHERE id IN (SELECT value FROM json_each(?))"
        return {text: json.loads(body) for text, body in self._read(query, (json.dumps(list(ids)),))}
