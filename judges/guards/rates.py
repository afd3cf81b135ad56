"""Frequencies and multiples in words: `twice a week`, `every other day`, `doubled`, `three times as many`."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import regex

from stepdown.judges.guards.numbers import NUMBER_WORD, Number, Reading, value_of
from stepdown.judges.text import word_list

_PERIODS = {
    "hour": word_list("hour hours hourly"),
    "day": word_list("day days daily night nights nightly"),
    "week": word_list("week weeks weekly"),
    "fortnight": word_list("fortnight fortnightly"),
    "month": word_list("month months monthly"),
    "quarter": word_list("quarterly"),
    "year": word_list("year years yearly annual annually"),
    "decade": word_list("decade decades"),
}
_PERIOD = {word: period for period, listed in _PERIODS.items() for word in listed}
_NOUN = "|".join(word for word in _PERIOD if not word.endswith("ly") and not word.startswith("annual"))
_ADVERB = "|".join(word for word in _PERIOD if word.endswith("ly") or word.startswith("annual"))
_COUNT = rf"(?P<count>once|twice|thrice|(?:{NUMBER_WORD}|\d{{1,4}})(?:[ -]times|x))"
_FREQUENCY = regex.compile(
    rf"\b(?:{_COUNT}[ ](?:a|an|per|each|every|in a)[ ](?P<period>{_NOUN})\b"
    rf"|{_COUNT}[ -](?P<period>{_ADVERB})\b"
    rf"|(?:every|each)[ ](?P<other>other|second)[ ](?P<period>{_NOUN})\b"
    rf"|(?:every|each)[ ](?P<every>{NUMBER_WORD}|\d{{1,4}})[ ](?P<period>{_NOUN})\b"
    rf"|(?:every|each)[ ](?P<period>{_NOUN})\b"
    rf"|(?P<period>{_ADVERB})\b)",
    regex.IGNORECASE,
)
_MULTIPLE = regex.compile(
    rf"\b(?:(?P<word>twice|thrice|doubled|doubles|doubling|tripled|triples|tripling|trebled|quadrupled|quadruples|"
    rf"halved|halves|halving)\b(?![ ](?:a|an|per|each|every)[ ](?:{_NOUN})\b)"
    rf"|(?P<word>double|triple|half)[ ](?=(?:the|that|as|its|their|his|her|last|what)\b)"
    rf"|(?P<number>{NUMBER_WORD}|\d{{1,6}}(?:\.\d+)?)(?:-?fold\b|[ ]times[ ](?=(?:as|more|less|larger|bigger|higher|"
    rf"longer|faster|the|that|what|its)\b)|x[ ](?=(?:as|more|the|that)\b)))",
    regex.IGNORECASE,
)
_WORDS = {
    "twice": Fraction(2),
    "thrice": Fraction(3),
    "doubl": Fraction(2),
    "tripl": Fraction(3),
    "trebl": Fraction(3),
    "quadr": Fraction(4),
    "half": Fraction(1, 2),
    "halv": Fraction(1, 2),
}
_EACH = regex.compile(rf"\b(?:a|an|per|each|every) (?P<period>{_NOUN})\b", regex.IGNORECASE)
"""`0.20 euros a day` is paid every day."""
_TIMES = regex.compile(rf"\b(?P<number>{NUMBER_WORD}|\d{{1,6}}(?:\.\d+)?)(?:[ -]times\b|[ ]?x\b)", regex.IGNORECASE)
_OF_TIME = regex.compile(rf"\b(?:minutes?|mins?|seconds?|{_NOUN}|{_ADVERB})\b", regex.IGNORECASE)


def frequencies(text: str) -> list[Number]:
    """How often something happens, in a plain text.

    >>> [found.text for found in frequencies("Twice a week, daily, and every other month.")]
    ['Twice a week', 'daily', 'every other month']
    """
    found = []
    for match in _FREQUENCY.finditer(text):
        reading: Reading = ("text", f"{_per_period(match)} per {_PERIOD[match['period'].lower()]}")
        found.append(Number(match.start(), match.end(), match[0], frozenset({reading})))
    return found


def _per_period(match: regex.Match[str]) -> Fraction | None:
    if match["other"]:
        return Fraction(1, 2)
    if match["every"]:
        return 1 / (value_of(match["every"]) or Fraction(1))
    if match["count"] is None:
        return Fraction(1)
    count = match["count"].lower()
    return Fraction(1) if count == "once" else _WORDS.get(count) or value_of(regex.sub(r"[ -]?(?:times|x)$", "", count))


def multiples(text: str) -> list[Number]:
    """How many times as much something is, in a plain text.

    >>> [found.text for found in multiples("It doubled, and is half as big, a tenfold loss; a double room.")]
    ['doubled', 'half', 'tenfold']
    """
    return [
        Number(match.start(), match.start() + len(match[0].rstrip()), match[0].rstrip(), frozenset({("times", value)}))
        for match in _MULTIPLE.finditer(text)
        if (value := _multiple(match)) is not None
    ]


def _multiple(match: regex.Match[str]) -> Fraction | None:
    if match["number"]:
        return value_of(match["number"])
    word = match["word"].lower()
    return _WORDS.get(word) or _WORDS.get(word[:4]) or _WORDS[word[:5]]


def known_rates(text: str) -> frozenset[Reading]:
    """The frequencies and multiples that sources state, in a plain text."""
    found = {reading for number in [*frequencies(text), *multiples(text)] for reading in number.readings}
    found |= {("times", value) for match in _TIMES.finditer(text) if (value := value_of(match["number"])) is not None}
    found |= {("text", f"1 per {_PERIOD[match['period'].lower()]}") for match in _EACH.finditer(text)}
    return frozenset(_with_other_periods(found))


_SAME = {"1/14 per day": "1 per fortnight", "1/2 per week": "1 per fortnight", "4 per year": "1 per quarter"}
_SAME |= {"12 per year": "1 per month", "1/3 per month": "1 per quarter", "1/12 per month": "1 per year"}
_SAME |= {"1/7 per day": "1 per week", "1/24 per hour": "1 per day", "1/10 per year": "1 per decade"}


def _with_other_periods(found: set[Reading]) -> Iterator[Reading]:
    """The readings, and those that say the same by another period."""
    for kind, value in found:
        yield kind, value
        yield from ((kind, other) for one, other in _SAME.items() if one == value)
        yield from ((kind, one) for one, other in _SAME.items() if other == value)


def speaks_of_time(text: str) -> bool:
    """Whether a text names a period of time."""
    return _OF_TIME.search(text) is not None
