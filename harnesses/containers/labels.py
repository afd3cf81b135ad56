"""How containers and images of ours are told apart, and how those that a crash left behind are found.

A daemon may serve several builders at once. Whatever we make carries the identity of the process that made it; what
belongs to a process that is dead, and only that, is a leftover.
"""

from __future__ import annotations

import hashlib
import logging
import os
import uuid
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from docker import DockerClient

Kind = Literal["episode", "snapshot", "grading", "agent", "grader"]

OWNER = "stepdown.owner"
"""Label: the process that made it, see `owner`."""
KIND = "stepdown.kind"
"""Label: what it is for."""

_log = logging.getLogger(__name__)


class Left(NamedTuple):
    """What was removed."""

    containers: int
    images: int


def labels(kind: Kind) -> dict[str, str]:
    """The labels of a container or image that this process makes."""
    return {OWNER: owner(), KIND: kind}


def unique_name(kind: Kind) -> str:
    """A container's name that no other has."""
    return f"stepdown-{kind}-{uuid.uuid4().hex[:12]}"


def owner() -> str:
    """This process, as no other process has it: machine, boot, PID namespace, PID, start time."""
    return f"{_machine()}:{os.getpid()}:{_started(os.getpid())}"


def is_dead(owner: str) -> bool:
    """Whether the process of an owner label has ended. False where that cannot be known from here.

    >>> is_dead("not one of ours")
    False
    """
    parts = owner.split(":")
    here = _machine().split(":")
    if len(parts) != len(here) + 2 or not parts[-2].isdigit() or parts[0] != here[0]:
        return False
    if parts[1] != here[1]:
        return True  # this machine has been started anew since
    if parts[2] != here[2]:
        return False  # a process of another container on this machine
    return _started(int(parts[-2])) != parts[-1]


def remove_leftovers(client: DockerClient) -> Left:
    """Remove the containers and images of processes that are dead. Raises docker.errors.DockerException."""
    from docker.errors import APIError

    found = [
        each for each in client.api.containers(all=True, filters={"label": OWNER}) if is_dead(each["Labels"][OWNER])
    ]
    for each in found:
        try:
            client.api.remove_container(each["Id"], force=True, v=True)
        except APIError as error:  # another builder was faster
            _log.debug("%s", error)
    return Left(len(found), _remove_images(client))


def _remove_images(client: DockerClient) -> int:
    """Removing a newer snapshot can take older ones with it, and an older one can only go after the newer ones."""
    from docker.errors import APIError

    removed = 0
    while True:
        before = removed
        for each in client.api.images(all=True, filters={"label": OWNER}):
            if not is_dead(each["Labels"][OWNER]):
                continue
            names = [tag for tag in each.get("RepoTags") or () if tag != "<none>:<none>"] or [each["Id"]]
            for name in names:
                try:
                    client.api.remove_image(name, force=True)
                    removed += 1
                except APIError as error:
                    _log.debug("%s", error)
        if removed == before:
            return removed


@cache
def _machine() -> str:
    """Machine, boot and PID namespace, as far as this system tells them."""
    name = _read("/etc/machine-id") or os.uname().nodename
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    parts = (name, _read("/proc/sys/kernel/random/boot_id"), space)
    return ":".join(hashlib.sha256(part.encode()).hexdigest()[:12] for part in parts)


def _started(pid: int) -> str:
    """When a process was started, in the kernel's ticks since boot; empty where there is none, or a zombie."""
    stat = _read(f"/proc/{pid}/stat")
    # The name, in parentheses, may hold anything, spaces and parentheses too.
    fields = stat.rpartition(")")[2].split()
    return "" if not fields or fields[0] in "ZX" else fields[19]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
