"""The characters of a text as a page may show them: invisible ones get a name, search matches are marked."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

# Characters that a reader cannot see, or that rearrange what the reader sees: controls, direction marks and overrides,
# zero-width and filler characters, line separators, tags, lone surrogates, non-characters. A run of the same one is one
# match.
_HIDDEN = re.compile(
    "([\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff])\\1*"
)
_NAMES = {"\0": "NUL", "\a": "BEL", "\b": "BS", "\v": "VT", "\f": "FF", "\r": "CR", "\x1b": "ESC", "\x7f": "DEL"}

MOST_MARKS = 200
"""How many matches are marked in one text: a page full of marks helps nobody."""


class StyledText(NamedTuple):
    """Characters in one style. `kind` is empty, `unseen` (the name of an invisible character) or `mark` (a match)."""

    kind: str
    text: str
    title: str = ""


def search_pattern(query: str) -> re.Pattern[str] | None:
    """The pattern that finds a query in a text, whatever its case; None for an empty query."""
    return re.compile(re.escape(query), re.IGNORECASE) if query else None


def styled(text: str, pattern: re.Pattern[str] | None = None) -> Iterator[StyledText]:
    """The text as styled texts: matches of `pattern` are marked, and invisible characters are named.

    >>> [run.text for run in styled("ab\\u202ecd\\x1b")]
    ['ab', 'U+202E', 'cd', 'ESC']
    """
    at = 0
    for match in islice(pattern.finditer(text), MOST_MARKS) if pattern else ():
        yield from _with_hidden_named(text[at : match.start()], "")
        yield from _with_hidden_named(match[0], "mark")
        at = match.end()
    yield from _with_hidden_named(text[at:], "")


def _with_hidden_named(text: str, kind: str) -> Iterator[StyledText]:
    at = 0
    for match in _HIDDEN.finditer(text):
        if at < match.start():
            yield StyledText(kind, text[at : match.start()])
        count = len(match[0])
        yield StyledText("unseen", _label(match[1]) + (f"×{count}" if count > 1 else ""), _title(match[1]))
        at = match.end()
    if at < len(text):
        yield StyledText(kind, text[at:])


def _label(character: str) -> str:
    return _NAMES.get(character) or f"U+{ord(character):04X}"


def _title(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, 'control or unassigned character')}"
