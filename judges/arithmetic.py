"""Repeats the arithmetic by which a figure is said to follow from the figures of some quotes.

A judge only names the quotes. A figure follows where it is a sum, a difference, a product, a ratio, a mean, a
conversion or a count of what they hold, rounded no further than it is written.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import islice, permutations

import regex

from stepdown.judges.content import content_of
from stepdown.judges.guards import dates, numbers, rates, units
from stepdown.judges.text import plain

MOST_OPERANDS = 24
"""Figures of the quotes that are reckoned with."""
_TIME = tuple(map(Fraction, (60, 24, 7, 12, 52, 365, 10, 100)))
"""What a period of time is counted in: minutes, hours, days, months, weeks, years."""
_LISTED = regex.compile(r"[,;\n]+| and | or | und | oder | et | ou | y | o | e | en ")
_ROUGH = Fraction(2, 100)
"""How far a conversion between two systems of units may be off."""
_WEEK = 7

Day = tuple[int | None, int | None, int | None]
"""Year, month and day; None for what is not said."""


def is_reckoned(figure: str, quotes: Sequence[str], sentence: str) -> bool:
    """Whether a figure or date follows from the figures of quotes; `sentence` is where the answer has it.

    >>> is_reckoned("42 million", ["It cost 48 million, 6 million more than planned."], "42 million were planned")
    True
    >>> is_reckoned("25%", ["Of 240 farmers, 60 use it."], "25% do"), is_reckoned("30%", ["Of 240, 60."], "30% do")
    (True, False)
    """
    texts = [plain(quote) for quote in quotes]
    found = dates.dates(plain(figure))
    if found:
        return _is_reckoned_date(found[0], texts)
    if rates.frequencies(plain(figure)):
        return any(_is_frequency(number, texts) for number in numbers.figures(plain(figure)))
    wanted = [number for number in _numbers(plain(sentence)) if number.text.casefold() == plain(figure).casefold()]
    wanted = wanted or _numbers(plain(figure))
    return any(_is_reckoned_number(number, texts, plain(sentence), plain(figure)) for number in wanted)


def _numbers(text: str) -> list[numbers.Number]:
    return [*numbers.figures(text), *rates.multiples(text)]


def _is_reckoned_number(number: numbers.Number, texts: Sequence[str], sentence: str, figure: str) -> bool:
    operands = list(islice(dict.fromkeys(_operands(texts)), MOST_OPERANDS))
    rounding, has_unit = _rounding(number.text), bool(units.measures(figure))
    for kind, value in number.readings:
        if not isinstance(value, Fraction) or (kind == "plain" and value in operands and not has_unit):
            continue  # a figure that the quotes have is listed for its sign or its bound, which no arithmetic mends
        results = _ratios(operands, kind) if kind != "plain" else _plain_results(operands, texts, sentence)
        written_to = {"ratio": rounding / 100, "times": value * numbers.ROUNDED}.get(kind, rounding)
        if any(_is_near(result, value, written_to, number.hedged) for result in results):
            return True
    return _is_converted(number, texts, sentence)


def _is_frequency(number: numbers.Number, texts: Sequence[str]) -> bool:
    """Whether so many times a period follow from a quoted length of time: three times an hour from every 20 minutes."""
    operands = list(islice(dict.fromkeys(_operands(texts)), MOST_OPERANDS))
    results = {factor / value for value in operands if value for factor in _TIME}
    return any(value in results for _, value in number.readings)


def _operands(texts: Sequence[str]) -> Iterator[Fraction]:
    for text in texts:
        known = numbers.KnownNumbers.of(text)
        yield from known.sorted
        yield from (
            value
            for kind, value in sorted(known.readings, key=str)
            if kind == "percent" and isinstance(value, Fraction)
        )


def _plain_results(operands: Sequence[Fraction], texts: Sequence[str], sentence: str) -> Iterator[Fraction]:
    if len(operands) > 1:
        yield sum(operands, Fraction())
        yield sum(operands, Fraction()) / len(operands)
    for one, other in permutations(operands, 2):
        yield one + other
        yield one - other
        yield one * other
    yield from _counts(texts, sentence)
    if any(map(rates.speaks_of_time, texts)) and rates.speaks_of_time(sentence):
        for value in operands:
            for factor in _TIME:
                yield value * factor
                yield from (value / factor, factor / value) if value else ()
    yield from _spans(texts)


def _ratios(operands: Sequence[Fraction], kind: str) -> Iterator[Fraction]:
    scale = 100 if kind == "percent" else 1
    for one, other in permutations(operands, 2):
        if other:
            yield scale * one / other
            yield scale * (one - other) / other
    if kind == "percent":
        yield from (100 - value for value in operands)
        for one, other in permutations(operands, 2):
            yield one + other
            yield one - other


def _counts(texts: Sequence[str], sentence: str) -> Iterator[Fraction]:
    """How many quotes there are, where all are about the same, and how many things each of them lists."""
    about = content_of(sentence)
    listed = [len([part for part in _LISTED.split(text) if part.strip()]) for text in texts]
    yield from map(Fraction, listed)
    if not any(about.isdisjoint(content_of(text)) for text in texts):
        yield from (Fraction(sum(listed)), Fraction(len(texts)))


def _spans(texts: Sequence[str]) -> Iterator[Fraction]:
    """Minutes and hours between two times of day, days and weeks between two dates."""
    found = [date for text in texts for date in dates.dates(text)][:MOST_OPERANDS]
    for one, other in permutations(found, 2):
        for start in one.minutes:
            yield from (Fraction((end - start) % 1440) / per for end in other.minutes for per in (1, 60))
        for begin, end in ((_day(a), _day(b)) for a in one.days for b in other.days):
            if begin and end and end > begin:
                days = Fraction((end - begin).days)
                yield from (days, days + 1, days / _WEEK)


def _day(day: Day) -> datetime.date | None:
    year, month, number = day
    if month is None or number is None:
        return None
    try:
        return datetime.date(year or 2001, month, number)
    except ValueError:
        return None


def _is_reckoned_date(date: dates.Date, texts: Sequence[str]) -> bool:
    """Whether a quoted date or time and a quoted number of days, weeks, years, hours or minutes make this one."""
    known = [one for text in texts for one in dates.dates(text)][:MOST_OPERANDS]
    amounts = [int(value) for value in islice(_operands(texts), MOST_OPERANDS) if 0 < value < 5000]
    if date.minutes:
        steps = {sign * amount * per for amount in amounts for per in (1, 60) for sign in (1, -1)}
        return any((minute + step) % 1440 in date.minutes for one in known for minute in one.minutes for step in steps)
    days = {sign * amount * per for amount in amounts for per in (1, _WEEK) for sign in (1, -1)}
    for one in known:
        for begin in one.days:
            year, month, number = begin
            moved: list[Day] = []
            if year:
                moved += [(year + sign * amount, month, number) for amount in amounts for sign in (1, -1)]
            if (day := _day(begin)) is not None:
                moved += [_moved(day, step, year is not None) for step in days if abs(step) < 100_000]
            if any(_matches(candidate, wanted) for candidate in moved for wanted in date.days):
                return True
    return False


def _moved(day: datetime.date, step: int, has_year: bool) -> Day:
    try:
        then = day + datetime.timedelta(days=step)
    except OverflowError:
        return None, None, None
    return (then.year if has_year else None), then.month, then.day


def _matches(found: Day, wanted: Day) -> bool:
    return found[1] is not None and all(
        there == asked or asked is None or (place == 0 and there is None)
        for place, (there, asked) in enumerate(zip(found, wanted, strict=True))
    )


def _is_converted(number: numbers.Number, texts: Sequence[str], sentence: str) -> bool:
    """Whether the figure, with its unit, is a quoted one in another unit."""
    for measure in units.measures(sentence):
        if not measure.text.casefold().startswith(number.text.casefold()) and number.start != measure.number_at:
            continue
        for text in texts:
            for known in units.measures(text):
                for value in _values(known.text):
                    result = units.converted(value, known.unit, measure.unit)
                    wanted = [reading for _, reading in number.readings if isinstance(reading, Fraction)]
                    if result is not None and any(
                        _is_near(result, one, _rounding(number.text), number.hedged) or _is_roughly(result, one)
                        for one in wanted
                    ):
                        return True
    return False


def _values(text: str) -> Iterator[Fraction]:
    yield from numbers.KnownNumbers.of(text).sorted


def _is_roughly(result: Fraction, value: Fraction) -> bool:
    return abs(result - value) <= abs(result) * _ROUGH


def _rounding(text: str) -> Fraction:
    """Half of the last place that a figure is written to; nothing for a whole number in words or digits alone."""
    decimals = regex.search(r"\d[.,](\d+)", text)
    return Fraction(1, 2 * 10 ** len(decimals[1])) if decimals and len(decimals[1]) < 10 else Fraction(1, 2)


def _is_near(result: Fraction, value: Fraction, rounding: Fraction, hedged: bool) -> bool:
    """Whether a result is the figure. A result that is whole must be hit; another one may be rounded."""
    if result == value:
        return True
    if hedged:
        return abs(result - value) <= abs(value) * numbers.ROUNDED
    return result.denominator != 1 and abs(result - value) <= rounding
