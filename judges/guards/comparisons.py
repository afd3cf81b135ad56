"""Which way a figure is a bound, and what a percentage is of: `at least 5` is not `at most 5`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import regex

from stepdown.judges.content import content_stems
from stepdown.judges.guards.numbers import Number, Reading, figures
from stepdown.judges.text import sentence_parts, words

Bound = Literal["", "upper", "lower"]

_UPPER = regex.compile(
    r"(?:<=?|≤|≦|\b(?:(?:less|fewer|lower|younger|shorter|smaller|no more|not more|no longer|no later) than|below|"
    r"under|at most|up to|maximum of|max\.?|not exceed|not exceeding|within|höchstens|maximal|weniger als|bis zu|"
    r"moins de|au plus|menos de))[ ]?[$€£¥₹]?$",
    regex.IGNORECASE,
)
_LOWER = regex.compile(
    r"(?:>=?|≥|≧|\b(?:more than|over|above|at least|at minimum|no less than|not less than|no fewer than|minimum of|"
    r"min\.?|exceeds?|exceeding|greater than|higher than|larger than|longer than|older than|beyond|mindestens|mehr als|"
    r"über|plus de|au moins|más de|al menos))[ ]?[$€£¥₹]?$",
    regex.IGNORECASE,
)
_BEHIND = regex.compile(
    r"[ ]?(?:[^\W\d_]+[ ]){0,2}"
    r"(?:(?P<lower>or (?:more|over|older|above|higher|longer|greater)|and (?:over|above|up)|plus\b)"
    r"|(?P<upper>or (?:less|fewer|under|younger|below|lower|shorter)|and under))",
    regex.IGNORECASE,
)
_WINDOW = 24
_OF = regex.compile(r"[ ](?:of|der|des|von|de|du|del)[ ](?P<base>[^.,;:()]{1,60})", regex.IGNORECASE)


@dataclass(frozen=True, slots=True)
class KnownComparisons:
    """How the sources use each number: as which bounds, and in sentences about what."""

    bounds: Mapping[Reading, frozenset[Bound]]
    about: Mapping[Reading, frozenset[str]]
    """Stems of the sentences that have a percentage or a share."""

    @classmethod
    def of(cls, text: str) -> KnownComparisons:
        bounds: dict[Reading, set[Bound]] = {}
        about: dict[Reading, set[str]] = {}
        for sentence in sentence_parts(text):
            for number in figures(sentence):
                for reading in number.readings:
                    bounds.setdefault(reading, set()).add(bound_of(sentence, number))
                    if reading[0] in {"percent", "ratio"}:
                        about.setdefault(reading, set()).update(content_stems(words(sentence)))
        return cls(_frozen(bounds), _frozen(about))

    def opposes(self, sentence: str, number: Number) -> bool:
        """Whether the sentence bounds a number on one side, and the sources do so on the other side only."""
        said = bound_of(sentence, number)
        if not said:
            return False
        known = {bound for reading in number.readings for bound in self.bounds.get(reading, ())}
        return bool(known) and known == {"lower" if said == "upper" else "upper"}

    def is_of_other(self, sentence: str, number: Number) -> bool:
        """Whether a percentage is of something that no sentence speaks of which has the percentage."""
        readings = [reading for reading in number.readings if reading[0] == "percent" and reading in self.about]
        of = _OF.match(sentence, number.end)
        if not readings or of is None or not any(mark in number.text for mark in ("%", "cent", "pct")):
            return False
        base = next((stems for word in words(of["base"]) if (stems := content_stems([word]))), frozenset())
        return bool(base) and all(base.isdisjoint(self.about[reading]) for reading in readings)


def bound_of(sentence: str, number: Number) -> Bound:
    """Which way a sentence bounds one of its numbers: "" where it does not.

    >>> one = figures("It takes less than 5 days.")[0]
    >>> bound_of("It takes less than 5 days.", one)
    'upper'
    """
    start = max(0, number.start - _WINDOW)
    if _UPPER.search(sentence, start, number.start):
        return "upper"
    if _LOWER.search(sentence, start, number.start):
        return "lower"
    behind = _BEHIND.match(sentence, number.end)
    return "" if behind is None else "lower" if behind["lower"] else "upper"


def _frozen(sets: Mapping[Reading, Iterable[Any]]) -> dict[Reading, frozenset[Any]]:
    return {reading: frozenset(found) for reading, found in sets.items()}
