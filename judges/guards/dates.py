"""Dates and times of day, however written: `May 3rd` and `2024-05-03` are the same day unless a year says otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from stepdown.judges.text import word_list

MONTHS = "january february march april may june july august september october november december"
_MONTHS = word_list(MONTHS)
_MONTH = {name: number for number, name in enumerate(_MONTHS, 1)}
_MONTH |= {name[:3]: number for name, number in _MONTH.items()} | {"sept": 9}
_FOREIGN = (
    "januar februar märz april mai juni juli august september oktober november dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
)
"""The months in other languages; beside a number only, since some are words of their own."""
_MONTH |= {name: number for listed in _FOREIGN for number, name in enumerate(word_list(listed), 1)}
_NAMES = "|".join(sorted(_MONTH, key=len, reverse=True))
_DAYS = {
    word: number
    for number, word in enumerate(
        word_list(
            "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
            "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
        ),
        1,
    )
} | {"twenty-first": 21, "twenty-second": 22, "twenty-third": 23, "twenty-fourth": 24, "twenty-fifth": 25}
_DAYS |= {"twenty-sixth": 26, "twenty-seventh": 27, "twenty-eighth": 28, "twenty-ninth": 29, "thirtieth": 30}
_DAYS |= {"thirty-first": 31}
_DAY = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?|{'|'.join(sorted(_DAYS, key=len, reverse=True))})"
_YEAR = r"(?:\d{4}|'\d{2})"

_PATTERNS = [
    re.compile(r"(?<!\d)(?P<y>\d{4})(?P<s>[-/.])(?P<m>\d{1,2})(?P=s)(?P<d>\d{1,2})(?!\d)"),
    re.compile(r"(?<!\d)(?P<a>\d{1,2})(?P<s>[-/.])(?P<b>\d{1,2})(?P=s)(?P<y>\d{4}|\d{2})(?!\d)"),
    re.compile(
        rf"\b(?P<month>{_NAMES})\b\.? (?:the )?(?P<d>{_DAY})\b(?!:)(?:,? (?:of )?(?P<y>{_YEAR})\b)?", re.IGNORECASE
    ),
    re.compile(
        rf"(?<![\d.])(?P<d>{_DAY})(?: of |\.? | de |-)(?P<month>{_NAMES})\b\.?(?:(?:,? |-| de )(?P<y>{_YEAR})\b)?",
        re.IGNORECASE,
    ),
    re.compile(rf"\b(?P<month>{_NAMES})\b\.?,? (?:of )?(?P<y>{_YEAR})\b", re.IGNORECASE),
]
_MONTH_ALONE = re.compile(rf"\b(?P<month>{'|'.join(name.title() for name in _MONTHS)})\b")
_MONTH_AS_VERB = re.compile(
    r"\b(?:in|of|by|since|until|till|last|next|this|early|late|mid|before|after|during|from|to|every)[ -]$",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?<![\d:.])(?P<h>\d{1,2})(?:[:.h](?P<min>[0-5]\d))(?::[0-5]\d)?(?![\d:])(?: ?(?P<half>[ap])\.?m\b)?",
    re.IGNORECASE,
)
_HOUR = re.compile(
    r"(?<![\d:.])(?P<h>\d{1,2}) ?(?P<half>[ap])(?:\.m\b\.?|m\b)|\b(?P<word>noon|midday|midnight)\b", re.IGNORECASE
)
_SPELT_HOUR = {
    word: number
    for number, word in enumerate(word_list("one two three four five six seven eight nine ten eleven twelve"), 1)
}
_SPELT = "|".join(_SPELT_HOUR)
_HALVES = {"morning": "a", "afternoon": "p", "evening": "p", "night": "p"}
_OCLOCK = re.compile(
    rf"(?<![\d:.])\b(?P<h>\d{{1,2}}|{_SPELT})(?: ?(?P<clock>o'clock|uhr(?![^\W\d])|heures?\b|h\b))?"
    r"(?: (?:in the|at) (?P<part>morning|afternoon|evening|night)\b)?",
    re.IGNORECASE,
)
_PAST = re.compile(
    rf"\b(?P<part>half|a quarter|quarter|\d{{1,2}}(?: minutes)?|five|ten|twenty) (?P<side>past|to) "
    rf"(?P<h>\d{{1,2}}(?![\d:.,])|{_SPELT}|noon|midnight)\b"
    r"(?: ?(?:(?P<half>[ap])\.?m\b|in the (?P<of>morning|afternoon|evening)))?",
    re.IGNORECASE,
)
_PARTS_OF_HOUR = {"half": 30, "a quarter": 15, "quarter": 15, "five": 5, "ten": 10, "twenty": 20}


@dataclass(frozen=True, slots=True)
class Date:
    """A date or a time with its place in the text, and what it may mean.

    `days` are (year, month, day), None for what is not said; `minutes` count from midnight.
    """

    start: int
    end: int
    text: str
    days: frozenset[tuple[int | None, int | None, int | None]] = frozenset()
    minutes: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class KnownDates:
    """The dates and times of the sources. `days` also has every date with less said of it: May 3 of May 3, 2024."""

    days: frozenset[tuple[int | None, int | None, int | None]]
    yearless: frozenset[tuple[int | None, int | None]]
    """Month and day of dates that the sources give without a year, with less said of them too."""
    minutes: frozenset[int]

    @classmethod
    def of(cls, text: str) -> KnownDates:
        found = dates(text)
        days = {day for date in found for day in date.days}
        yearless = {(month, day) for year, month, day in days if year is None}
        return cls(
            frozenset(
                (year if with_year else None, month if with_month else None, day if with_day else None)
                for year, month, day in days
                for with_year, with_month, with_day in product((True, False), repeat=3)
            ),
            frozenset(less for month, day in yearless for less in ((month, day), (month, None), (None, day))),
            frozenset(minute for date in found for minute in date.minutes),
        )

    def has(self, date: Date, years: frozenset[int]) -> bool:
        """Whether the sources have it. A source's date without a year matches every year that the sources name."""
        if date.minutes:
            return not date.minutes.isdisjoint(self.minutes)
        return any(
            (year, month, day) in self.days or (year in years and (month, day) in self.yearless)
            for year, month, day in date.days
        )


def dates(text: str) -> list[Date]:
    """The dates and times of a plain text, in order, none within another.

    >>> [date.text for date in dates("On May 3rd, 2024 at 3:30 pm; 03/05/24; it may be March.")]
    ['May 3rd, 2024', '3:30 pm', '03/05/24', 'March']
    """
    kept: list[Date] = []
    for date in sorted([*_days(text), *_times(text)], key=lambda d: (d.start, -d.end)):
        if not kept or date.start >= kept[-1].end:
            kept.append(date)
    return kept


def blanked(text: str, found: Sequence[Date]) -> str:
    """The text with its dates blanked out, so that their parts do not count as numbers. Places do not change."""
    parts, place = [], 0
    for date in found:
        parts += [text[place : date.start], "_" * (date.end - date.start)]
        place = date.end
    return "".join([*parts, text[place:]])


def _days(text: str) -> Iterator[Date]:
    for pattern in _PATTERNS:
        for found in pattern.finditer(text):
            parts = found.groupdict()
            if "month" in parts and parts["month"].lower() == "may" and not parts["month"][0].isupper():
                continue
            if days := frozenset(_possible_days(parts)):
                yield Date(found.start(), found.end(), found[0], days=days)
    for found in _MONTH_ALONE.finditer(text):
        # `May` is also a verb, so it counts only after a word that goes with a month.
        if found["month"] != "May" or _MONTH_AS_VERB.search(text, max(0, found.start() - 10), found.start()):
            yield Date(
                found.start(), found.end(), found[0], days=frozenset({(None, _MONTH[found["month"].lower()], None)})
            )


def _possible_days(parts: dict[str, str | None]) -> Iterator[tuple[int | None, int | None, int | None]]:
    years = _years(parts.get("y"))
    if parts.get("a") is not None:
        a, b = int(parts["a"] or 0), int(parts["b"] or 0)
        pairs = [(a, b), (b, a)]
    elif parts.get("m") is not None:
        pairs = [(int(parts["m"] or 0), int(parts["d"] or 0))]
    else:
        day = parts.get("d")
        pairs = [(_MONTH[str(parts["month"]).lower()], _day(day))]  # type: ignore[list-item]
    for month, number in pairs:
        if 1 <= month <= 12 and (number is None or 1 <= number <= 31):
            for year in years:
                yield year, month, number


def _day(text: str | None) -> int | None:
    if text is None:
        return None
    return _DAYS.get(text.lower()) or int(re.sub(r"\D", "", text))


def _years(text: str | None) -> list[int | None]:
    if text is None:
        return [None]
    digits = text.lstrip("'")
    return [int(digits)] if len(digits) == 4 else [1900 + int(digits), 2000 + int(digits)]


def _times(text: str) -> Iterator[Date]:
    for found in _CLOCK.finditer(text):
        hour, minute, half = int(found["h"]), int(found["min"]), (found["half"] or "").lower()
        # 3.50 is a price or a length unless am or pm follows.
        if hour <= 24 and (half or ":" in found[0]):
            yield Date(found.start(), found.end(), found[0], minutes=_minutes(hour, minute, half))
    for found in _HOUR.finditer(text):
        if found["word"]:
            hour, half = (0 if found["word"].lower() == "midnight" else 12), "exact"
        else:
            hour, half = int(found["h"]), found["half"].lower()
        if hour <= 24:
            yield Date(found.start(), found.end(), found[0], minutes=_minutes(hour, 0, half))
    for found in _OCLOCK.finditer(text):
        half = _HALVES.get((found["part"] or "").lower(), "")
        if (found["clock"] or half) and (hour := _hour(found["h"])) <= 24:
            yield Date(found.start(), found.end(), found[0], minutes=_minutes(hour, 0, half))
    for found in _PAST.finditer(text):
        half = (found["half"] or _HALVES.get((found["of"] or "").lower(), "")).lower()
        part = found["part"].lower()
        away = _PARTS_OF_HOUR.get(part) or int(re.sub(r"\D", "", part) or 0)
        moved = -away if found["side"].lower() == "to" else away
        if (hour := _hour(found["h"])) <= 24 and away < 60:
            at = {(minute + moved) % 1440 for minute in _minutes(hour, 0, half)}
            yield Date(found.start(), found.end(), found[0], minutes=frozenset(at))


def _hour(text: str) -> int:
    word = text.lower()
    return {"noon": 12, "midnight": 0}.get(word) or _SPELT_HOUR.get(word) or (int(word) if word.isdigit() else 0)


def _minutes(hour: int, minute: int, half: str) -> frozenset[int]:
    """Minutes since midnight; both readings of the hour where neither am nor pm is said."""
    if half == "exact":
        return frozenset({hour * 60})
    if half and hour <= 12:
        return frozenset({(hour % 12 + (12 if half == "p" else 0)) * 60 + minute})
    return frozenset({hour % 24 * 60 + minute} | ({(hour + 12) % 24 * 60 + minute} if hour <= 12 else set()))
