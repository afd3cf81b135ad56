"""How much of a text a page shows: all of a short one; of a long one head, tail, and what was searched for."""

from __future__ import annotations

import re
from dataclasses import dataclass

SHORT = 8_000
"""Characters that are shown whole. Of a longer text two thirds of this are its head, the rest its tail."""
LEAST = 600
"""What is left of that for old turns of a very long prefix."""
PORTION = 32_768
"""Characters that are fetched at a time."""
AROUND, LONGEST_EXCERPT, MOST_EXCERPTS = 600, 3_000, 8
"""Characters that are shown before and after a match and in one excerpt, at most; how many excerpts of one text."""


@dataclass(frozen=True, slots=True)
class Window:
    """Characters `start` to `end`; `shown`, or left out until they are asked for."""

    start: int
    end: int
    shown: bool

    @property
    def size(self) -> int:
        return self.end - self.start


def windows(text: str, limit: int, pattern: re.Pattern[str] | None = None) -> list[Window]:
    """The text from end to end, in windows that are shown and such that are left out.

    >>> [(w.start, w.end, w.shown) for w in windows("x" * 900, limit=90)]
    [(0, 60, True), (60, 870, False), (870, 900, True)]
    """
    if len(text) <= limit:
        return [Window(0, len(text), True)]
    head = _line_end(text, limit * 2 // 3, limit // 6)
    tail = _line_end(text, len(text) - limit // 3, limit // 6)
    spans = [(0, head), *_excerpts(text, head, tail, pattern), (tail, len(text))]
    found: list[Window] = []
    at = 0
    for start, end in spans:
        if at < start:
            found.append(Window(at, start, False))
        if found and found[-1].shown and start <= at:
            found[-1] = Window(found[-1].start, max(end, at), True)
        else:
            found.append(Window(start, end, True))
        at = max(end, at)
    return found


def _excerpts(text: str, start: int, end: int, pattern: re.Pattern[str] | None) -> list[tuple[int, int]]:
    """The surroundings of matches between two places, those that touch made one."""
    found: list[tuple[int, int]] = []
    for match in pattern.finditer(text, start, end) if pattern else ():
        first = max(start, _line_end(text, match.start() - AROUND // 2, AROUND // 2))
        last = min(end, _next_line(text, match.end() + AROUND // 2))
        if found and first <= found[-1][1]:
            if last - found[-1][0] <= LONGEST_EXCERPT:
                found[-1] = (found[-1][0], last)
        elif len(found) == MOST_EXCERPTS:
            break
        else:
            found.append((first, last))
    return found


def _line_end(text: str, place: int, slack: int) -> int:
    """The place after the last line end at or before `place`, if there is one nearby; else the place."""
    end = text.rfind("\n", max(0, place - slack), max(0, place))
    return place if end < 0 else end + 1


def _next_line(text: str, place: int) -> int:
    """The beginning of the next line after `place`, if it is nearby; else the place."""
    end = text.find("\n", place, place + AROUND // 2)
    return place if end < 0 else end + 1


def portion_end(text: str, start: int, end: int) -> int:
    """Where the portion that begins at `start` ends, at a line's end if there is one nearby."""
    if start + PORTION >= end:
        return end
    return max(_line_end(text, start + PORTION, PORTION // 4), start + 1)
