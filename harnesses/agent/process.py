"""`sandbox: process`: programs of people who trust them run on this machine, in folders of their own.

They are given nothing of stepdown's environment but the path of programs, so no key of a provider. What they start is
ended with them, whatever it does to get away; see `supervisor`. What they can reach is not bounded: files, the network.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from stepdown.builder.common.kept import Kept
from stepdown.builder.errors import Technical
from stepdown.harnesses.agent import supervisor
from stepdown.harnesses.agent.limits import Limits
from stepdown.harnesses.agent.program import Content, Ended, Names, Program, ProgramSandbox
from stepdown.harnesses.agent.workspace import fill, put_program
from stepdown.harnesses.containers.labels import is_dead, owner

_KEPT = 1 << 16
"""Bytes of an output that are kept of its start, and of its end."""
_MIB = 1 << 20
_STOP_SECONDS = 30.0
_PREFIX, _OWNER = "stepdown-agent-", "owner"
"""How the name of a sandbox's folder begins, and the file in it that says whose it is."""


class ProcessSandboxMaker:
    """Makes sandboxes on this machine."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    @contextmanager
    def open(self, workspace: Content, program: Path | None) -> Iterator[ProgramSandbox]:
        """A fresh sandbox in the folder of temporary files; it is removed after the block."""
        _remove_leftovers()
        root = Path(tempfile.mkdtemp(prefix=_PREFIX))
        (root / _OWNER).write_text(owner(), encoding="utf-8")
        sandbox = ProcessSandbox(root, self._limits)
        try:
            fill(root / "workspace", workspace)
            if program is not None:
                put_program(root / "program", program)
            yield sandbox
        finally:
            sandbox.close()
            _remove(root)


class ProcessSandbox:
    """Folders of this machine, and the programs that run in them."""

    def __init__(self, root: Path, limits: Limits) -> None:
        self._root, self._limits = root, limits
        self._running: list[ProcessProgram] = []
        for name in ("workspace", "home", "tmp", "program"):
            (root / name).mkdir()
        real = {name: str(root / name) for name in ("workspace", "home", "tmp", "program")}
        self.names = Names(
            workspace=real["workspace"],
            home=real["home"],
            temporary=real["tmp"],
            program=real["program"],
            python=sys.executable,
            aliases={
                real["workspace"]: "/workspace",
                real["home"]: "/home/agent",
                real["tmp"]: "/tmp/agent",  # noqa: S108 - an alias, no place
                real["program"]: "/program",
            },
        )

    def listen(self) -> socket.socket | None:
        """None: all of this machine's loopback can be reached."""
        return None

    def put(self, folder: str, files: Mapping[str, str]) -> None:
        """Write files."""
        if files:
            fill(Path(folder), Content(files=files))

    def start(self, command: Sequence[str], environment: Mapping[str, str], on_end: Callable[[], None]) -> Program:
        """Start a program under a supervisor of its own."""
        own = {"HOME": self.names.home, "TMPDIR": self.names.temporary}
        program = ProcessProgram(
            command, {**own, **environment}, self._root / "workspace", self._root, self._limits, on_end
        )
        self._running.append(program)
        return program

    def grade(self, command: str, content: Content, transcript: str, seconds: float) -> Ended:
        """Run a grader where the program ran, with a folder of its own files."""
        folder = Path(tempfile.mkdtemp(prefix="grader-", dir=self._root))
        fill(folder / "grader", content)
        (folder / "transcript.json").write_text(transcript, encoding="utf-8")
        places = {
            "grader": str(folder / "grader"),
            "transcript": str(folder / "transcript.json"),
            "python": sys.executable,
            "workspace": self.names.workspace,
        }
        words = ["/bin/sh", "-c", _with_places(command, places)]
        own = {"HOME": str(folder), "TMPDIR": self.names.temporary, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            return run_to_end(words, own, self._root / "workspace", self._limits, seconds)
        finally:
            _remove(folder)

    @contextmanager
    def copied_out(self) -> Iterator[Path]:
        """The workspace itself."""
        with nullcontext(self._root / "workspace") as folder:
            yield folder

    def close(self) -> None:
        """End what still runs."""
        for program in self._running:
            program.stop()


class ProcessProgram:
    """A program under its supervisor, and the thread that reads what it prints."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        cwd: Path,
        watched: Path,
        limits: Limits,
        on_end: Callable[[], None],
    ) -> None:
        """`watched` is the folder whose files are bounded. Raises Technical where no process can be started."""
        self._on_end = on_end
        self._kept = Kept(_KEPT, _KEPT)
        self._ended: Ended | None = None
        report, reporting = os.pipe()
        bounds: dict[str, Any] = {
            "report": reporting,
            "folder": str(watched),
            "processes": limits.processes,
            "memory_bytes": limits.memory_mib * _MIB,
            "file_bytes": limits.file_mib * _MIB,
            "disk_bytes": limits.disk_mib * _MIB,
        }
        words = [sys.executable, "-I", "-S", supervisor.__file__, json.dumps(bounds), *command]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - what the config names, without a shell
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env={"PATH": os.environ.get("PATH", os.defpath), **environment},
                start_new_session=True,
                pass_fds=(reporting,),
            )
        except OSError as error:
            os.close(report)
            raise Technical(f"the program can not be started: {error.strerror}") from error
        finally:
            os.close(reporting)
        self._reader = threading.Thread(target=self._watch, args=(report,), name="agent-output", daemon=True)
        self._reader.start()

    def ended(self) -> Ended | None:
        """How it ended; None while it runs."""
        return self._ended

    def stop(self) -> None:
        """Let the supervisor end all of it, and wait until it has."""
        with suppress(OSError):
            _of(self._process.stdin).close()
        self._reader.join(_STOP_SECONDS)

    def _watch(self, report: int) -> None:
        """Read what it prints to the end, keep a little of it, and say when all is over."""
        output = _of(self._process.stdout)
        while self._process.poll() is None:
            self._read(output.fileno(), 1.0)
        # Where the supervisor was killed itself, its session goes with it.
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        while self._read(output.fileno(), 0.0):
            pass
        with os.fdopen(report, "rb") as file:
            os.set_blocking(file.fileno(), False)
            told = file.read()
        output.close()
        said: dict[str, Any] = json.loads(told) if told else {"code": None, "why": "its supervisor was killed"}
        self._ended = Ended(said["code"], said["why"], self._kept.bytes())
        self._on_end()

    def _read(self, output: int, seconds: float) -> bool:
        """Read once, where something comes in this time; whether more may come at once."""
        if not select.select([output], [], [], seconds)[0]:
            return False
        data = os.read(output, 1 << 16)
        self._kept.add(data)
        if not data:
            with suppress(subprocess.TimeoutExpired):  # it has closed its output, and runs on
                self._process.wait(seconds)
        return bool(data)


def run_to_end(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, limits: Limits, seconds: float
) -> Ended:
    """Run a program in a folder, at most so long, and end all that it started."""
    finished = threading.Event()
    program = ProcessProgram(command, environment, folder, folder, limits, finished.set)
    try:
        in_time = finished.wait(seconds)
    finally:
        program.stop()
    ended = program.ended() or Ended(None, "stopped")
    return ended if in_time else Ended(None, f"it took more than {seconds:g} s", ended.output)


def _of(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:  # all three are pipes
        raise AssertionError
    return stream


def _with_places(command: str, places: Mapping[str, str]) -> str:
    for name, place in places.items():
        command = command.replace(f"{{{name}}}", shlex.quote(place))
    return command


@cache
def _remove_leftovers() -> None:
    """Remove, once, the sandboxes of processes that were killed between two programs, when no supervisor was there."""
    for root in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError, ValueError):
            if is_dead((root / _OWNER).read_text(encoding="utf-8")):
                _remove(root)


def _remove(root: Path) -> None:
    """Remove a sandbox's folders, whatever rights a program gave them."""

    def open_up(remove: Any, path: str, _: Any) -> None:
        with suppress(OSError):
            os.chmod(Path(path).parent, 0o700)
            os.chmod(path, 0o700, follow_symlinks=False) if not os.path.islink(path) else None
            remove(path)

    for _ in range(3):
        shutil.rmtree(root, onerror=open_up)
        if not root.exists():
            return
