"""The files of a release as files: which may be there, their digests, and the list of them."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from stepdown.builder.errors import BadInput
from stepdown.releases.layout import CARD, CROISSANT, DATA, LICENSES, MANIFEST, ROWS, SUMS, ReleasedFile
from stepdown.releases.parquet import SHARD_NAME

ALWAYS = (ROWS, CARD, CROISSANT, LICENSES, MANIFEST, SUMS)
UNLISTED = frozenset({MANIFEST, SUMS})
"""Files that the manifest can not list. SHA256SUMS lists the manifest, too."""
STRANGERS = frozenset({".git", ".gitattributes", ".cache"})
"""What a hub or a clone of it puts beside the files; nothing reads it as data."""
_PIECE = 1 << 20


def is_name(name: str) -> bool:
    """Whether a file of a release may have this name. No other is allowed, so none can point outside the folder.

    >>> is_name("README.md"), is_name("data/test-00000-of-00001.parquet"), is_name("data/../../x.parquet")
    (True, True, False)
    """
    return name in ALWAYS or SHARD_NAME.fullmatch(name) is not None


def refuse_in_a_release(place: Path, option: str) -> None:
    """Raises BadInput where a file would be written among a release's own: those are all listed, and no other."""
    for folder in place.absolute().parents:
        if (folder / SUMS).is_file() and (folder / MANIFEST).is_file() and (folder / ROWS).is_file():
            raise BadInput(
                f"would stand in the release {folder} as a file that it does not list", file=place, field=option
            )


def list_files(release: Path) -> Iterator[tuple[str, str | None]]:
    """The names in a release's folder, each with what is wrong with it, or None. Links are not followed."""
    for entry in sorted(os.scandir(release), key=lambda entry: entry.name):
        if entry.name in STRANGERS:
            continue
        if entry.name == DATA and entry.is_dir(follow_symlinks=False):
            for shard in sorted(os.scandir(entry.path), key=lambda entry: entry.name):
                yield _checked(f"{DATA}/{shard.name}", shard)
        else:
            yield _checked(entry.name, entry)


def _checked(name: str, entry: os.DirEntry[str]) -> tuple[str, str | None]:
    if entry.is_symlink():
        return name, "is a link: a release holds its files itself"
    if not is_name(name):
        return name, "does not belong into a release"
    if not entry.is_file(follow_symlinks=False):
        return name, "is no file"
    return name, None


def sha256_of(path: Path) -> tuple[str, int]:
    """Digest and size of a plain file. Raises BadInput where it is none or cannot be read."""
    found, size = hashlib.sha256(), 0
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise BadInput("is no file", file=path)
            while piece := file.read(_PIECE):
                found.update(piece)
                size += len(piece)
    except OSError as error:
        raise BadInput(error.strerror or str(error), file=path) from None
    return found.hexdigest(), size


def read_digest(release: Path, name: str, rows: int | None = None) -> ReleasedFile:
    """What the manifest says of a file that stands in the release."""
    sha256, size = sha256_of(release / name)
    return ReleasedFile(sha256=sha256, bytes=size, rows=rows)


def sums_text(digests: Mapping[str, str]) -> str:
    """The text of SHA256SUMS, as `sha256sum -c` reads it.

    >>> sums_text({"b": "1f", "a": "0f"})
    '0f  a\\n1f  b\\n'
    """
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
