"""The records of an export: one JSON document, several one after another, or JSON lines; packed with gzip or not."""

from __future__ import annotations

import gzip
import json
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepdown.builder.common.reading import parse_json, parse_values
from stepdown.builder.errors import BadInput

LARGEST_EXPORT = 1 << 30
"""Bytes of one document. JSON lines are read one by one, and may be as many as there are."""
LONGEST_RECORD = 256 << 20
"""Bytes of one line."""


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON value of a file: a line's, or the whole document's."""

    value: Any
    file: Path
    line: int | None = None


class TruncatedRecord(Exception):
    """The last line of a file is the beginning of a record: whoever wrote it was stopped."""


def records(path: Path) -> Iterator[Record]:
    """The records of a file, one in memory at a time where they are lines. Raises BadInput, and CutOff at the end."""
    try:
        with gzip.open(path) if _is_packed(path) else path.open("rb") as file:
            first = file.readline(LONGEST_RECORD + 1)
            while first and not first.removeprefix(BOM_UTF8).strip():
                first = file.readline(LONGEST_RECORD + 1)
            second = file.readline(LONGEST_RECORD + 1) if _is_json(first) else b""
            if not _is_json(first) or not (second or first.endswith(b"\n")):
                rest = file.read(LARGEST_EXPORT + 1)
                if len(rest) > LARGEST_EXPORT:
                    raise BadInput(f"one document of more than {LARGEST_EXPORT} bytes", file=path)
                for value in parse_values((first + rest).removeprefix(BOM_UTF8), path):
                    yield Record(value, path)
                return
            yield Record(parse_json(first.removeprefix(BOM_UTF8), path, 1), path, 1)
            yield from _lines(file, second, path)
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(getattr(error, "strerror", None) or str(error), file=path) from None


def _lines(file: Any, line: bytes, path: Path) -> Iterator[Record]:
    number = 2
    while line:
        if len(line) > LONGEST_RECORD:
            raise BadInput(f"the line is longer than {LONGEST_RECORD} bytes", file=path, line=number)
        if line.strip():
            try:
                yield Record(parse_json(line, path, number), path, number)
            except BadInput:
                if not line.endswith(b"\n"):
                    raise TruncatedRecord from None
                raise
        line, number = file.readline(LONGEST_RECORD + 1), number + 1


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _is_json(line: bytes) -> bool:
    """Whether a line is a whole record: the first line of a document on many lines is not."""
    try:
        return isinstance(json.loads(line), (dict, list))
    except (ValueError, RecursionError):
        return False


def opened_text(value: Any) -> Any:
    """A field that holds JSON, or its text, as exports have it; text that is no JSON stays.

    >>> opened_text('[{"role": "user"}]'), opened_text("words")
    ([{'role': 'user'}], 'words')
    """
    if not isinstance(value, str) or value[:1] not in ("{", "[", '"'):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def at(value: Any, *path: str | int) -> Any:
    """What stands at a place in nested data; None where nothing does.

    >>> at({"a": [{"b": 1}]}, "a", 0, "b"), at({"a": []}, "a", 0, "b")
    (1, None)
    """
    for part in path:
        if isinstance(part, str) and isinstance(value, dict):
            value = value.get(part)
        elif isinstance(part, int) and isinstance(value, list) and -len(value) <= part < len(value):
            value = value[part]
        else:
            return None
    return value
