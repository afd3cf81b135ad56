"""Runs one program and ends all that it started. A process of its own: `python -I -S supervisor.py LIMITS COMMAND...`.

Nothing that a program starts may outlive its episode, nor stepdown itself where that is killed. So orphans fall to this
process, which reads a pipe that stepdown holds open: once the program has ended or the pipe is closed, it ends all of
its descendants. What they may take is looked at meanwhile. It imports nothing of stepdown, to start at once.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""
_LOOK = 0.25
"""Seconds between two looks at what the processes take."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_NOT_STARTED = 127


def main() -> None:
    limits, command = json.loads(sys.argv[1]), sys.argv[2:]
    report = int(limits["report"])
    become_subreaper()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the pipe says when it is over
    parent = os.getppid()
    child = start(command, limits["file_bytes"], (report, woken, wake))
    code, why = watch(child, woken, limits)
    end_all()
    if os.getppid() != parent:  # stepdown was killed: nobody else removes what its episode leaves
        shutil.rmtree(limits["folder"], ignore_errors=True)
        return
    os.write(report, json.dumps({"code": code, "why": why}).encode())


def become_subreaper() -> None:
    """Orphans of the program become children of this process. Linux has this; elsewhere the process group must do."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)


def start(command: list[str], file_bytes: int, own: tuple[int, ...]) -> int:
    """Start the program; its process id."""
    child = os.fork()
    if child:
        return child
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        for descriptor in own:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.execvp(command[0], command)  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(_NOT_STARTED)


def watch(child: int, woken: int, limits: dict[str, Any]) -> tuple[int | None, str]:
    """Wait for the program's end: its exit code, and why it was ended where it did not end by itself."""
    disk_at = 0.0
    while True:
        ready, _, _ = select.select([0, woken], [], [], _LOOK)
        if woken in ready:
            os.read(woken, 4096)
        code = reap(child)
        if code is not None:
            return code, ""
        if 0 in ready:
            return None, "stopped"
        found = descendants()
        if len(found) > limits["processes"]:
            return None, f"it ran more than {limits['processes']} processes"
        if sum(found.values()) > limits["memory_bytes"]:
            return None, f"its processes took more than {limits['memory_bytes'] >> 20} MiB of memory"
        if time.monotonic() >= disk_at:
            before = time.monotonic()
            if used(limits["folder"]) > limits["disk_bytes"]:
                return None, f"its files took more than {limits['disk_bytes'] >> 20} MiB"
            # Looking at a million files takes its time: it must not become all that is done.
            disk_at = time.monotonic() + 1.0 + 20 * (time.monotonic() - before)


def reap(child: int) -> int | None:
    """Reap what has ended; the program's exit code if it is among it."""
    code = None
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if not process:
            return code
        if process == child:
            code = os.waitstatus_to_exitcode(status)


def descendants() -> dict[int, int]:
    """All processes below this one, and the bytes of memory that each holds."""
    parents: dict[int, tuple[int, int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The name, in parentheses, may hold anything.
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[0] != b"Z":
                parents[int(name)] = int(fields[1]), int(fields[21]) * _PAGE
    below: dict[int, int] = {}
    level = {os.getpid()}
    while level:
        level = {process for process, (parent, _) in parents.items() if parent in level and process not in below}
        below.update((process, parents[process][1]) for process in level)
    return below


def used(folder: str) -> int:
    """Bytes that the files below a folder take."""
    total, waiting = 0, [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue
    return total


def end_all() -> None:
    """Kill all descendants. They are stopped first, so that none can start another while they are counted."""
    while True:
        for number in (signal.SIGSTOP, signal.SIGKILL):
            found = descendants()
            for process in found:
                with suppress(ProcessLookupError):
                    os.kill(process, number)
        reap(-1)
        if not descendants():
            return
        time.sleep(0.005)


if __name__ == "__main__":
    main()
