"""Numbers as people and models write them, read exactly.

A number has digits with at most one decimal point, thousands in groups of three set off by a comma, an apostrophe, an
underscore or a no-break or thin space, a sign (`-5`, `-$5`, `minus 5`), an exponent (`1.5e3`, `1.5 x 10^3`), a percent
sign (a hundredth), or a word of scale after it (`2.5 million`). Digits inside a word (`B12`, `COVID-19`) are no number.
What looks like a number and is none of these (`1,5`, `1.2.3`, `3/4`, `10:30`, `5k`, `0x1F`, `2½`, `10^6`, `5 dozen`,
`12 000`) cannot be read, and is equal to no number. Otherwise a plain space separates two numbers.
"""

from __future__ import annotations

import re
from fractions import Fraction

_SCALES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_GROUP = ",'’_\u00a0\u2009\u202f"
_SIGNS = "-+\u2212\u2013"
_MINUS = {"-", "\u2212", "\u2013", "minus", "negative"}
_VAGUE = "dozens?|lakhs?|crores?|bn|mn|mln|mio|tenths?|hundredths?|thousandths?|millionths?|billionths?"
"""Words that change the value of the number before them."""
_JOIN = rf"[.,/:{_GROUP}]"
_NUMBER = re.compile(
    rf"""
    (?<![^\W_])(?<![^\W\d_]-)              # not inside a word
    (?:(?P<sign>(?<![^\W_])(?<!\))[{_SIGNS}]|(?:minus|negative)\s)[$€£¥₹]?)?  # a sign, and not the dash of a range
    (?P<digits>\.?\d(?:{_JOIN}?\d)*)
    (?P<spaced>(?<![\d.,]\d{{3}})(?:[ ]\d{{3}})+(?!\d)(?:\.\d+)?|[ ]\d{{1,3}}/\d{{1,3}}(?!\d))?
    (?:[eE](?P<e>[-+\u2212]?\d{{1,9}})(?![^\W_])
       | \s?[x×*·⋅]\s?10(?:\^|\*\*)\{{?(?P<power>[-+\u2212]?\d{{1,9}})\}}?)?
    (?P<raised>(?:\s?\^\s?|\*\*)[{{(]?[-+\u2212]?\d+[}})]?)?
    (?: (?P<vague>\s?‰|\s(?:{_VAGUE})\b) | \s?(?P<percent>%|per\s?cent\b|pct\b)
       | (?P<scales>(?:\s?(?:{"|".join(_SCALES)})\b)+) | (?P<unit>[^\W\d_][^\W_]*) )?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_PLAIN = re.compile(r"(?:\d+(?:\.\d+)?|\.\d+)", re.ASCII)
_GROUPED = re.compile(rf"\d{{1,3}}(?P<mark>[{_GROUP}])\d{{3}}(?:(?P=mark)\d{{3}})*(?:\.\d+)?", re.ASCII)
_ABBREVIATED = {"k", "K", "M", "mn", "mln", "mio", "m", "B", "b", "bn", "T", "tn"}
"""Letters right after a number that may mean a scale or something else: `m` is also used for metres."""
_LONGEST = 300
"""The most digits, and the largest exponent. Larger numbers answer no question, and take long to compute."""


def numbers(text: str) -> list[tuple[str, Fraction | None]]:
    """Every number of a text as written, with its value; None where it cannot be read.

    >>> numbers("between 1,200 and 1.5e3, or 12%")
    [('1,200', Fraction(1200, 1)), ('1.5e3', Fraction(1500, 1)), ('12%', Fraction(3, 25))]
    """
    return [(found[0].strip(), _value(found)) for found in _NUMBER.finditer(text)]


def number(text: str) -> Fraction | None:
    """The value of a text that is one number and nothing else; None where it is not.

    >>> number("-2.5 million"), number("about 3")
    (Fraction(-2500000, 1), None)
    """
    found = _NUMBER.fullmatch(text.strip())
    return _value(found) if found and not found["unit"] else None


def _value(found: re.Match[str]) -> Fraction | None:
    digits, exponent = found["digits"], (found["e"] or found["power"] or "0").replace("\u2212", "-")
    unit = found["unit"] or ""
    if len(digits) > _LONGEST or abs(int(exponent)) > _LONGEST:
        return None
    if unit in _ABBREVIATED or any(map(str.isnumeric, unit)) or found["raised"] or found["vague"]:
        return None
    if found["spaced"] and ("/" in found["spaced"] or len(digits) <= 3):  # 2 1/2; 12 000 is one number or two
        return None
    if not (_PLAIN.fullmatch(digits) or _GROUPED.fullmatch(digits)):
        return None
    value = Fraction(re.sub(rf"[{_GROUP}]", "", digits)) * Fraction(10) ** int(exponent)
    if (found["sign"] or "").strip().lower() in _MINUS:
        value = -value
    if found["percent"]:
        value /= 100
    for scale in re.findall("|".join(_SCALES), (found["scales"] or "").lower()):
        value *= _SCALES[scale]
    return value
