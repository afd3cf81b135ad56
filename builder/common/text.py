"""Text of other people on its way to a terminal or into an id."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from stepdown.builder.records import clean_text

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
LONGEST_ID = 200


def printable(text: str, longest: int = 500) -> str:
    """The text without control and direction characters, which could rewrite what a terminal shows.

    >>> printable("a\\x1b[31mb")
    'a [31mb'
    """
    clean = _CONTROLS.sub(" ", clean_text(text))
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def is_id(text: str) -> bool:
    """Whether a text can name an instance in rows, tables and file names of tools that come after."""
    return 0 < len(text) <= LONGEST_ID and text == printable(text)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a misspelt one most likely means; None where none is near.

    >>> nearest("modle", ["price", "model"]), nearest("colour", ["price", "model"])
    ('model', None)
    """
    return next(iter(get_close_matches(name, known, n=1)), None)
