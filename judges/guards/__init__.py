"""Deterministic guards: figures, dates, names and units of an answer that its sources do not have.

What a guard finds is no fault yet, since honest answers count, convert and round too. It becomes an item that the judge
must settle by quoting evidence. Every pattern takes time linear in the length of the text, which is hostile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from stepdown.judges.case import JudgeCase
from stepdown.judges.guards import dates, names, numbers, units
from stepdown.judges.text import plain, sentences

ItemKind = Literal["number", "date", "name", "unit"]
FIGURE_KINDS: frozenset[str] = frozenset({"number", "date"})
"""Kinds of item that a judge may not call harmless."""
LONGEST_CONTEXT = 200
"""How many characters of an item's sentence are shown with it."""


@dataclass(frozen=True, slots=True)
class UnsourcedItem:
    """Something that the answer says and neither evidence nor conversation has, with its sentence as `context`.

    Prompts and reports call it an item.
    """

    kind: ItemKind
    text: str
    context: str

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, "text": self.text, "context": self.context}


def unsourced_items(case: JudgeCase) -> tuple[UnsourcedItem, ...]:
    """The items that a judge of this case must settle, each once, in the answer's order."""
    found: dict[tuple[str, str], UnsourcedItem] = {}
    sources = SourceContents.of(case)
    for sentence in sentences(plain(case.answer)):
        for kind, text in sources.unknown(sentence):
            shown = sentence if len(sentence) <= LONGEST_CONTEXT else _around(sentence, text)
            found.setdefault((kind, text.casefold()), UnsourcedItem(kind, text, shown))
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class SourceContents:
    """The numbers, dates, names and units that evidence and conversation contain."""

    numbers: numbers.KnownNumbers
    dates: dates.KnownDates
    names: names.KnownNames
    units: units.KnownUnits

    @classmethod
    def of(cls, case: JudgeCase) -> SourceContents:
        """The contents of a case's evidence and conversation. The candidate has not seen the references."""
        parts = [*(f"{passage.title}\n{passage.text}" for passage in case.evidence)]
        parts += [f"{turn.speaker}: {turn.text}" for turn in case.turns]
        return cls.of_texts(parts)

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> SourceContents:
        text = plain("\n\n".join(texts))
        return cls(
            numbers.KnownNumbers.of(text),
            dates.KnownDates.of(text),
            names.KnownNames.of(text),
            units.KnownUnits.of(text),
        )

    def unknown(self, sentence: str) -> Iterator[tuple[ItemKind, str]]:
        """What a sentence of the answer, in plain form, contains and the sources do not."""
        found = dates.dates(sentence)
        for date in found:
            if not self.dates.has(date, self.numbers.years):
                yield "date", date.text
        rest = dates.blanked(sentence, found)
        unknown_numbers = set()
        for number in numbers.figures(rest):
            if not self.numbers.has(number):
                unknown_numbers.add(number.start)
                yield "number", number.text
        for unit in units.measures(rest):
            # A unit whose number is an item already is settled with that item.
            if unit.number_at not in unknown_numbers and not self.units.has(unit):
                yield "unit", unit.text
        for name in names.names(rest):
            if not self.names.has(name):
                yield "name", name.text


def _around(sentence: str, text: str) -> str:
    middle = max(0, sentence.find(text) + len(text) // 2 - LONGEST_CONTEXT // 2)
    return sentence[middle : middle + LONGEST_CONTEXT]
