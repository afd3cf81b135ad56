"""Files that stand whole or not at all, and what a manifest says of them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TextIO

_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
"""What some readers take for the end of a line stands escaped: a line is a record, for any reader."""


class WholeFile:
    """A file to write into, that takes its place when it is finished; until then what stood there stands."""

    def __init__(self, path: Path, *, durable: bool = False, shared: bool = False) -> None:
        """`durable`: once finished, its bytes and its name survive a loss of power. `shared`: several processes may
        write it at once, and the last one to finish is the one whose file stands. Raises OSError.
        """
        own = f".{uuid.uuid4().hex[:8]}" if shared else ""  # else what a crash left is written over
        self._path, self._draft, self._durable = path, path.with_name(f".{path.name}{own}.part"), durable
        self.file: IO[bytes] = self._draft.open("wb")

    def finish(self) -> None:
        """Put the file in its place. Raises OSError."""
        self.file.flush()
        if self._durable:
            os.fsync(self.file.fileno())
        self.file.close()
        self._draft.replace(self._path)
        if self._durable:
            sync_folder(self._path.parent)

    def __enter__(self) -> WholeFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self._draft.unlink(missing_ok=True)


@contextmanager
def whole_file(path: Path, *, durable: bool = False, shared: bool = False) -> Iterator[IO[bytes]]:
    """A file to write into, that takes its place when the block has ended, and not where it raised."""
    with WholeFile(path, durable=durable, shared=shared) as whole:
        yield whole.file
        whole.finish()


@contextmanager
def whole_text_file(path: Path, *, durable: bool = False) -> Iterator[TextIO]:
    """A `whole_file` for text, as UTF-8; ends of lines are written as they are given."""
    with whole_file(path, durable=durable) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        try:
            yield text
        finally:
            text.detach()  # what was written goes to the file, which is not closed here


def write_text(path: Path, text: str, *, durable: bool = False, shared: bool = False) -> None:
    """Write a text as a whole file. Raises OSError where it can not be written."""
    with whole_file(path, durable=durable, shared=shared) as file:
        file.write(text.encode())


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk: a file that was moved into it is found there after a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Have all files and folders in a folder, and itself, on disk."""
    for path in [*folder.rglob("*"), folder]:
        sync_folder(path)


@dataclass(frozen=True, slots=True)
class FileDigest:
    """What a manifest says of a file."""

    sha256: str
    lines: int
    bytes: int


class RecordFile:
    """A JSONL file of records, written whole and durably. A context manager."""

    def __init__(self, path: Path) -> None:
        self._whole = WholeFile(path, durable=True)
        self._sha256, self._lines, self._bytes = hashlib.sha256(), 0, 0

    def write(self, record: Mapping[str, Any]) -> None:
        self.copy(json_line(record))

    def copy(self, line: bytes) -> None:
        """Write a line of another such file as it is."""
        self._whole.file.write(line)
        self._sha256.update(line)
        self._lines += 1
        self._bytes += len(line)

    def finish(self) -> FileDigest:
        """Put the file in its place."""
        self._whole.finish()
        return FileDigest(self._sha256.hexdigest(), self._lines, self._bytes)

    def __enter__(self) -> RecordFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._whole.__exit__(*error)


def write_document(path: Path, record: Mapping[str, Any]) -> str:
    """Write a record as a JSON file for people, whole and durably; its SHA-256, in hex."""
    data = _json_text(record, indent=1).encode()
    with whole_file(path, durable=True) as file:
        file.write(data)
    return hashlib.sha256(data).hexdigest()


def digest_of_folder(folder: Path) -> str:
    """SHA-256 of the names and bytes of a folder's files, in the order of their names. Raises OSError."""
    found = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        found.update(f"{path.name}\0{digest_of(path)}\0".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def json_line(record: Mapping[str, Any]) -> bytes:
    """A record as a line of a JSONL file: one line for any reader, whatever the record's texts hold.

    >>> json_line({"id": "a", "text": chr(0x2028)})
    b'{"id": "a", "text": "\\\\u2028"}\\n'
    """
    return _json_text(record).encode()


def _json_text(record: Mapping[str, Any], indent: int | None = None) -> str:
    return json.dumps(record, ensure_ascii=False, indent=indent).translate(_LINE_ENDS) + "\n"


def digest_of(path: Path) -> str | None:
    """The SHA-256 of a file, in hex; None where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
