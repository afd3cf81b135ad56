"""Reads JSON files that anybody may have made: a bounded size, strict JSON, and one line that says what is wrong.

Rows, evidence, manifests and documents of releases are all read here. A key given twice, NaN, Infinity, a number too
large to read and text that is not UTF-8 are refused.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stepdown.builder.errors import BadInput

LONGEST_LINE = 64 << 20
"""Bytes of a line, at most: the longest prefixes that models take are a hundredth of this."""
LARGEST_DOCUMENT = 64 << 20
"""Bytes of a document, such as a manifest, at most."""


def read_lines(path: Path, longest: int = LONGEST_LINE) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, from 1, without a byte order mark before the first; one in memory at a
    time.

    Raises BadInput for a line of more than `longest` bytes and for a file that can not be read.
    """
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(longest + 1):
                number += 1
                if len(line) > longest:
                    raise BadInput(f"the line is longer than {longest} bytes", file=path, line=number)
                yield number, line.removeprefix(BOM_UTF8) if number == 1 else line
    except OSError as error:
        raise BadInput(error.strerror or str(error), file=path) from None


def read_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The values of a JSONL file with their line numbers, from 1. Raises BadInput at a bad line or for no such file."""
    for number, line in read_lines(path):
        yield number, parse_line(line, path, number)


def read_document(path: Path) -> Any:
    """The value of a JSON file of bounded size. Raises BadInput."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_DOCUMENT + 1)
    except (OSError, ValueError) as error:
        raise BadInput(getattr(error, "strerror", None) or str(error), file=path) from None
    if len(data) > LARGEST_DOCUMENT:
        raise BadInput(f"larger than {LARGEST_DOCUMENT} bytes", file=path)
    return parse_json(data, path)


def parse_line(line: bytes, path: Path, number: int) -> Any:
    """A line's JSON value. Raises BadInput: too long, no line end, blank, not UTF-8, not JSON."""
    if len(line) > LONGEST_LINE:
        raise BadInput(f"the line is longer than {LONGEST_LINE} bytes", file=path, line=number)
    if not line.endswith(b"\n"):
        raise BadInput("the line is cut off: no line end", file=path, line=number)
    return parse_json(line, path, number)


def parse_json(data: bytes, path: Path, number: int | None = None) -> Any:
    """The JSON value of some bytes of a file, of its line `number` where one is given. Raises BadInput."""
    try:
        return _DECODER.decode(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8: {error.reason} at byte {error.start}", file=path, line=number) from None
    except RecursionError:
        raise BadInput("not JSON: nested too deeply", file=path, line=number) from None
    except ValueError as error:
        raise BadInput(f"not JSON: {getattr(error, 'msg', error)}", file=path, line=number) from None


def parse_values(data: bytes, path: Path) -> Iterator[Any]:
    """The JSON values of a file that holds one after another, on any lines. Raises BadInput."""
    try:
        text = data.decode("utf-8").strip()
        place = 0
        while not place or place < len(text):
            value, end = _DECODER.raw_decode(text, place)
            yield value
            place = end + len(_SPACE.match(text, end)[0])  # type: ignore[index] # it always matches
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8: {error.reason} at byte {error.start}", file=path) from None
    except RecursionError:
        raise BadInput("not JSON: nested too deeply", file=path) from None
    except ValueError as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise BadInput(f"not JSON: {getattr(error, 'msg', error)}", file=path, line=line) from None


def refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's members, for a JSON decoder. Raises ValueError where a key is given twice: one of the two would be
    passed over.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"key {twice[:100]!r} is given twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder(object_pairs_hook=refuse_duplicate_keys, parse_constant=_refuse_constant)
