"""Folders of any depth: named by what they hold, and copied as they are."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

_MADE = ("__pycache__",)
"""What programs leave behind beside their files."""


def digest_of_tree(folder: Path) -> str:
    """SHA-256 of the names, bytes and rights to run of all files below a folder, links by where they lead.

    Raises OSError.
    """
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if any(part in _MADE for part in path.relative_to(folder).parts):
            continue
        name = os.fsencode(path.relative_to(folder))
        if path.is_symlink():
            found.update(b"link\0" + name + b"\0" + os.fsencode(os.readlink(path)) + b"\0")
        elif path.is_file():
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            runs = os.access(path, os.X_OK)
            found.update(b"file\0" + name + f"\0{content}\0{runs}\0".encode())
    return found.hexdigest()


def copy_tree(folder: Path, into: Path) -> None:
    """Copy a folder with all that `digest_of_tree` sees. Raises OSError."""
    shutil.copytree(folder, into, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*_MADE))
