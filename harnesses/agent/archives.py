"""Files on their way into a container and out of it, as tar archives. What comes out is hostile."""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import IO

from stepdown.harnesses.agent.workspace import TIME, unsafe

_IN_MEMORY = 8 << 20


def folder_archive(folder: Path, name: str) -> IO[bytes]:
    """A folder of this machine under another name; all of it may be changed by anybody inside."""
    file = _file()
    with tarfile.open(fileobj=file, mode="w") as tar:
        tar.add(folder, name, filter=_open_to_all)
    file.seek(0)
    return file


def files_archive(files: Mapping[str, str]) -> IO[bytes]:
    """Files by their paths."""
    file = _file()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, text in files.items():
            data = text.encode()
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(data), TIME, 0o666
            tar.addfile(member, io.BytesIO(data))
    file.seek(0)
    return file


def kept_archive(pieces: Iterable[bytes], most: int) -> IO[bytes]:
    """An archive that a daemon sends. Raises ValueError for one of more than so many bytes."""
    file, length = _file(), 0
    for piece in pieces:
        length += len(piece)
        if length > most:
            raise ValueError(f"more than {most} bytes")
        file.write(piece)
    file.seek(0)
    return file


def unpack(archive: IO[bytes], into: Path) -> None:
    """The plain files and folders of an archive, below the one folder that it holds. Links and devices are left out."""
    with tarfile.open(fileobj=archive, mode="r|") as tar:
        for member in tar:
            name = str(PurePosixPath(*PurePosixPath(member.name).parts[1:]))
            if unsafe(name) or not (member.isdir() or member.isreg()):
                continue
            path = into / name
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            source = tar.extractfile(member)
            if source is not None:
                with path.open("wb") as file:
                    while data := source.read(1 << 20):
                        file.write(data)


def _open_to_all(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """An image's user need not be the one that owns the files here."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode |= 0o777 if member.isdir() else 0o666
    return member


def _file() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)
