"""Locks on files between processes. The system gives them free when their process ends, however it ends."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path

from stepdown.builder.errors import BadInput

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}
"""What a file system says that has no locks, or whose lock server does not answer."""


class LockHeld(Exception):
    """Another process holds the lock."""


def take_lock(descriptor: int, path: Path, *, wait: bool = False) -> None:
    """Take the lock of an open file for this process; with `wait`, once whoever holds it lets go.

    Raises Held where another process has it, and BadInput, which names `path`, where its file system can not lock.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise LockHeld from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise BadInput(f"can not be locked: {error.strerror}", file=path) from None
        problem = (
            f"this file system has no locks ({error.strerror}), so nothing keeps two processes apart: name a folder on "
            "a local disk, or mount this one with locks (NFS: with a lock service, without `nolock`)"
        )
        raise BadInput(problem, file=path) from None
