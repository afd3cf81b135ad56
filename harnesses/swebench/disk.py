"""What a container's own files take of the disk. Storage drivers without quotas enforce no limit: it is looked at."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from stepdown.builder.errors import Lost
from stepdown.harnesses.swebench.limits import MIB, Limits

RESERVE = 1024 * MIB
"""What must be free on the host's disk while a command runs: files that are deleted but still open are in no tree."""


def upper_folder(details: dict[str, Any]) -> str:
    """Where a container's own files lie on this machine, by what the daemon tells; empty where it does not say."""
    return str((details.get("GraphDriver", {}).get("Data") or {}).get("UpperDir", ""))


_COMPILED = "__pycache__"
_UNDATED = {".git", _COMPILED, ".pytest_cache"}
"""Folders of files whose own times nobody compares to the fraction of a second: git looks into a file that is as old as
its index, and Python into the head of a compiled one."""


@dataclass(slots=True)
class ContainerFiles:
    """A container's own files."""

    taken: int = 0
    """Bytes of disk."""
    length: int = 0
    """Bytes that they are long. Docker copies holes as zeros: a snapshot takes this much, however little they take."""
    newest: float = 0.0
    """When the last file was written whose time may matter to somebody, and that does not claim to be of the future; 0
    where that is not known."""
    source: float = 0.0
    """The same of Python's sources alone."""
    compiled: float = 0.0
    """The same of what Python made of them, which holds the time of the source in whole seconds."""
    count: int = 0
    """Files and folders."""
    lost: str = ""
    """What Docker's layers do not hold, if any of them is that."""

    def note(self, written: float, dated: bool, compiled: bool, name: str) -> None:
        """Take in when a file of this name was written."""
        if dated:
            self.newest = max(self.newest, written)
            self.source = max(self.source, written if name.endswith(".py") else 0.0)
        elif compiled:
            self.compiled = max(self.compiled, written)

    def since(self, before: ContainerFiles) -> ContainerFiles:
        """The same, with the times of earlier files where they are later."""
        newest, source = max(self.newest, before.newest), max(self.source, before.source)
        return replace(self, newest=newest, source=source, compiled=max(self.compiled, before.compiled))


def used(api: Any, container: str, upper: str, limits: Limits) -> ContainerFiles | None:
    """A container's own files, None where these are over a limit. Raises Lost where the host's disk is full.

    `upper` is their folder; where it is not on this machine the daemon is asked, which counts no files.
    """
    most = limits.disk_mib * MIB
    if upper and os.path.isdir(upper):
        disk = os.statvfs(upper)
        if disk.f_bavail * disk.f_frsize < RESERVE:
            raise Lost("the disk that Docker keeps containers on is full")
        return _within(upper, most, limits.disk_files)
    found = api.containers(all=True, size=True, filters={"id": container})
    size = sum(each.get("SizeRw") or 0 for each in found)
    return ContainerFiles(size, size) if size <= most else None


def _within(folder: str, most: int, files: int) -> ContainerFiles | None:
    """The files of a tree; None for more bytes of disk than `most`, or more files and folders than `files`.

    Links are not followed. A tree that is nested too deeply to be looked at is not within any limit.
    """
    waiting, found, now = [(folder, True)], ContainerFiles(), time.time()
    while waiting:
        place, dated = waiting.pop()
        compiled = place.endswith(f"/{_COMPILED}")
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    found.count += 1
                    try:
                        details = entry.stat(follow_symlinks=False)
                        found.lost = found.lost or _lost(entry.path, details)
                    except FileNotFoundError:
                        continue
                    found.taken += details.st_blocks * 512
                    if stat.S_ISREG(details.st_mode):
                        found.length += details.st_size
                        if details.st_mtime <= now:
                            found.note(details.st_mtime, dated, compiled, entry.name)
                    if stat.S_ISDIR(details.st_mode):
                        waiting.append((entry.path, dated and entry.name not in _UNDATED))
                    if found.taken > most or found.count > files:
                        return None
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return None
    return found


def keep_fractions(layer: str, upper: str) -> None:
    """Give the files of a layer the times of those that it was made of: Docker keeps whole seconds.

    What was built from a source in the second in which that was written would look as old as the source, and an edit
    after that as old as both. `layer` is that of a new image, a neighbour of `upper` in Docker's storage; where it has
    the very same files as another image, Docker has one layer for both. Raises OSError.
    """
    if not layer or os.path.dirname(os.path.dirname(layer)) != os.path.dirname(os.path.dirname(upper)):
        raise NotADirectoryError(f"no layer of this machine: {layer!r}")
    # Where Docker compares trees, a layer may have files that are no container's own.
    whole, waiting = f"{os.path.dirname(upper)}/merged", [""]
    while waiting:
        place = waiting.pop()
        with os.scandir(f"{layer}/{place}") as entries:
            for entry in entries:
                name = f"{place}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{name}/")
                elif entry.is_file(follow_symlinks=False):
                    times = _details(f"{upper}/{name}", f"{whole}/{name}")
                    os.utime(entry.path, ns=(times.st_atime_ns, times.st_mtime_ns), follow_symlinks=False)


def _details(*places: str) -> os.stat_result:
    """Those of the first that is there. Raises OSError."""
    *others, last = places
    for place in others:
        with suppress(FileNotFoundError):
            return os.lstat(place)
    return os.lstat(last)


def _lost(path: str, details: os.stat_result) -> str:
    """What of a file is lost in a layer of Docker's, empty for an ordinary one."""
    if stat.S_ISSOCK(details.st_mode):
        return "a socket"
    if stat.S_ISREG(details.st_mode) and details.st_nlink > 1:
        # The names part when one of them is written to: overlayfs copies that one up, the others keep what was.
        return "a hard link"
    if not stat.S_ISLNK(details.st_mode) and any(
        name.startswith("user.") for name in os.listxattr(path, follow_symlinks=False)
    ):
        return "an attribute"
    return ""
