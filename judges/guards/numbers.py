"""Numbers in digits and in words, with their scale, as percentages and as fractions: one value, however written.

Libraries for this know cardinal numbers only, and are not linear in the length of a hostile text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import regex

from stepdown.judges.text import word_list

_UNITS = word_list(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = word_list("twenty thirty forty fifty sixty seventy eighty ninety")
_SMALL = {word: value for value, word in enumerate(_UNITS)} | {word: 20 + 10 * i for i, word in enumerate(_TENS)}
_ORDINALS = {
    word: value
    for value, word in enumerate(
        word_list(
            "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
            "sixteenth seventeenth eighteenth nineteenth"
        ),
        3,
    )
} | {f"{word[:-1]}ieth": value for word, value in _SMALL.items() if word in _TENS}
_SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_GLUED = {"k": 10**3, "m": 10**6, "mn": 10**6, "mio": 10**6, "b": 10**9, "bn": 10**9, "tn": 10**12}
_PARTS = {"half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4} | {
    f"{word}{end}": value for word, value in _ORDINALS.items() if word != "third" and value <= 20 for end in ("", "s")
}
_TIMES = {"both": 2, "pair": 2, "couple": 2, "twice": 2, "double": 2, "doubled": 2, "dozen": 12, "triple": 3}
_TIMES |= {"tripled": 3, "thrice": 3, "decade": 10, "century": 100, "fortnight": 14, "single": 1, "once": 1}
_HALVED = {"halved": Fraction(1, 2), "halving": Fraction(1, 2)}

_WORD = "|".join(sorted([*_SMALL, *_SCALES], key=len, reverse=True))
_SPELT = regex.compile(rf"\b(?:{_WORD})\b(?:(?:-| and | )(?:{_WORD})\b)*+", regex.IGNORECASE)
NUMBER_WORD = rf"(?:{_WORD})"
_DIGITS = regex.compile(
    r"(?:(?P<whole>\d{1,3}(?:\.\d{3})++)(?P<decimals>,\d++)(?![.,]?\d)"
    r"|(?P<whole>\d{1,3}(?:\.\d{3}){2,}+)(?![.,]?\d)"
    r"|(?<![\d,])(?P<whole>\d++)(?P<decimals>,\d{1,2})(?![\d,]|\.\d)"
    r"|(?P<whole>\d{1,3}(?:,\d{3})++(?!\d)|\d{1,3}(?:[ ']\d{3})++(?!\d)|\d++)(?P<decimals>\.\d++)?+)"
    r"(?:(?P<ordinal>st|nd|rd|th)\b|(?P<glued>k|m|mn|mio|b|bn|tn)\b)?+",
    regex.IGNORECASE,
)
_SCALE_AFTER = regex.compile(rf"[ -]?({'|'.join(_SCALES)}|dozen|lakh|crore|bn|mn|k|m|b)\b", regex.IGNORECASE)
_PERCENT_AFTER = regex.compile(
    r" ?(?:%|per ?cent\b|pct\b|prozent\b|pour cent\b|por ciento\b|percentage points?\b)", regex.IGNORECASE
)
_PART_AFTER = regex.compile(rf"[ -](?:a )?({'|'.join(sorted(_PARTS, key=len, reverse=True))})\b", regex.IGNORECASE)
_OUT_OF = regex.compile(r"(?:/|[ -](?:in|out of)[ -](?:every )?)(?=\d|[a-z])", regex.IGNORECASE)
_MIXED = regex.compile(r"(?<![\d.,/])(\d{1,4}) (\d{1,2})/(\d{1,2})(?![\d/])")
_AND_PART = regex.compile(r"[ -]and[ -](?:a|one)[ -](half|quarter|third)\b", regex.IGNORECASE)
_PART_ALONE = regex.compile(r"\b(half|quarter|third)\b", regex.IGNORECASE)
_OTHER = regex.compile(rf"\b({'|'.join([*_TIMES, *_HALVED, *_ORDINALS])})\b", regex.IGNORECASE)
_HEDGE = regex.compile(
    r"(?:about|around|approximately|approx\.?|roughly|nearly|almost|some|circa|over|more than|under|less than|fewer "
    r"than|up to|at least|at most|~|≈)[ ]?[$€£¥₹]?$",
    regex.IGNORECASE,
)
_SEPARATORS = regex.compile(r"[,.' ]")
_ONE_COMMA = regex.compile(r"\d{1,3},\d{3}")
_MINUS = regex.compile(r"(?:^|[\s(\[=:<>~/])(-|[+]-|minus )$", regex.IGNORECASE)
_BELOW_ZERO = regex.compile(
    r"[ ]?(?:°[CF]?|degrees?(?: celsius| fahrenheit| centigrade)?)?[ ](?:below|under)[ ](?:zero|freezing)\b",
    regex.IGNORECASE,
)
_LESSENING = regex.compile(
    r"\b(?:fell|falls?|fallen|drop\w*|declin\w*|decreas\w*|los[ts]\w*|loses?|lower|down|reduc\w*|shr[aiu]nk\w*|negative|"
    r"below|deficit|minus|gesunken|sank|fiel)\b",
    regex.IGNORECASE,
)
"""Words by which `it fell by 3%` says what `-3%` says."""
_CITATION = regex.compile(r"\[\d{1,3}\]")
_SOURCE = regex.compile(
    r"\b(?:passages?|sources?|documents?) \d{1,3}(?:(?:, and |, | and | & )\d{1,3})*+(?![\d.,]\d)", regex.IGNORECASE
)
"""References to passages by number: they say nothing about the subject."""
ROUNDED = Fraction(5, 100)
"""How far an answer that says `about` may be from the number that it rounds, as a share of it."""
_LONGEST = 30
"""Numbers of more digits are compared as text."""

ReadingKind = Literal["plain", "ratio", "percent", "times", "text"]
Reading = tuple[ReadingKind, Fraction | str]


@dataclass(frozen=True, slots=True)
class Number:
    """A number with its place in the text, and every value that it may be read as."""

    start: int
    end: int
    text: str
    readings: frozenset[Reading]
    hedged: bool = False
    """Whether the text says that it is approximate (`about`, `nearly`)."""
    parts: tuple[frozenset[Reading], ...] = ()
    """The two numbers of a share such as `3 out of 4`."""


@dataclass(frozen=True, slots=True)
class KnownNumbers:
    """The numbers of the sources."""

    readings: frozenset[Reading]
    sorted: tuple[Fraction, ...]

    @classmethod
    def of(cls, text: str) -> KnownNumbers:
        """The numbers of a plain text (`judges.text.plain`), those in dates too."""
        readings = {
            reading
            for number in [*_in_digits(text), *_spelt(text), *_fractions_in_words(text)]
            for reading in number.readings
        }
        for found in _OTHER.finditer(text):
            word = found[1].lower()
            if word in _HALVED:
                readings.add(("ratio", _HALVED[word]))
            else:
                readings.add(("plain", Fraction(_TIMES.get(word) or _ORDINALS[word])))
        readings |= set(_percentages_of_tables(text))
        plain = tuple(sorted({value for kind, value in readings if kind == "plain" and isinstance(value, Fraction)}))
        return cls(frozenset(readings), plain)

    def is_negated(self, number: Number, sentence: str) -> bool:
        """Whether the sources have the number below zero, and the sentence says so in words."""
        negated = {(kind, -value) for kind, value in number.readings if isinstance(value, Fraction)}
        return not negated.isdisjoint(self.readings) and _LESSENING.search(sentence) is not None

    @property
    def years(self) -> frozenset[int]:
        """Whole numbers that may be years."""
        return frozenset(int(value) for value in self.sorted if value.denominator == 1 and 1000 <= value <= 2999)

    def has(self, number: Number) -> bool:
        """Whether the sources have one of its readings, or one that is near enough where the answer says `about`."""
        if not number.readings.isdisjoint(self.readings):
            return True
        if number.parts and not any(part.isdisjoint(self.readings) for part in number.parts):
            return True
        return number.hedged and any(
            self._near(value) for kind, value in number.readings if kind == "plain" and isinstance(value, Fraction)
        )

    def _near(self, value: Fraction) -> bool:
        place = bisect_left(self.sorted, value * (1 - ROUNDED))
        return place < len(self.sorted) and self.sorted[place] <= value * (1 + ROUNDED)


_PERCENT = regex.compile(r"%|per ?cent|\bpct\b", regex.IGNORECASE)
_IN_CELLS = regex.compile(r"[|\t]|\S {2,}\S")
_PERCENT_LIST = regex.compile(
    r"(?<![\d.,])(?:\d++(?:\.\d++)?+(?:, (?:and |or )?| and | or | to | ?- ?| ?/ ?))++"
    r"\d++(?:\.\d++)?+ ?(?:%|per ?cent)",
    regex.IGNORECASE,
)
"""`40, 50 and 60%`"""


def _percentages_of_tables(text: str) -> Iterator[Reading]:
    """Numbers that are percentages and do not say so: in a list before one that does, in a table whose head does."""
    listed = [match[0] for match in _PERCENT_LIST.finditer(text)]
    in_table = False
    for line in text.split("\n"):
        in_table = (in_table or _PERCENT.search(line) is not None) and _IN_CELLS.search(line) is not None
        listed += [line] if in_table else []
    for part in listed:
        yield from (
            ("percent", value) for number in _in_digits(part) for kind, value in number.readings if kind == "plain"
        )


def value_of(text: str) -> Fraction | None:
    """The value of a number that stands alone, in digits or in words; None where it has none.

    >>> value_of("twelve"), value_of("3.5"), value_of("many")
    (Fraction(12, 1), Fraction(7, 2), None)
    """
    if text[:1].isdigit():
        return Fraction(text)
    values = _values(_split(text)) if _SPELT.fullmatch(text) else []
    return Fraction(values[0]) if values else None


def figures(text: str) -> list[Number]:
    """The numbers in a sentence of an answer that its sources should have, in order.

    Left out are `one`, which is mostly a pronoun, citations, and words that only order the text, such as `first`.

    >>> [number.text for number in figures("One of 12,500 is first, or two-thirds, about 3 million, [2].")]
    ['12,500', 'two-thirds', '3 million']
    """
    kept: list[Number] = []
    cited = {found.start() + 1 for found in _CITATION.finditer(text)}
    cited |= {found.start() + at.start() for found in _SOURCE.finditer(text) for at in regex.finditer(r"\d+", found[0])}
    for number in sorted(
        [*_fractions_in_words(text), *_in_digits(text), *_spelt(text)], key=lambda n: (n.start, -n.end)
    ):
        inside = kept and number.start < kept[-1].end
        if not inside and number.text.lower() != "one" and number.start not in cited:
            kept.append(number)
    return kept


def _in_digits(text: str) -> Iterator[Number]:
    for found in _DIGITS.finditer(text):
        whole, decimals = _SEPARATORS.sub("", found["whole"]), (found["decimals"] or "").replace(",", ".")
        if len(whole) > _LONGEST or len(decimals) > _LONGEST:
            yield Number(found.start(), found.end(), found[0][:100], frozenset({("text", found[0])}))
            continue
        value = Fraction(whole + decimals)
        glued = _GLUED.get((found["glued"] or "").lower())
        extra: set[Reading] = set()
        if len(decimals) == 4 and whole.strip("0"):
            extra.add(("plain", Fraction(whole + decimals[1:])))  # 1.000 is a thousand to many
        elif _ONE_COMMA.fullmatch(found["whole"]):
            extra.add(("plain", Fraction(found["whole"].replace(",", "."))))  # and 1,234 less than two
        yield _signed(text, _number(text, found.start(), found.end(), value, glued, extra))


def _signed(text: str, number: Number) -> Number:
    """The number with a minus before it, or `below zero` behind it, taken with it."""
    before = _MINUS.search(text, max(0, number.start - 8), number.start)
    after = _BELOW_ZERO.match(text, number.end)
    if before is None and after is None:
        return number
    start, end = before.start(1) if before else number.start, after.end() if after else number.end
    readings = frozenset((kind, -value) for kind, value in number.readings if isinstance(value, Fraction))
    return Number(start, end, text[start:end], readings, number.hedged)


def _spelt(text: str) -> Iterator[Number]:
    for found in _SPELT.finditer(text):
        for value in _values(_split(found[0])):
            yield _number(text, found.start(), found.end(), Fraction(value))


def _values(parts: list[str]) -> list[int]:
    """What a run of number words may mean: `two thousand and five`, or a spoken year such as `nineteen ninety`."""
    if len(parts) > _LONGEST:
        return []
    total = current = 0
    for part in parts:
        if part == "hundred":
            current = max(1, current) * 100
        elif part in _SCALES:
            total, current = total + max(1, current) * _SCALES[part], 0
        else:
            current += _SMALL[part]
        if total + current > 10**_LONGEST:
            return []
    values = [total + current]
    if len(parts) > 1 and all(part in _SMALL for part in parts):
        if 10 <= _SMALL[parts[0]] < 100:
            rest = sum(_SMALL[part] for part in parts[1:])
            values += [_SMALL[parts[0]] * 100 + rest] if 0 < rest < 100 else []
        values += [_SMALL[part] for part in parts]  # a list without commas
    return values


def _number(
    text: str, start: int, end: int, value: Fraction, scale: int | None = None, extra: set[Reading] | None = None
) -> Number:
    """The number together with what follows it: a scale, a percent sign, or the whole that it is a part of."""
    readings: set[Reading] = {("plain", value), *(extra or ())}
    parts: tuple[frozenset[Reading], ...] = ()
    if scale:
        readings.add(("plain", value * scale))
    elif after := _SCALE_AFTER.match(text, end):
        word = after[1].lower()
        factor = _SCALES.get(word) or _GLUED.get(word) or {"dozen": 12, "lakh": 10**5, "crore": 10**7}[word]
        spelt_out = word not in _GLUED
        if spelt_out:
            readings.clear()
        readings.add(("plain", value * factor))
        end = after.end() if spelt_out or text[end] != " " else end
    if percent := _PERCENT_AFTER.match(text, end):
        readings.clear()
        readings.update({("percent", value), ("ratio", value / 100)})
        if value % 100 == 0:
            readings.add(("plain", value / 100))
        end = percent.end()
    elif whole := _whole_after(text, end, value):
        of, end = whole
        parts = (frozenset(readings), frozenset({("plain", of)}))
        readings.discard(("plain", value))
        readings.update({("ratio", value / of), ("percent", 100 * value / of)})
    if value.denominator != 1:
        readings.update({("ratio", value), ("percent", value * 100)})
    hedged = _HEDGE.search(text, max(0, start - 20), start) is not None
    return Number(start, end, text[start:end], frozenset(readings), hedged, parts)


def _whole_after(text: str, end: int, part: Fraction) -> tuple[Fraction, int] | None:
    """The whole that a number is a part of: `3 out of 4`, `3/4`, `one in four`. A year is not: `five in 2020`."""
    between = _OUT_OF.match(text, end)
    if between is None:
        return None
    digits, spelt = _DIGITS.match(text, between.end()), _SPELT.match(text, between.end())
    if digits and not digits["ordinal"] and not digits["decimals"] and len(digits["whole"]) <= _LONGEST:
        whole, after = int(_SEPARATORS.sub("", digits["whole"])), digits.end()
    elif spelt and (values := _values(_split(spelt[0]))):
        whole, after = values[0], spelt.end()
    else:
        return None
    return (Fraction(whole), after) if part <= whole < 1000 and whole else None


def _split(run: str) -> list[str]:
    """The words of a number that is spelt out."""
    return regex.split(r"-| and | ", run.lower())


def _fractions_in_words(text: str) -> Iterator[Number]:
    """Fractions in words: `half`, `two-thirds`, `a quarter of`, `three and a half`."""
    for found in _SPELT.finditer(text):
        part = _PART_AFTER.match(text, found.end())
        values = _values(_split(found[0])) if part else []
        if part and values and 0 < values[0] < 100:
            yield _fraction(text, found.start(), part.end(), Fraction(values[0], _PARTS[part[1].lower()]))
        more = _AND_PART.match(text, found.end())
        if more and (whole := _values(_split(found[0]))):
            yield _fraction(text, found.start(), more.end(), whole[0] + Fraction(1, _PARTS[more[1].lower()]))
    for found in _MIXED.finditer(text):
        whole_part, over, under = (int(group) for group in found.groups())
        if 0 < over < under:
            yield _fraction(text, found.start(), found.end(), whole_part + Fraction(over, under))
    for found in _PART_ALONE.finditer(text):
        word = found[1].lower()
        before, after = text[max(0, found.start() - 4) : found.start()].lower(), text[found.end() : found.end() + 4]
        if word == "half" or before.endswith(("a ", "one ")) or (word != "third" and after.lower() == " of "):
            yield _fraction(text, found.start(), found.end(), Fraction(1, _PARTS[word]))


def _fraction(text: str, start: int, end: int, value: Fraction) -> Number:
    readings: frozenset[Reading] = frozenset({("ratio", value), ("percent", value * 100), ("plain", value)})
    return Number(start, end, text[start:end], readings)
