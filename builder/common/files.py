"""Files that stand whole or not at all, with what a manifest says of them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
"""What some readers take for the end of a line stands escaped: a line is a record, for any reader."""


class WholeFile:
    """A file of records, written beside its place and moved there when it is whole."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self._place, self._draft = name, folder / name, folder / f".{name}.part"
        self._digest, self._lines, self._bytes = hashlib.sha256(), 0, 0
        self._handle: IO[bytes] = self._draft.open("wb")

    def write(self, record: Mapping[str, Any], indent: int | None = None) -> None:
        text = json.dumps(record, ensure_ascii=False, indent=indent).translate(_LINE_ENDS)
        self.copy(f"{text}\n".encode())

    def copy(self, data: bytes) -> None:
        """Write a line of another such file as it is."""
        self._handle.write(data)
        self._digest.update(data)
        self._lines += 1
        self._bytes += len(data)

    def finish(self) -> dict[str, Any]:
        """Put the file in its place; what the manifest says of it."""
        self._handle.flush()
        os.fsync(self._handle.fileno())
        self._handle.close()
        self._draft.replace(self._place)
        return {"sha256": self._digest.hexdigest(), "lines": self._lines, "bytes": self._bytes}

    def __enter__(self) -> WholeFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.close()
        self._draft.unlink(missing_ok=True)


def digest_of(path: Path) -> str | None:
    """The SHA-256 of a file, in hex; None where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
