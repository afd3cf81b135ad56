"""What a container's own files take of the disk. Storage drivers without quotas enforce no limit: it is looked at."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass
from typing import Any

from stepdown.builder.errors import Lost
from stepdown.harnesses.swebench.limits import MIB, Limits

RESERVE = 1024 * MIB
"""What must be free on the host's disk while a command runs: files that are deleted but still open are in no tree."""


def upper_folder(details: dict[str, Any]) -> str:
    """Where a container's own files lie on this machine, by what the daemon tells; empty where it does not say."""
    return str((details.get("GraphDriver", {}).get("Data") or {}).get("UpperDir", ""))


_UNDATED = {".git", "__pycache__", ".pytest_cache"}
"""Folders of files whose own times nobody compares to the fraction of a second: git looks into a file that is as old as
its index, and Python into the head of a compiled one."""


@dataclass(slots=True)
class Files:
    """A container's own files."""

    taken: int = 0
    """Bytes of disk."""
    length: int = 0
    """Bytes that they are long. Docker copies holes as zeros: a snapshot takes this much, however little they take."""
    newest: float = 0.0
    """When the last file was written whose time may matter to somebody, and that does not claim to be of the future; 0
    where that is not known."""
    lost: str = ""
    """What Docker's layers do not hold, if any of them is that."""


def used(api: Any, container: str, upper: str, limits: Limits) -> Files | None:
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
    return Files(size, size) if size <= most else None


def _within(folder: str, most: int, files: int) -> Files | None:
    """The files of a tree; None for more bytes of disk than `most`, or more files and folders than `files`.

    Links are not followed. A tree that is nested too deeply to be looked at is not within any limit.
    """
    waiting, count, found, now = [(folder, True)], 0, Files(), time.time()
    while waiting:
        place, dated = waiting.pop()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    count += 1
                    try:
                        details = entry.stat(follow_symlinks=False)
                        found.lost = found.lost or _lost(entry.path, details)
                    except FileNotFoundError:
                        continue
                    found.taken += details.st_blocks * 512
                    if stat.S_ISREG(details.st_mode):
                        found.length += details.st_size
                        if dated and found.newest < details.st_mtime <= now:
                            found.newest = details.st_mtime
                    if stat.S_ISDIR(details.st_mode):
                        waiting.append((entry.path, dated and entry.name not in _UNDATED))
                    if found.taken > most or count > files:
                        return None
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return None
    return found


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
