"""What a container's own files take of the disk. Storage drivers without quotas enforce no limit: it is looked at."""

from __future__ import annotations

import os
from typing import Any

from builder.errors import Lost
from harnesses.swebench.limits import MIB, Limits

RESERVE = 1024 * MIB
"""What must be free on the host's disk while a command runs: files that are deleted but still open are in no tree."""


def upper_folder(details: dict[str, Any]) -> str:
    """Where a container's own files lie on this machine, by what the daemon tells; empty where it does not say."""
    return str((details.get("GraphDriver", {}).get("Data") or {}).get("UpperDir", ""))


def used(api: Any, container: str, upper: str, limits: Limits) -> int | None:
    """Bytes of a container's own files, None where these are over a limit. Raises Lost where the host's disk is full.

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
    return size if size <= most else None


def _within(folder: str, most: int, files: int) -> int | None:
    """Bytes of disk that a tree takes; None for more than `most`, or in more files and folders than `files`.

    Links are not followed. A tree that is nested too deeply to be looked at is not within any limit.
    """
    waiting, size, count = [folder], 0, 0
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    count += 1
                    try:
                        details = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    size += details.st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    if size > most or count > files:
                        return None
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return None
    return size
