"""Makes a good answer wrong by one figure: a number, a unit or a date that its evidence does not have.

Such an answer is wrong whatever else is true, since nothing in the evidence says it.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import regex

from stepdown.judges.case import JudgeCase
from stepdown.judges.guards import SourceContents, evidence_texts
from stepdown.judges.text import plain, word_list

_NUMBER = regex.compile(
    r"(?<![\d.,:/'-])(?P<whole>\d{1,3}(?:,\d{3})++|\d++)(?P<rest>\.\d++)?+(?![\d:/]|[.,]\d|(?:st|nd|rd|th)\b)"
)
_YEAR = regex.compile(r"(?<![\d.,:/-])(1[0-9]\d\d|20\d\d)(?![\d:/]|[.,]\d)")
_OTHER_UNITS = (
    ("kilometres", "miles"),
    ("kilometers", "miles"),
    ("km", "miles"),
    ("metres", "feet"),
    ("meters", "feet"),
    ("m", "feet"),
    ("minutes", "hours"),
    ("hours", "minutes"),
    ("days", "weeks"),
    ("weeks", "days"),
    ("months", "weeks"),
    ("years", "months"),
    ("kilograms", "grams"),
    ("kg", "g"),
    ("grams", "kilograms"),
    ("tonnes", "kilograms"),
    ("litres", "millilitres"),
    ("ml", "litres"),
    ("euros", "dollars"),
    ("dollars", "euros"),
    ("°C", "°F"),
    ("Kilometer", "Meilen"),
    ("Meter", "Kilometer"),
)
_MONTHS = word_list("January February March April May June July August September October November December")
_MONTH = regex.compile(rf"\b({'|'.join(_MONTHS)})\b")


def with_other_number(case: JudgeCase, draw: Random) -> str | None:
    """The answer with one number changed to one that the evidence does not have; None where it has no such number."""
    places = [
        match
        for match in _NUMBER.finditer(case.answer)
        if not _YEAR.fullmatch(match[0]) and not _numbers_a_point(case.answer, match)
    ]
    draw.shuffle(places)
    for match in places:
        for value in _others(match["whole"].replace(",", ""), draw):
            written = f"{value:,}" if "," in match["whole"] else str(value)
            changed = f"{case.answer[: match.start()]}{written}{match['rest'] or ''}{case.answer[match.end() :]}"
            if _is_new(case, written + (match["rest"] or "")):
                return changed
    return None


def _numbers_a_point(text: str, match: regex.Match[str]) -> bool:
    """Whether a number only counts the points of a list."""
    return text[: match.start()].rpartition("\n")[2].strip() == "" and text[match.end() : match.end() + 1] in {".", ")"}


def _others(whole: str, draw: Random) -> Iterator[int]:
    value = int(whole)
    yield from draw.sample([value + step for step in (1, 2, 3, 5, 10, 20) if value + step != value], 3)
    yield value * 2 + 1
    yield value * 10


def _is_new(case: JudgeCase, written: str) -> bool:
    """Whether neither evidence nor conversation has a figure."""
    sources = SourceContents.of_texts([*evidence_texts(case), *(turn.text for turn in case.turns)])
    return any(kind in {"number", "date"} for kind, _ in sources.unknown(plain(written)))


def with_other_unit(case: JudgeCase, draw: Random) -> str | None:
    """The answer with the unit of one number changed to another of its kind that the evidence does not have."""
    evidence = "\n".join(evidence_texts(case)).lower()
    found = [
        (match, other)
        for unit, other in _OTHER_UNITS
        if not regex.search(rf"\b{other.lower()}\b", evidence)
        for match in regex.finditer(rf"(?<=\d )(?:{unit})(?![\w])", case.answer)
    ]
    if not found:
        return None
    match, other = draw.choice(found)
    return f"{case.answer[: match.start()]}{other}{case.answer[match.end() :]}"


def with_other_date(case: JudgeCase, draw: Random) -> str | None:
    """The answer with a year or a month changed to one that the evidence does not have."""
    evidence = "\n".join([*evidence_texts(case), *(turn.text for turn in case.turns)])
    known = set(_YEAR.findall(evidence))
    years = [
        (match.span(), year)
        for match in _YEAR.finditer(case.answer)
        if match[0] in known
        for step in (1, 2, 3, 4, 7, -1, -2, -5)
        if (year := str(int(match[0]) + step)) not in known
    ]
    months = [
        (match.span(), month)
        for match in _MONTH.finditer(case.answer)
        if match[0] != "May" and match[0] in evidence
        for month in _MONTHS
        if month not in evidence
    ]
    if not (choices := [*years, *months]):
        return None
    (start, stop), other = draw.choice(choices)
    return f"{case.answer[:start]}{other}{case.answer[stop:]}"
