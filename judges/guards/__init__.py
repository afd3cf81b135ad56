"""Deterministic guards: figures, dates, names and units of an answer that its sources do not have.

What a guard finds is no fault yet, since honest answers count, convert and round too. It becomes an item that the judge
must settle by quoting evidence. Every pattern takes time linear in the length of the text, which is hostile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from stepdown.judges.case import JudgeCase
from stepdown.judges.content import language_of
from stepdown.judges.guards import dates, names, numbers, rates, units
from stepdown.judges.guards.comparisons import KnownComparisons
from stepdown.judges.guards.novelty import KnownWords
from stepdown.judges.guards.numbers import Number, Reading
from stepdown.judges.text import plain, sentences, unnumbered

ItemKind = Literal["number", "date", "name", "unit", "sentence"]
FIGURE_KINDS: frozenset[str] = frozenset({"number", "date"})
LONGEST_CONTEXT = 200
"""How many characters of an item's sentence are shown with it."""
_MACHINES = frozenset({"assistant", "agent", "ai", "bot", "model", "system", "tool"})
"""Speakers whose earlier turns are no source: what a model said before is not true by that."""


@dataclass(frozen=True, slots=True)
class UnsourcedItem:
    """Something that the answer says and the evidence does not have, with its sentence as `context`.

    Prompts and reports call it an item.
    """

    kind: ItemKind
    text: str
    context: str
    said_by_user: bool = False
    """Whether a user said it before. That is no evidence: the question may rest on something false."""
    sentence: str = ""
    """The whole of its sentence."""

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, "text": self.text, "context": self.context}


def unsourced_items(case: JudgeCase) -> tuple[UnsourcedItem, ...]:
    """The items that a judge of this case must settle, each once, in the answer's order."""
    found: dict[tuple[str, str], UnsourcedItem] = {}
    texts = evidence_texts(case)
    sources, known, user = (
        SourceContents.of_texts(texts),
        KnownWords.of(texts),
        SourceContents.of_texts(user_texts(case)),
    )
    answered, is_foreign = language_of(case.answer), is_foreign_answer(case)
    for sentence in unnumbered(sentences(plain(case.answer))):
        said_by_user: set[tuple[str, str]] | None = None
        for kind, text in sources.unknown(sentence, is_german=answered == "de"):
            if said_by_user is None:
                said_by_user = set(user.unknown(sentence, is_german=answered == "de"))
            shown = sentence if len(sentence) <= LONGEST_CONTEXT else _around(sentence, text)
            item = UnsourcedItem(kind, text, shown, (kind, text) not in said_by_user, sentence)
            found.setdefault((kind, text.casefold()), item)
        if not is_foreign and known.is_raised(sentence):
            shown = sentence[:LONGEST_CONTEXT]
            found.setdefault(("sentence", sentence), UnsourcedItem("sentence", shown, shown, sentence=sentence))
    return tuple(found.values())


def evidence_texts(case: JudgeCase) -> list[str]:
    """The texts that may support an answer. The candidate has not seen the references; turns are no evidence."""
    return [f"{passage.title}\n{passage.text}" for passage in case.evidence]


def user_texts(case: JudgeCase) -> list[str]:
    """What people said in the conversation."""
    return [turn.text for turn in case.turns if turn.speaker.strip().casefold() not in _MACHINES]


def is_foreign_answer(case: JudgeCase) -> bool:
    """Whether the answer is in another language than the evidence, so that they share figures and names only."""
    answered, told = language_of(case.answer), language_of("\n".join(evidence_texts(case)))
    return bool(answered and told and answered != told)


@dataclass(frozen=True, slots=True)
class SourceContents:
    """The numbers, dates, names and units that some texts contain, and how they use their numbers."""

    numbers: numbers.KnownNumbers
    rates: frozenset[Reading]
    comparisons: KnownComparisons
    dates: dates.KnownDates
    names: names.KnownNames
    units: units.KnownUnits

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> SourceContents:
        text = plain("\n\n".join(texts))
        return cls(
            numbers.KnownNumbers.of(text),
            rates.known_rates(text),
            KnownComparisons.of(text),
            dates.KnownDates.of(text),
            names.KnownNames.of(text),
            units.KnownUnits.of(text),
        )

    def unknown(
        self, sentence: str, is_german: bool = False, with_bases: bool = True
    ) -> Iterator[tuple[ItemKind, str]]:
        """What a sentence of the answer, in plain form, contains and the sources do not.

        `with_bases`: also percentages that are of something else in the sources, as far as words tell.
        """
        found = dates.dates(sentence)
        for date in found:
            if not self.dates.has(date, self.numbers.years):
                yield "date", date.text
        rest = dates.blanked(sentence, found)
        often = rates.frequencies(rest)
        for rate in [*often, *rates.multiples(rest)]:
            if rate.readings.isdisjoint(self.rates):
                yield "number", rate.text
        unknown_numbers = set()
        for number in numbers.figures(rest):
            if any(rate.start <= number.start < rate.end for rate in often):
                continue
            if not self._has_number(number, rest, with_bases):
                unknown_numbers.add(number.start)
                yield "number", number.text
        for unit in units.measures(rest):
            # A unit whose number is an item already is settled with that item.
            if unit.number_at not in unknown_numbers and not self.units.has(unit):
                yield "unit", unit.text
        for name in [*names.names(rest, is_german), *names.lower_case_names(rest)]:
            if not self.names.has(name):
                yield "name", name.text

    def _has_number(self, number: Number, sentence: str, with_bases: bool) -> bool:
        known = self.numbers.has(number) or self.numbers.is_negated(number, sentence)
        uses = self.comparisons
        is_of_other = with_bases and uses.is_of_other(sentence, number)
        return known and not uses.opposes(sentence, number) and not is_of_other


def _around(sentence: str, text: str) -> str:
    middle = max(0, sentence.find(text) + len(text) // 2 - LONGEST_CONTEXT // 2)
    return sentence[middle : middle + LONGEST_CONTEXT]
