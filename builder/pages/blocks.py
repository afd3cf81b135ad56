"""The lines of a text: prose told from code, diffs marked line by line, JSON indented without changing a token."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from stepdown.builder.pages.styled import StyledText, styled

_FENCE = re.compile(r"^ {0,3}(```+|~~~+).*$", re.MULTILINE)
_HUNK = re.compile(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", re.MULTILINE)
_PATCH = re.compile(r"^\*\*\* Begin Patch$", re.MULTILINE)
_FILE_HEADER = (
    "diff --git ",
    "index ",
    "--- ",
    "+++ ",
    "new file mode ",
    "deleted file mode ",
    "rename ",
    "similarity index ",
    "*** ",
)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_IN_HUNK = {"+": "add", "-": "del", " ": "", "\\": "meta"}


class Region(NamedTuple):
    """Characters `start` to `end` of a text. `mono` is for monospaced; `kind` is that of a diff's line, or empty."""

    start: int
    end: int
    mono: bool
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """Lines in one typeface, as runs of (the kind of a diff's line, its styled texts)."""

    mono: bool
    runs: tuple[tuple[str, tuple[StyledText, ...]], ...]


def regions(text: str, mono: bool) -> list[Region]:
    """The whole text cut into regions: fenced code in prose, and the lines of diffs.

    Where `mono` is set, all of the text counts as code.

    >>> [(r.start, r.end, r.mono) for r in regions("see\\n```\\nx = 1\\n```\\nthere", mono=False)]
    [(0, 4, False), (4, 18, True), (18, 23, False)]
    """
    return [region for part in _typefaces(text, mono) for region in _with_diffs(text, part)]


def _typefaces(text: str, mono: bool) -> Iterator[Region]:
    if mono:
        yield Region(0, len(text), True)
        return
    at, fence = 0, ""
    for match in _FENCE.finditer(text):
        if fence and not match[0].strip().startswith(fence):
            continue
        end = min(match.end() + 1, len(text)) if fence else match.start()
        if at < end:
            yield Region(at, end, bool(fence))
        at, fence = end, "" if fence else match[1]
    if at < len(text):
        yield Region(at, len(text), bool(fence))


def _with_diffs(text: str, part: Region) -> Iterator[Region]:
    """The part, cut where the lines of a diff change their kind. A diff is monospaced, also in prose."""
    if not (_HUNK.search(text, part.start, part.end) or _PATCH.search(text, part.start, part.end)):
        yield part
        return
    lines = _line_kinds(text, part.start, part.end)
    at = part.start
    for kind, group in groupby(lines, key=lambda line: line[1]):
        end = at + sum(length for length, _ in group)
        in_diff = kind is not None
        yield Region(at, end, part.mono or in_diff, kind or "")
        at = end


def _line_kinds(text: str, start: int, end: int) -> Iterator[tuple[int, str | None]]:
    """Every line's length, and its kind in a diff; None outside of a diff.

    A hunk's header counts its lines. Models write wrong counts, so a hunk goes on as long as lines look like its own.
    """
    inside, old, new = False, 0, 0
    for line in _LINE.findall(text, start, end):
        hunk = _HUNK.match(line)
        if hunk:
            inside, old, new = True, int(hunk[1] or 1), int(hunk[2] or 1)
            yield len(line), "hunk"
        elif line.startswith("@@"):
            inside, old, new = True, 0, 0
            yield len(line), "hunk"
        elif inside and (line[0] in "+- \\" or (line == "\n" and old + new > 0)) and not _new_file(line, old, new):
            old -= line[0] in "- \n"
            new -= line[0] in "+ \n"
            yield len(line), _IN_HUNK.get(line[0], "")
        else:
            inside = line.startswith("*** Add File: ")
            yield len(line), "meta" if line.startswith(_FILE_HEADER) else None


def _new_file(line: str, old: int, new: int) -> bool:
    return old <= 0 and new <= 0 and line.startswith(("--- ", "+++ "))


def blocks(text: str, found: list[Region], start: int, end: int, pattern: re.Pattern[str] | None = None) -> list[Block]:
    """Characters `start` to `end` of a text as blocks to be shown. `found` are the regions of the whole text."""
    first = bisect_right(found, start, key=lambda region: region.end)
    last = bisect_left(found, end, key=lambda region: region.start)
    within = (Region(max(r.start, start), min(r.end, end), r.mono, r.kind) for r in found[first:last])
    return [
        Block(mono, tuple((r.kind, tuple(styled(text[r.start : r.end], pattern))) for r in group))
        for mono, group in groupby(within, key=lambda region: region.mono)
    ]


LONGEST_JSON = 512 * 1024
"""Characters. Longer JSON is shown as it came."""
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_ONE_LINE, _DEEPEST = 88, 24


def laid_out(text: str) -> str | None:
    """JSON text with line breaks and indents; every token stays as it was written. None for other text.

    >>> print(laid_out('{"a": 1.50, "b": [1,2], "a": {"c": [{}]}}'))
    {
      "a": 1.50,
      "b": [1, 2],
      "a": {
        "c": [
          {}
        ]
      }
    }
    """
    if len(text) > LONGEST_JSON or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    return "".join(_laid_out(_TOKEN.findall(text)))


def _laid_out(tokens: list[str]) -> Iterator[str]:
    depth, at = 0, 0
    while at < len(tokens):
        part = tokens[at]
        if part in "[{":
            if (leaf := _leaf(tokens, at)) is not None:
                text, at = leaf
                yield text
                continue
            depth += 1
            yield part + _indent(depth)
        elif part in "]}":
            depth -= 1
            yield _indent(depth) + part
        elif part == ",":
            yield part + _indent(depth)
        else:
            yield ": " if part == ":" else part
        at += 1


def _indent(depth: int) -> str:
    return "\n" + "  " * min(depth, _DEEPEST)


def _leaf(tokens: list[str], at: int) -> tuple[str, int] | None:
    """A short list or mapping without another one in it, on one line, and the place after it; None for a longer one."""
    found, length = [tokens[at]], 1
    for place in range(at + 1, len(tokens)):
        part = tokens[place]
        if part in "[{":
            return None
        found.append(f"{part} " if part in ",:" else part)
        length += len(found[-1])
        if length > _ONE_LINE:
            return None
        if part in "]}":
            return "".join(found), place + 1
    return None
