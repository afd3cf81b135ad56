"""Compares texts: without what is to be ignored, and whether one occurs in another as words of its own."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from typing import Literal

Ignorable = Literal["case", "space", "punctuation"]

_MARKS = re.compile(r"""[.,;:!?'"`*_()\[\]{}…“”‘’«»¿¡]+""")
"""Marks that end a sentence, quote, bracket or emphasise."""
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u2032", "'"))
_UNSEEN = str.maketrans(dict.fromkeys("\u200b\u2060\ufeff\u00ad"))
"""Characters of no width that change nothing in how a text reads."""
_NUMBER_BEFORE = re.compile(r"\d[.,:/]$|(?:^|[^\w])[-\u2212\u2013]$")
"""What stands before digits that are part of a longer number (a decimal, a time, a ratio) or have a sign."""
_NUMBER_AFTER = re.compile(
    r"[.,:/]\d|[ \u00a0\u202f]\d{3}(?!\d)|\s?%|\s(?:dozen|hundred|thousand|[mb]illion|trillion|per ?cent)",
    re.IGNORECASE,
)
"""What stands after such digits: also further groups of digits, a percent sign, or a word of scale."""
_GROUP = re.compile(r"(?<=\d[ \u00a0\u202f])\d{3}(?!\d)")
_DASHES = re.compile(r"[-–—](?!\d)")
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # kana
    (0x3400, 0x9FFF),  # Han
    (0xAC00, 0xD7AF),  # Hangul, whose particles follow without a space
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


def normalised(text: str, ignore: Collection[Ignorable]) -> str:
    """The text without what is to be ignored, and always in NFC and without invisible characters.

    `punctuation` ignores the marks of sentences, quotes, brackets and emphasis at the edges of words, and takes a dash
    for a space. It keeps what distinguishes answers: `C#`, `5%`, `3.14`, `-5`, `.5`, `2*3`.

    >>> normalised(" The answer:  **3.14**. ", {"case", "space", "punctuation"})
    'the answer 3.14'
    """
    text = unicodedata.normalize("NFC", text.translate(_UNSEEN))
    if "case" in ignore:
        text = unicodedata.normalize("NFC", text.casefold())
    if "punctuation" in ignore:
        text = _DASHES.sub(" ", _MARKS.sub(_without, text.translate(_APOSTROPHES)))
    return " ".join(text.split()) if "space" in ignore else text


def _without(marks: re.Match[str]) -> str:
    """What is left of a run of marks, so that no two words are joined."""
    text, (start, end) = marks.string, marks.span()
    after = text[end : end + 1]
    if start and text[start - 1].isalnum() and after.isalnum():
        return marks[0] if end - start == 1 else " "
    return "." if marks[0][-1] == "." and after.isdigit() else ""


def occurs(wanted: str, text: str) -> bool:
    """Whether `wanted` occurs in `text` as whole words and numbers, not inside longer ones.

    >>> occurs("no", "I know"), occurs("12", "12.5 or 112"), occurs("12", "It is 12.")
    (False, False, True)
    >>> [occurs("12", text) for text in ("12 000", "12%", "12:30", "1/12", "12 million", "12, 000")]
    [False, False, False, False, False, True]
    """
    at = text.find(wanted)
    while at >= 0:
        if not _cut_off(text, at, at + len(wanted)):
            return True
        at = text.find(wanted, at + 1)
    return False


def _cut_off(text: str, start: int, end: int) -> bool:
    """Whether a word or a number at an edge of a place goes on beyond it."""
    before, first, last, after = text[max(0, start - 3) : start], text[start], text[end - 1], text[end : end + 12]
    if (before and _one_word(before[-1], first)) or (after and _one_word(last, after[0])):
        return True
    if last.isalpha() and (after[:1] == "#" or after[:2] == "++"):  # C is not C# or C++
        return True
    if first.isdigit() and (_NUMBER_BEFORE.search(before) or (_GROUP.match(text, start) and before[-2:-1].isdigit())):
        return True
    return last.isdigit() and _NUMBER_AFTER.match(after) is not None


def _one_word(left: str, right: str) -> bool:
    return left.isalnum() and right.isalnum() and not (_unspaced(left) or _unspaced(right))


def _unspaced(character: str) -> bool:
    """Whether a character belongs to a script that writes words without spaces between them."""
    return any(first <= ord(character) <= last for first, last in _UNSPACED)
