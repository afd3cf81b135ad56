"""Folders filled with a task's files: the same bytes, rights and times in every episode."""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath

from stepdown.builder.errors import Technical
from stepdown.harnesses.agent.program import Content

TIME = 1767225600
"""When all files of a workspace are said to have been written: listings show it."""


def unsafe(name: str) -> bool:
    """Whether a file of this name would lie outside of its folder, or nowhere.

    >>> [unsafe(name) for name in ("a/b.txt", "../a", "/a", "a/../b", "", "a//b")]
    [False, True, True, True, True, False]
    """
    path = PurePosixPath(name)
    return not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name


def fill(folder: Path, content: Content) -> None:
    """Make a folder with this content in it. Raises Technical where a folder of the user's can not be read."""
    folder.mkdir(exist_ok=True)
    if content.folder is not None:
        _copy(content.folder, folder)
    for name, text in content.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    for name, source in content.copies.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        _copy_file(source, folder / name)
    _date(folder)


def put_program(folder: Path, program: Path) -> None:
    """Put the program's own files, a folder or one file, into a folder."""
    if program.is_dir():
        _copy(program, folder)
        return
    _copy_file(program, folder / program.name)


def _copy_file(source: Path, to: Path) -> None:
    try:
        shutil.copy2(source, to)
    except OSError as error:
        raise Technical(f"{source.name}: {error.strerror}") from error


def _copy(source: Path, into: Path) -> None:
    try:
        shutil.copytree(source, into, symlinks=True, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        raise Technical(f"the folder {source.name!r} can not be copied: {error}") from error


def _date(folder: Path) -> None:
    for root, _, names in os.walk(folder, topdown=False):
        for path in [*(Path(root) / name for name in names), Path(root)]:
            os.utime(path, (TIME, TIME), follow_symlinks=False)
