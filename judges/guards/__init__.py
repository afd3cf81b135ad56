"""Deterministic guards: figures, dates, names and units of an answer that its sources do not have.

A guard accuses nobody. What it finds becomes an item that the judge must settle, quoting evidence: honest answers
count, convert and round too. Every pattern is linear in the length of the text, which is hostile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from stepdown.judges.case import Case
from stepdown.judges.guards import dates, names, numbers, units
from stepdown.judges.text import plain, sentences

Kind = Literal["number", "date", "name", "unit"]
FIGURES: frozenset[str] = frozenset({"number", "date"})
"""Kinds of which no item is harmless."""
LONGEST_CONTEXT = 200


@dataclass(frozen=True, slots=True)
class Item:
    """Something that the answer says and neither evidence nor conversation has, and the sentence it stands in."""

    kind: Kind
    text: str
    context: str


def items_of(case: Case) -> tuple[Item, ...]:
    """What a judge of this case must settle one by one, each once, in the answer's order."""
    found: dict[tuple[str, str], Item] = {}
    sources = Sources.of(case)
    for sentence in sentences(plain(case.answer)):
        for kind, text in sources.unknown(sentence):
            shown = sentence if len(sentence) <= LONGEST_CONTEXT else _around(sentence, text)
            found.setdefault((kind, text.casefold()), Item(kind, text, shown))
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class Sources:
    """What evidence and conversation hold, as the guards look for it."""

    numbers: numbers.Known
    dates: dates.Known
    names: names.Known
    units: units.Known

    @classmethod
    def of(cls, case: Case) -> Sources:
        """Those of a case. The candidate has seen the evidence and the conversation; references it has not."""
        parts = [*(f"{piece.title}\n{piece.text}" for piece in case.evidence)]
        parts += [f"{turn.speaker}: {turn.text}" for turn in case.turns]
        return cls.of_texts(parts)

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> Sources:
        text = plain("\n\n".join(texts))
        return cls(numbers.Known.of(text), dates.Known.of(text), names.Known.of(text), units.Known.of(text))

    def unknown(self, sentence: str) -> Iterator[tuple[Kind, str]]:
        """What of a sentence of the answer, in plain form, they do not hold."""
        found = dates.dates(sentence)
        for date in found:
            if not self.dates.has(date, self.numbers.years):
                yield "date", date.text
        rest = dates.blanked(sentence, found)
        accused = set()
        for number in numbers.figures(rest):
            if not self.numbers.has(number):
                accused.add(number.start)
                yield "number", number.text
        for unit in units.measures(rest):
            # Where the number itself is to be settled, its unit is settled with it.
            if unit.number_at not in accused and not self.units.has(unit):
                yield "unit", unit.text
        for name in names.names(rest):
            if not self.names.has(name):
                yield "name", name.text


def _around(sentence: str, text: str) -> str:
    middle = max(0, sentence.find(text) + len(text) // 2 - LONGEST_CONTEXT // 2)
    return sentence[middle : middle + LONGEST_CONTEXT]
