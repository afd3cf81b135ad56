"""How much of a text a page shows: all of a short one; of a long one its head, its tail, and search matches."""

from __future__ import annotations

import re
from dataclasses import dataclass

SHORT = 8_000
"""A text of at most so many characters is shown whole. Of a longer one, two thirds of this are head, the rest tail."""
LEAST = 600
"""The same limit for the old turns of a very long prefix."""
PORTION = 32_768
"""How many characters are fetched at a time."""
AROUND, LONGEST_EXCERPT, MOST_EXCERPTS = 600, 3_000, 8
"""Characters around a match, characters of an excerpt at most, and excerpts of a text at most."""


@dataclass(frozen=True, slots=True)
class Window:
    """Characters `start` to `end`, either `shown` or left out until they are fetched."""

    start: int
    end: int
    shown: bool

    @property
    def size(self) -> int:
        return self.end - self.start


def windows(text: str, limit: int, pattern: re.Pattern[str] | None = None) -> list[Window]:
    """The whole text cut into windows, some shown and some left out.

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
    """The surroundings of the matches between two places. Those that touch are joined."""
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
    """The beginning of the line that holds `place`, if it is at most `slack` characters away; else `place`."""
    end = text.rfind("\n", max(0, place - slack), max(0, place))
    return place if end < 0 else end + 1


def _next_line(text: str, place: int) -> int:
    """The beginning of the next line after `place`, if it is nearby; else `place`."""
    end = text.find("\n", place, place + AROUND // 2)
    return place if end < 0 else end + 1


def portion_end(text: str, start: int, end: int) -> int:
    """Where the portion that begins at `start` ends: at a line's end if there is one nearby."""
    if start + PORTION >= end:
        return end
    return max(_line_end(text, start + PORTION, PORTION // 4), start + 1)
