"""Units and currencies of an answer's numbers: evidence that speaks of pounds does not support 5 kg."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ALIASES = {
    "dollar": "$ usd us$ dollar dollars buck bucks",
    "euro": "€ eur euro euros",
    "pound sterling": "£ gbp quid pence",
    "yen": "¥ jpy yen",
    "rupee": "₹ inr rupee rupees",
    "yuan": "cny rmb yuan renminbi",
    "franc": "chf franc francs",
    "cent": "cent cents",
    "percent": "% percent",
    "metre": "metre metres meter meters",
    "kilometre": "km kms kilometre kilometres kilometer kilometers",
    "centimetre": "cm centimetre centimetres centimeter centimeters",
    "millimetre": "mm millimetre millimetres millimeter millimeters",
    "mile": "mile miles mi",
    "yard": "yard yards yd",
    "foot": "foot feet ft",
    "inch": "inch inches",
    "hectare": "hectare hectares ha",
    "acre": "acre acres",
    "gram": "gram grams gramme grammes",
    "kilogram": "kg kgs kilo kilos kilogram kilograms kilogramme kilogrammes",
    "milligram": "mg milligram milligrams",
    "tonne": "tonne tonnes ton tons",
    "pound": "pound pounds lb lbs",
    "ounce": "ounce ounces oz",
    "litre": "litre litres liter liters",
    "millilitre": "ml millilitre millilitres milliliter milliliters",
    "gallon": "gallon gallons gal",
    "pint": "pint pints",
    "cup": "cup cups",
    "tablespoon": "tablespoon tablespoons tbsp",
    "teaspoon": "teaspoon teaspoons tsp",
    "second": "second seconds sec secs",
    "minute": "minute minutes min mins",
    "hour": "hour hours hr hrs hourly",
    "day": "day days daily",
    "week": "week weeks weekly fortnight",
    "month": "month months monthly",
    "year": "year years yr yrs yearly annual annually",
    "decade": "decade decades",
    "century": "century centuries",
    "celsius": "°c celsius centigrade",
    "fahrenheit": "°f fahrenheit",
    "degree": "° degree degrees",
    "watt": "watt watts",
    "kilowatt": "kw kilowatt kilowatts",
    "megawatt": "mw megawatt megawatts",
    "gigawatt": "gw gigawatt gigawatts",
    "kilowatt hour": "kwh",
    "volt": "volt volts",
    "ampere": "amp amps ampere amperes",
    "hertz": "hz hertz",
    "megahertz": "mhz megahertz",
    "gigahertz": "ghz gigahertz",
    "byte": "byte bytes",
    "kilobyte": "kb kilobyte kilobytes",
    "megabyte": "mb megabyte megabytes",
    "gigabyte": "gb gib gigabyte gigabytes",
    "terabyte": "tb tib terabyte terabytes",
    "calorie": "calorie calories kcal",
    "miles per hour": "mph",
}
_UNIT = {alias: unit for unit, aliases in _ALIASES.items() for alias in aliases.split()}
_SAME = {"pound sterling": {"pound"}, "pound": {"pound sterling"}, "degree": {"celsius", "fahrenheit"}}
"""Units whose names people use for each other."""
_NAMED = "|".join(
    re.escape(alias)
    for alias in sorted(_UNIT, key=len, reverse=True)
    if (alias.isalpha() or alias[0] == "°") and _UNIT[alias] != "percent"
)
_BEFORE = re.compile(r"(?P<unit>US\$|[$€£¥₹]|\b(?:usd|eur|gbp|jpy|inr|cny|chf))[ ]?(?P<number>\d)", re.IGNORECASE)
_AFTER = re.compile(
    r"(?P<number>\d)(?:[ -]|(?=[°a-z]))(?:(?:hundred|thousand|million|billion|trillion) )?"
    rf"(?P<unit>{_NAMED})(?![^\W_])",
    re.IGNORECASE,
)
_ANY = re.compile(
    rf"US\$|[$€£¥₹%]|°[cf]?(?![^\W_])|(?<![^\W\d_])(?:{_NAMED})(?![^\W_])|per ?cent|kilowatt[- ]hours?", re.IGNORECASE
)
_NUMBER_BEFORE = re.compile(r"\d[\d,.' ]*$")


@dataclass(frozen=True, slots=True)
class Measure:
    """A number with its unit: where the number begins, the text of both, and the unit's name."""

    number_at: int
    text: str
    unit: str


@dataclass(frozen=True, slots=True)
class KnownUnits:
    """The units that the sources mention, with a number or without."""

    units: frozenset[str]

    @classmethod
    def of(cls, text: str) -> KnownUnits:
        found = {_unit(match[0]) for match in _ANY.finditer(text)}
        return cls(frozenset(found))

    def has(self, measure: Measure) -> bool:
        return measure.unit in self.units or not self.units.isdisjoint(_SAME.get(measure.unit, ()))


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
        found.append(Measure(start, text[start : match.end()], _unit(match["unit"])))
    return sorted(found, key=lambda measure: measure.number_at)


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


def _unit(text: str) -> str:
    lowered = text.lower()
    if lowered in {"per cent", "percent"}:
        return "percent"
    if lowered.startswith("kilowatt") and lowered.rstrip("s").endswith("hour"):
        return "kilowatt hour"
    return _UNIT[lowered]
