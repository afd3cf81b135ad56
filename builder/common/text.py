"""Text of other people on its way to a terminal or into an id."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from stepdown.builder.records import clean_text

_VARYING = re.compile(r"\b(?=[0-9a-f-]*\d)[0-9a-f-]{8,}\b|\d+(\.\d+)?", re.IGNORECASE)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
_PARTICULARS = re.compile(r"'[^']*'|\"[^\"]*\"|\d[\d.]*")
LONGEST_ID = 200


def printable(text: str, longest: int = 500) -> str:
    """The text without control and direction characters, which could rewrite what a terminal shows.

    >>> printable("a\\x1b[31mb")
    'a [31mb'
    """
    clean = _CONTROLS.sub(" ", clean_text(text))
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def kind_of(text: str) -> str:
    """The text of an error without what differs between errors of one kind: numbers, ids of requests.

    >>> kind_of("HTTP 503: request 1f0c22aa-9b: busy") == kind_of("HTTP 503: request 77bb01dd-0c: busy")
    True
    """
    return _VARYING.sub("#", text)


def without_particulars(text: str) -> str:
    """A reason without its numbers and what it quotes: equal for reasons that say the same of different things.

    >>> without_particulars("step 12: recorded 'a', now 'b'")
    'step #: recorded #, now #'
    """
    return _PARTICULARS.sub("#", text)


def is_id(text: str) -> bool:
    """Whether a text can name an instance in rows, tables and file names of tools that come after."""
    return 0 < len(text) <= LONGEST_ID and text == printable(text)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a misspelt one most likely means; None where none is near.

    >>> nearest("modle", ["price", "model"]), nearest("colour", ["price", "model"])
    ('model', None)
    """
    return next(iter(get_close_matches(name, known, n=1)), None)
