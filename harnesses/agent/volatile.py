"""What of a program's requests differs between two plays of the same answers: found, told apart by shape, and masked.

The same answers were played, so whatever differs is of the machine: a time, a path, an order. Shapes say which of it is
innocent. A difference that no shape explains is the program's own dice, and no label can rest on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import regex

from stepdown.builder.records import Mask, Prefix

_MASKED = "…"
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}"
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_CLOCK = r"\d{1,2}:[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?(?: ?[AaPp][Mm]\b)?"
_ZONE = r"(?: ?(?:Z\b|UTC\b|GMT\b|[+-]\d\d:?\d\d\b|[A-Z]{3,4}\b))?"

PATTERNS: dict[str, str] = {
    "time": "|".join(
        [
            rf"(?:\b{_DAY},? )?\b20\d\d[-/][01]\d[-/][0-3]\d(?:[T _]{_CLOCK}{_ZONE})?",
            rf"\b(?:{_DAY},? )?{_MONTH} {{1,2}}\d{{1,2}}(?:st|nd|rd|th)?,?"
            rf"(?: {{1,2}}{_CLOCK}{_ZONE})?(?: {{1,2}}20\d\d\b)?",
            rf"\b(?:{_DAY},? )?\d{{1,2}} {_MONTH},? 20\d\d(?: {_CLOCK}{_ZONE})?",
            rf"\b\d{{1,2}}/\d{{1,2}}/20\d\d(?:,? {_CLOCK})?",
            rf"\b{_CLOCK}{_ZONE}",
            r"\b1[6-9]\d{8}(?:\.\d{1,9}|\d{3}|\d{6}|\d{9})?\b",
            r"\b20\d{6}T?\d{6}Z?\b",
        ]
    ),
    "duration": r"\b\d{1,9}(?:\.\d{1,12})? ?(?:ns|us|µs|ms|s|secs?|seconds?|min|minutes?)\b",
    "uuid": r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
    "temporary path": r"(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm)/[\w./+@%=~-]+",
    "memory address": r"\b0x[0-9a-fA-F]{6,16}\b",
    "process id": r"(?i:\b(?:pid|ppid|process|worker|thread|job)s?\b)(?: id)?[ =:#(\[]{1,3}\d{1,9}\b"
    r"|(?m:^\[\d{1,3}\] \d{1,9}$)",
    "port": r"(?i:\bport\b)[ =:]{1,3}\d{2,5}\b|(?:127\.0\.0\.1|localhost|0\.0\.0\.0|\[::1?\]):\d{2,5}\b",
    "id": r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{8,64}(?![\w-])",
}
"""Shapes of text, in the order in which they are looked for: a narrow one before one that would hold it too."""
_LINES, _WORDS = "order of lines", "order of words"
SHAPES = (*PATTERNS, _LINES, _WORDS)
"""Every shape there is."""
_COMPILED = {name: regex.compile(pattern) for name, pattern in PATTERNS.items()}
_WORD = regex.compile(r"[^\s,;\[\]{}()\"']+")
VERSION = [*PATTERNS.items(), [_LINES, _WORDS]]
"""What a harness's version must hold of this."""


def mask_of(shapes: Collection[str]) -> Mask | None:
    """A mask of the shapes of these names; None where there is none.

    >>> mask_of(["time", "process id"])("pid 4711 started at 12:30:01 by ann")
    '… started at … by ann'
    >>> mask_of(["order of lines"])("b\\na")
    'a\\nb'
    """
    chosen = [_COMPILED[name] for name in PATTERNS if name in shapes]
    by_line, by_word = _LINES in shapes, _WORDS in shapes
    if not chosen and not by_line and not by_word:
        return None

    def mask(text: str) -> str:
        for pattern in chosen:
            text = pattern.sub(_MASKED, text)
        if by_line:
            text = "\n".join(sorted(text.split("\n")))
        return " ".join(sorted(_WORD.findall(text))) if by_word else text

    return mask


def shapes_between(recorded: Prefix, replayed: Prefix) -> frozenset[str] | None:
    """The shapes that explain all that differs between two plays of the same answers; None where they do not."""
    if len(recorded.messages) != len(replayed.messages):
        return None
    found: set[str] = set()
    for one, other in _texts([recorded.messages, recorded.tools], [replayed.messages, replayed.tools]):
        if one is None or other is None:
            return None
        if one != other:
            explained = _explained(one, other)
            if explained is None:
                return None
            found |= explained
    return frozenset(found)


def _texts(one: Any, other: Any) -> Iterator[tuple[str | None, str | None]]:
    """The texts of two JSON values, side by side; Nones where the values differ in anything else."""
    if isinstance(one, str) and isinstance(other, str):
        yield one, other
    elif isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
        for key in one:
            yield from _texts(one[key], other[key])
    elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)) and len(one) == len(other):
        for left, right in zip(one, other, strict=True):
            yield from _texts(left, right)
    elif one != other:
        yield None, None


def _explained(one: str, other: str) -> set[str] | None:
    """The fewest shapes under which two texts are one, the widest left out first; None where no shapes do it."""
    needed = [*PATTERNS]
    for order in ((), (_LINES,), (_WORDS,)):
        if _same(one, other, [*needed, *order]):
            needed += order
            break
    else:
        return None
    for shape in reversed([*needed]):
        fewer = [name for name in needed if name != shape]
        if _same(one, other, fewer):
            needed = fewer
    return set(needed)


def _same(one: str, other: str, shapes: Collection[str]) -> bool:
    mask = mask_of(shapes)
    return mask is not None and mask(one) == mask(other)
