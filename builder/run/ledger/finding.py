"""Instances that somebody looks for: by what they are, by their trials, by words in their texts.

A look at a ledger is bounded: in trials, in steps and in characters that it goes through. Where it ends before the run
does, it says from where to look on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from stepdown.builder.common.sqlite import SQLiteFile

_PORTION = 200
"""Instances that are looked at together."""


@dataclass(frozen=True, slots=True)
class LookBounds:
    """What one look goes through at most; one instance, step or text more is begun, never two."""

    trials: int = 50_000
    steps: int = 8_000
    characters: int = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """What is looked for. Empty fields ask for nothing."""

    benchmark: str = ""
    state: str = ""
    label: int | None = None
    """The tier (an index) of a label that the instance has."""
    tier: int | None = None
    model: str = ""
    verdict: str = ""
    outcome: str = ""
    """The state that a trial came to."""
    reason: str = ""
    """Words of the reason of a trial, or of the instance."""
    text: str = ""
    """Words in the instance's id, or in a message or an answer of its trials."""

    @property
    def asks_of_trials(self) -> bool:
        """Whether one trial must be all of this: of a tier and model, with a verdict, outcome and reason."""
        return self.tier is not None or bool(self.model or self.verdict or self.outcome or self.reason)


@dataclass(frozen=True, slots=True)
class SearchPosition:
    """Where to look on: after this instance, trial and step."""

    instance: int = 0
    trial: int = 0
    step: int = 0

    @classmethod
    def from_text(cls, text: str) -> SearchPosition:
        """The inverse of `str`; the beginning for anything else.

        >>> SearchPosition.from_text(str(SearchPosition(3, 2, 1))), SearchPosition.from_text("x")
        (SearchPosition(instance=3, trial=2, step=1), SearchPosition(instance=0, trial=0, step=0))
        """
        parts = text.split(".")
        if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 16 for part in parts):
            return cls()
        return cls(*map(int, parts))

    def __str__(self) -> str:
        return f"{self.instance}.{self.trial}.{self.step}"


@dataclass(frozen=True, slots=True)
class Match:
    """A trial that is wanted, or a step of it where a text was found."""

    trial: int
    step: int


@dataclass(frozen=True, slots=True)
class Found:
    """An instance that is wanted, with the first of its trials that are."""

    instance: int
    matches: tuple[Match, ...] = ()
    count: int = 0
    """How many of its trials are wanted."""


@dataclass(slots=True)
class Look:
    """What a look came to, and what it went through."""

    bounds: LookBounds
    found: list[Found] = field(default_factory=list)
    rest: SearchPosition | None = None
    """From where to look on; None where the run ends."""
    last: int = 0
    """The last instance that was looked at."""
    trials: int = 0
    steps: int = 0
    characters: int = 0

    @property
    def is_spent(self) -> bool:
        most = self.bounds
        return self.trials >= most.trials or self.steps >= most.steps or self.characters >= most.characters


SHOWN_MATCHES = 4
"""So many trials of an instance are named."""


class Finding:
    """Looks for instances, in the run's order."""

    def __init__(self, file: SQLiteFile) -> None:
        self._file = file

    def find(self, wanted: SearchTerms, after: SearchPosition, most: int, bounds: LookBounds | None = None) -> Look:
        """At most so many of the wanted instances after a place."""
        look = Look(bounds or LookBounds(), last=after.instance)
        at = after
        while True:
            ids = self._portion(wanted, at, look)
            if not ids:
                return look
            look.found += self._among(wanted, ids, at, look)
            if len(look.found) > most:  # one more, to know that there is one
                del look.found[most:]
                look.rest = SearchPosition(look.found[-1].instance)
                return look
            if look.rest is not None:
                return look
            at = SearchPosition(ids[-1])
            if look.is_spent:
                look.rest = at
                return look

    def _portion(self, wanted: SearchTerms, at: SearchPosition, look: Look) -> list[int]:
        """The next instances that may be wanted: as many as one look may go through the trials of."""
        where, values = ["id > ?" if not at.trial else "id >= ?"], [at.instance]
        for column, value in (("benchmark", wanted.benchmark), ("state", wanted.state)):
            if value:
                where.append(f"{column} = ?")
                values.append(value)  # type: ignore[arg-type]
        if wanted.label is not None:
            where.append("EXISTS (SELECT 1 FROM json_each(locks) WHERE json_extract(value, '$[0]') = ?)")
            values.append(wanted.label)
        query = f"SELECT id FROM instances WHERE {' AND '.join(where)} ORDER BY id LIMIT {_PORTION}"  # noqa: S608
        ids = [identity for (identity,) in self._file.read(query, values)]
        if not (wanted.asks_of_trials or wanted.text):
            return ids
        counted = dict(
            self._file.read(
                "SELECT instance, count(*) FROM trials WHERE instance IN (SELECT value FROM json_each(?)) "
                "GROUP BY instance",
                (json.dumps(ids),),
            )
        )
        for place, identity in enumerate(ids):
            if place and look.trials >= look.bounds.trials:
                return ids[:place]
            look.trials += counted.get(identity, 0)
        return ids

    def _among(self, wanted: SearchTerms, ids: list[int], at: SearchPosition, look: Look) -> list[Found]:
        if not wanted.asks_of_trials and not wanted.text:
            look.last = ids[-1]
            return [Found(identity) for identity in ids]
        matching = self._by_trials(wanted, ids) if wanted.asks_of_trials else {one: Found(one) for one in ids}
        if wanted.text:
            return self._by_text(wanted, [one for one in ids if one in matching], at, look)
        look.last = ids[-1]
        return [matching[one] for one in ids if one in matching]

    def _by_trials(self, wanted: SearchTerms, ids: list[int]) -> dict[int, Found]:
        """Those of the instances that have a wanted trial, or are themselves held back for a wanted reason."""
        where, values = _of_trial(wanted)
        rows = self._file.read(
            f"SELECT instance, id, step FROM trials WHERE instance IN (SELECT value FROM json_each(?)) AND {where} "  # noqa: S608
            "ORDER BY instance, id",
            (json.dumps(ids), *values),
        )
        matches: dict[int, list[Match]] = {}
        for instance, trial, step in rows:
            matches.setdefault(instance, []).append(Match(trial, step))
        if wanted.reason and wanted.tier is None and not (wanted.model or wanted.verdict or wanted.outcome):
            held_back = self._file.read(
                "SELECT id FROM instances WHERE id IN (SELECT value FROM json_each(?)) AND reason LIKE ? ESCAPE '\\'",
                (json.dumps(ids), _like(wanted.reason)),
            )
            for (instance,) in held_back:
                matches.setdefault(instance, [])
        return {one: Found(one, tuple(found[:SHOWN_MATCHES]), len(found)) for one, found in matches.items()}

    def _by_text(self, wanted: SearchTerms, ids: list[int], at: SearchPosition, look: Look) -> list[Found]:
        """Those of the instances that have the words, each with the first place where they are. A look that is spent
        within an instance goes on there.
        """
        begun = at.instance if at.trial else 0
        found = {one: Found(one) for one in self._named_so(wanted.text, ids) if one != begun}
        reader = _TextReader(self._file, wanted.text, look)
        place = at
        for one in ids:
            if one not in found:
                match, place = reader.read(one, _of_trial(wanted), at if one == begun else SearchPosition(one))
                if match is not None:
                    found[one] = Found(one, (match,), 1)
            look.last = one
            if look.is_spent:
                look.rest = place if one not in found else SearchPosition(one)
                break
        return [found[one] for one in ids if one in found and one <= look.last]

    def _named_so(self, text: str, ids: list[int]) -> list[int]:
        query = (
            "SELECT id FROM instances WHERE id IN (SELECT value FROM json_each(?)) "
            "AND benchmark || '/' || instance_id LIKE ? ESCAPE '\\'"
        )
        return [one for (one,) in self._file.read(query, (json.dumps(ids), _like(text)))]


class _TextReader:
    """Reads the texts of instances, step by step, until the words are there or the look is spent."""

    def __init__(self, file: SQLiteFile, text: str, look: Look) -> None:
        self._file, self._look = file, look
        # As JSON has it: in a message, and in the arguments of a call, which are JSON in JSON.
        once = json.dumps(text, ensure_ascii=False)[1:-1]
        self._words = {words.casefold() for words in (once, json.dumps(once, ensure_ascii=False)[1:-1])}
        self._known: dict[int, bool] = {}
        """Which messages have the words: many are shared by instances."""

    def read(
        self, instance: int, of_trial: tuple[str, list[Any]], at: SearchPosition
    ) -> tuple[Match | None, SearchPosition]:
        """The first step after a place, in wanted trials of an instance, that has the words; and from where to read on:
        after the last one read, or after the instance where all of it was.
        """
        look, found, rest = self._look, None, SearchPosition(instance)
        where, values = of_trial

        def take(row: Any) -> bool:
            nonlocal found, rest
            trial, step, added, response = row
            look.steps += 1
            if self._has_words(response) or any(self._message_has_words(text) for text in json.loads(added)):
                found = Match(trial, step)
            if found is None and look.is_spent:
                rest = SearchPosition(instance, trial, step)
                return False
            return found is None

        self._file.read_while(
            "SELECT trials.id, steps.step, steps.added, steps.response FROM trials CROSS JOIN steps "  # noqa: S608
            "ON steps.trial = trials.id WHERE trials.instance = ? AND (trials.id, steps.step) > (?, ?) "
            f"AND {where} ORDER BY trials.id, steps.step",
            (instance, at.trial, at.step, *values),
            take,
        )
        return found, rest

    def _message_has_words(self, text: int) -> bool:
        if text not in self._known:
            self._known[text] = self._has_words(self._file.find("SELECT body FROM texts WHERE id = ?", (text,))[0])
        return self._known[text]

    def _has_words(self, body: str) -> bool:
        self._look.characters += len(body)
        folded = body.casefold()
        return any(words in folded for words in self._words)


def _of_trial(wanted: SearchTerms) -> tuple[str, list[Any]]:
    """The condition that a trial must meet, and its values."""
    where: list[str] = ["1"]
    values: list[Any] = []
    for column, value in (("tier", wanted.tier), ("model", wanted.model), ("verdict", wanted.verdict)):
        if value not in (None, ""):
            where.append(f"trials.{column} = ?")
            values.append(value)
    if wanted.outcome:
        where.append("EXISTS (SELECT 1 FROM states WHERE states.trial = trials.id AND state = ?)")
        values.append(wanted.outcome)
    if wanted.reason:
        where.append("trials.reason LIKE ? ESCAPE '\\'")
        values.append(_like(wanted.reason))
    return " AND ".join(where), values


def _like(text: str) -> str:
    """A pattern of SQL for texts that hold this one, whatever the case of its ASCII letters.

    >>> _like("50%")
    '%50\\\\%%'
    """
    for character in "\\%_":
        text = text.replace(character, f"\\{character}")
    return f"%{text}%"
