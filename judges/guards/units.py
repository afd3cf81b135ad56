"""Units and currencies of an answer's numbers: evidence that speaks of pounds does not support 5 kg."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

_ALIASES = {
    "dollar": "$ usd us$ dollar dollars buck bucks",
    "euro": "€ eur euro euros",
    "pound sterling": "£ gbp quid pence",
    "yen": "¥ jpy yen",
    "rupee": "₹ inr rupee rupees",
    "yuan": "cny rmb yuan renminbi",
    "franc": "chf franc francs",
    "cent": "cent cents",
    "percent": "% percent prozent",
    "metre": "m metre metres meter meters mètre mètres metro metros",
    "kilometre": "km kms kilometre kilometres kilometer kilometers kilomètre kilomètres kilómetro kilómetros",
    "centimetre": "cm centimetre centimetres centimeter centimeters",
    "micrometre": "µm μm micrometre micrometres micron microns",
    "nanometre": "nm nanometre nanometres nanometer nanometers",
    "millimetre": "mm millimetre millimetres millimeter millimeters",
    "mile": "mile miles mi meile meilen milles milla millas",
    "yard": "yard yards yd",
    "foot": "foot feet ft fuß",
    "inch": "inch inches",
    "hectare": "hectare hectares ha",
    "acre": "acre acres",
    "gram": "g gram grams gramme grammes gramm gramo gramos",
    "kilogram": "kg kgs kilo kilos kilogram kilograms kilogramme kilogrammes kilogramm",
    "milligram": "mg milligram milligrams",
    "microgram": "µg μg mcg microgram micrograms",
    "tonne": "tonne tonnes ton tons",
    "pound": "pound pounds lb lbs pfund",
    "ounce": "ounce ounces oz",
    "litre": "l litre litres liter liters",
    "centilitre": "cl centilitre centilitres",
    "millilitre": "ml millilitre millilitres milliliter milliliters",
    "gallon": "gallon gallons gal",
    "pint": "pint pints",
    "cup": "cup cups",
    "tablespoon": "tablespoon tablespoons tbsp",
    "teaspoon": "teaspoon teaspoons tsp",
    "millisecond": "ms millisecond milliseconds",
    "microsecond": "µs μs microsecond microseconds",
    "second": "s second seconds sec secs sekunde sekunden",
    "minute": "minute minutes min mins minuten minuto minutos",
    "hour": "hour hours hr hrs hourly stunde stunden heure heures hora horas",
    "day": "day days daily tag tage tagen jour jours día días",
    "week": "week weeks weekly fortnight woche wochen semaine semaines semana semanas",
    "month": "month months monthly monat monate monaten mois meses",
    "year": "year years yr yrs yearly annual annually jahr jahre jahren ans année années año años",
    "decade": "decade decades",
    "century": "century centuries",
    "celsius": "°c celsius centigrade degrees_celsius degree_celsius degrees_centigrade degrees_c",
    "fahrenheit": "°f fahrenheit degrees_fahrenheit degree_fahrenheit degrees_f",
    "degree": "° degree degrees grad degrés grados",
    "watt": "w watt watts",
    "milliwatt": "milliwatt milliwatts",
    "kilowatt": "kw kilowatt kilowatts",
    "megawatt": "mw megawatt megawatts",
    "gigawatt": "gw gigawatt gigawatts",
    "kilowatt hour": "kwh",
    "megawatt hour": "mwh",
    "gigawatt hour": "gwh",
    "watt hour": "wh",
    "volt": "v volt volts",
    "kilovolt": "kv kilovolt kilovolts",
    "millivolt": "mv millivolt millivolts",
    "ampere": "amp amps ampere amperes",
    "hertz": "hz hertz",
    "kilohertz": "khz kilohertz",
    "megahertz": "mhz megahertz",
    "gigahertz": "ghz gigahertz",
    "byte": "byte bytes",
    "kilobyte": "kb kilobyte kilobytes",
    "megabyte": "mb megabyte megabytes",
    "gigabyte": "gb gib gigabyte gigabytes",
    "terabyte": "tb tib terabyte terabytes",
    "bit": "bit bits",
    "kilobit": "kilobit kilobits kbit kbps",
    "megabit": "megabit megabits mbit mbps",
    "gigabit": "gigabit gigabits gbit gbps",
    "calorie": "calorie calories kcal",
    "miles per hour": "mph",
    "kilometres per hour": "kmh kph",
    "joule": "j joule joules",
    "kilojoule": "kj kilojoule kilojoules",
    "pascal": "pascal pascals",
    "hectopascal": "hpa hectopascal hectopascals",
    "bar": "bar bars",
    "millibar": "mbar millibar millibars",
}
_CASED = {"Mb": "megabit", "Gb": "gigabit", "Kb": "kilobit", "kb": "kilobit", "mW": "milliwatt", "MV": "megavolt"}
"""Units that only capitals tell from others: `100 Mb` is no `100 MB`."""
_UNIT = {alias.replace("_", " "): unit for unit, aliases in _ALIASES.items() for alias in aliases.split()}
_KINDS = """
metre 1, kilometre 1000, centimetre 1/100, millimetre 1/1000, micrometre 1/1000000, nanometre 1/1000000000, \
mile 1609.344, yard 0.9144, foot 0.3048, inch 0.0254
hectare 10000, acre 4046.8564224
gram 1, kilogram 1000, milligram 1/1000, microgram 1/1000000, tonne 1000000, pound 453.59237, ounce 28.349523125
litre 1, millilitre 1/1000, centilitre 1/100, gallon 3.785411784, pint 0.473176473, cup 0.2365882365, \
tablespoon 0.01478676478, teaspoon 0.00492892159
second 1, minute 60, hour 3600, day 86400, week 604800, month 2629800, year 31557600, decade 315576000, \
century 3155760000, millisecond 1/1000, microsecond 1/1000000
watt 1, kilowatt 1000, megawatt 1000000, gigawatt 1000000000, milliwatt 1/1000
watt hour 1, kilowatt hour 1000, megawatt hour 1000000, gigawatt hour 1000000000, joule 1/3600, kilojoule 5/18
volt 1, kilovolt 1000, millivolt 1/1000, megavolt 1000000
hertz 1, kilohertz 1000, megahertz 1000000, gigahertz 1000000000
bit 1, byte 8, kilobit 1000, kilobyte 8000, megabit 1000000, megabyte 8000000, gigabit 1000000000, \
gigabyte 8000000000, terabyte 8000000000000
kilometres per hour 1, miles per hour 1.609344
pascal 1, hectopascal 100, millibar 100, bar 100000
euro 100, cent 1
dollar 100, cent 1
franc 100, cent 1
pound sterling 100, pound 100, cent 1
"""
_FACTORS = [
    {unit: Fraction(factor) for unit, _, factor in (part.rpartition(" ") for part in kind.split(", "))}
    for kind in _KINDS.strip().split("\n")
]
"""What one of a unit is in the first of its kind. Days make months and years as they do on average."""
_SAME = {"pound sterling": {"pound"}, "pound": {"pound sterling"}, "degree": {"celsius", "fahrenheit"}}
"""Units whose names people use for each other."""
_NAMED = "|".join(
    re.escape(alias)
    for alias in sorted(_UNIT, key=len, reverse=True)
    if (alias.replace(" ", "").isalpha() or alias[0] == "°") and _UNIT[alias] != "percent"
)
_SPELT_OUT = "|".join(name for name in _NAMED.split("|") if len(name) > 1)
_BEFORE = re.compile(r"(?P<unit>US\$|[$€£¥₹]|\b(?:usd|eur|gbp|jpy|inr|cny|chf))[ ]?(?P<number>\d)", re.IGNORECASE)
_AFTER = re.compile(
    r"(?P<number>\d)(?:[ -]|(?=[°a-zµμ]))(?:(?:hundred|thousand|million|billion|trillion) )?"
    rf"(?P<unit>{_NAMED})(?![^\W_])",
    re.IGNORECASE,
)
_ANY = re.compile(
    rf"US\$|[$€£¥₹%]|°[cf]?(?![^\W_])|(?<![^\W_])(?:{_SPELT_OUT})(?![^\W_])|per ?cent|kilowatt[- ]hours?", re.IGNORECASE
)
_LOWER_END = re.compile(r"(?<![\d.,])(\d[\d,.]*\d|\d)(?: ?- ?| to | and | or )$")
"""The lower end of a range, which has the unit of the upper one: `2 to 8 km`."""
_NUMBER = re.compile(r"\d[\d,.']*")


@dataclass(frozen=True, slots=True)
class Measure:
    """A number with its unit: where the number begins, the text of both, and the unit's name."""

    number_at: int
    text: str
    unit: str


@dataclass(frozen=True, slots=True)
class KnownUnits:
    """The units that the sources mention, with a number or without, and those that they give each number."""

    units: frozenset[str]
    by_number: Mapping[str, frozenset[str]]
    """The units of a number that always has one, by its digits."""

    @classmethod
    def of(cls, text: str) -> KnownUnits:
        found = {_unit(match[0]) for match in _ANY.finditer(text)}
        by_number: dict[str, set[str]] = {}
        with_unit = {measure.number_at: measure for measure in measures(text)}
        for match in _NUMBER.finditer(text):
            measure = with_unit.get(match.start())
            by_number.setdefault(_digits(match[0]), set()).add(measure.unit if measure else "")
        return cls(
            frozenset(found | {measure.unit for measure in with_unit.values()}),
            {number: frozenset(named) for number, named in by_number.items() if "" not in named},
        )

    def has(self, measure: Measure) -> bool:
        """Whether the sources have the unit; where they give its number a unit each time, whether they give it this."""
        found = _NUMBER.search(measure.text)
        known = self.by_number.get(_digits(found[0]) if found else "", self.units)
        if "degree" in known:
            known |= self.units & {"celsius", "fahrenheit"}
        return measure.unit in known or not known.isdisjoint(_SAME.get(measure.unit, ()))


def converted(value: Fraction, unit: str, wanted: str) -> Fraction | None:
    """A value in another unit of its kind; None where there is no way from one to the other.

    >>> converted(Fraction(10), "celsius", "fahrenheit"), converted(Fraction(2), "hour", "minute")
    (Fraction(50, 1), Fraction(120, 1))
    """
    if (unit, wanted) in {("celsius", "fahrenheit"), ("degree", "fahrenheit")}:
        return value * 9 / 5 + 32
    if (unit, wanted) in {("fahrenheit", "celsius"), ("degree", "celsius")}:
        return (value - 32) * 5 / 9
    for factors in _FACTORS:
        if unit in factors and wanted in factors:
            return value * factors[unit] / factors[wanted]
    return None


def measures(text: str) -> list[Measure]:
    """Numbers in digits with a unit, in a plain text.

    >>> [(measure.text, measure.unit) for measure in measures("$5.50 for 12 km or 3-hour trips")]
    [('$5.50', 'dollar'), ('12 km', 'kilometre'), ('3-hour', 'hour')]
    """
    found = []
    for match in _BEFORE.finditer(text):
        number = re.compile(r"\d[\d,.]*").match(text, match.start("number"))
        end = number.end() if number else match.end()
        found.append(Measure(match.start("number"), text[match.start() : end].rstrip(",."), _unit(match["unit"])))
    for match in _AFTER.finditer(text):
        start = _number_start(text, match.start("number"))
        if len(match["unit"]) == 1 and not _is_unit_sign(text, start, match):
            continue
        found.append(Measure(start, text[start : match.end()], _unit(match["unit"])))
        if lower := _LOWER_END.search(text, max(0, start - _LONGEST_NUMBER), start):
            found.append(Measure(lower.start(1), lower[1], _unit(match["unit"])))
    return sorted(found, key=lambda measure: measure.number_at)


def _is_unit_sign(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether one letter behind a number is a unit. `$5m` is millions, `1990s` a decade, `9 v 3` a match."""
    sign, is_glued = match["unit"], match.start("unit") == match.end("number")
    if sign in "°":
        return True
    if (sign == "s" and is_glued) or (start and text[start - 1] in "$€£¥₹"):
        return False
    return sign in "smglLVWJ"


_LONGEST_NUMBER = 40


def _number_start(text: str, last_digit: int) -> int:
    """Where the number begins that ends with this digit."""
    start = last_digit
    while (
        start > 0 and last_digit - start < _LONGEST_NUMBER and (text[start - 1].isdigit() or text[start - 1] in ",.'")
    ):
        start -= 1
    while start < last_digit and not text[start].isdigit():
        start += 1
    return start


def _digits(text: str) -> str:
    return re.sub(r"[,'. ]+$|[,']", "", text)


def _unit(text: str) -> str:
    if text in _CASED:
        return _CASED[text]
    lowered = text.lower().replace("μ", "µ")
    if lowered in {"per cent", "percent"}:
        return "percent"
    if lowered.startswith("kilowatt") and lowered.rstrip("s").endswith("hour"):
        return "kilowatt hour"
    return _UNIT[lowered]


def is_unit(word: str) -> bool:
    """Whether a word is the name of a unit.

    >>> is_unit("Meter"), is_unit("Abstand")
    (True, False)
    """
    return word.lower() in _UNIT
