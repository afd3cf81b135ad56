"""Whether a file on the Hub is the one here, by what the Hub lists of it: no byte is sent or fetched to find out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class ThereFile:
    """A file as a repository lists it."""

    bytes: int
    blob: str
    """Git's own digest of it; of a large file, that of its pointer."""
    sha256: str | None
    """Of a large file's content; None where git holds the file itself."""


def is_same(there: ThereFile, here: Path, size: int, sha256: str) -> bool:
    """Whether the two have the same bytes."""
    if there.bytes != size:
        return False
    return there.sha256 == sha256 if there.sha256 is not None else there.blob == git_digest(here, size)


def git_digest(path: Path, size: int) -> str:
    """The digest by which git names a file's content. SHA-1, as git has it: it names, and secures nothing."""
    found = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()
