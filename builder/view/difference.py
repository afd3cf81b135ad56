"""What differs between two texts, as rows to be shown side by side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

MOST_PIECES, MOST_PAIRS = 1_000, 5_000
"""Pieces of a text that are compared, and pairs of equal ones at most: what comparing takes grows with these."""
LONGEST_PIECE = 300
"""Characters. A longer line is cut behind a sentence, else where it reaches this."""
CONTEXT = 3
"""Equal pieces that are shown beside a difference; more of them in a row are folded."""
_SENTENCE = re.compile(rf"[^\n]{{1,{LONGEST_PIECE}}}?(?:[.!?;]\s+|\n|$)|[^\n]{{1,{LONGEST_PIECE}}}|\n")


@dataclass(frozen=True, slots=True)
class DifferenceLine:
    """Pieces that stand beside each other. `kind` is `same`, `changed`, `removed`, `added`, or `folded`."""

    kind: str
    left: str = ""
    right: str = ""


@dataclass(frozen=True, slots=True)
class TextDifference:
    """Two texts side by side."""

    rows: tuple[DifferenceLine, ...]
    compared: int
    """Characters of the longer text that were compared."""
    of: int
    """Its length."""
    is_aligned: bool
    """Whether equal pieces in the middle were looked for: not where there are too many that are alike."""

    @property
    def is_equal(self) -> bool:
        return all(row.kind in ("same", "folded") for row in self.rows)


def difference(left: str, right: str) -> TextDifference:
    """The difference of two texts, by lines and sentences, as far as it is shown.

    >>> [(row.kind, row.left, row.right) for row in difference("a\\nb\\n", "a\\nc\\n").rows]
    [('same', 'a\\n', 'a\\n'), ('changed', 'b\\n', 'c\\n')]
    """
    old, new = pieces(left), pieces(right)
    is_aligned = _pairs(old, new) <= MOST_PAIRS
    compared = max(sum(map(len, old)), sum(map(len, new)))
    rows = tuple(_folded(list(_rows(old, new, _operations(old, new, is_aligned)))))
    return TextDifference(rows, compared, max(len(left), len(right)), is_aligned)


def pieces(text: str) -> list[str]:
    """The text's first pieces: its lines, long ones cut behind sentences."""
    found = []
    for match in _SENTENCE.finditer(text[: MOST_PIECES * LONGEST_PIECE]):
        found.append(match[0])
        if len(found) == MOST_PIECES:
            break
    return found


def _pairs(old: Sequence[str], new: Sequence[str]) -> int:
    """How many pairs of equal pieces there are."""
    counts = Counter(new)
    return sum(number * counts[piece] for piece, number in Counter(old).items())


def _operations(old: Sequence[str], new: Sequence[str], is_aligned: bool) -> Sequence[tuple[str, int, int, int, int]]:
    if is_aligned:
        return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    return [("equal", 0, head, 0, head), ("replace", head, len(old), head, len(new))]


def _rows(
    old: Sequence[str], new: Sequence[str], operations: Sequence[tuple[str, int, int, int, int]]
) -> Iterator[DifferenceLine]:
    for kind, a, b, c, d in operations:
        for place in range(max(b - a, d - c)):
            left = old[a + place] if a + place < b else ""
            right = new[c + place] if c + place < d else ""
            name = "same" if kind == "equal" else "changed" if left and right else "removed" if left else "added"
            yield DifferenceLine(name, left, right)


def _folded(rows: Sequence[DifferenceLine]) -> Iterator[DifferenceLine]:
    """The rows; equal ones that are far from any difference are one row."""
    near = set()
    for place, row in enumerate(rows):
        if row.kind != "same":
            near |= set(range(place - CONTEXT, place + CONTEXT + 1))
    waiting: list[DifferenceLine] = []
    for place, row in enumerate(rows):
        if row.kind == "same" and place not in near:
            waiting.append(row)
            continue
        yield from _as_one(waiting)
        waiting = []
        yield row
    yield from _as_one(waiting)


def _as_one(rows: Sequence[DifferenceLine]) -> Iterator[DifferenceLine]:
    if len(rows) <= 1:
        yield from rows
    else:
        text = "".join(row.left for row in rows)
        yield DifferenceLine("folded", text, str(len(rows)))
