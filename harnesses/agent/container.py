"""`sandbox: docker`: programs run in containers without network, in which only their episode's address is there.

The image needs a `sh` with `sleep`, and what the program and its graders need. When a program is ended its container is
killed whole; graders run in a fresh one, on a copy of the workspace.
"""

from __future__ import annotations

import shlex
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from stepdown.builder.common.kept import Kept
from stepdown.builder.errors import Lost, Technical
from stepdown.harnesses.agent import archives
from stepdown.harnesses.agent.limits import Limits
from stepdown.harnesses.agent.namespace import listening_in
from stepdown.harnesses.agent.program import Content, Ended, Names, Program, ProgramSandbox
from stepdown.harnesses.agent.supervisor import used
from stepdown.harnesses.agent.workspace import fill, put_program
from stepdown.harnesses.containers import images
from stepdown.harnesses.containers.confined import MIB, confined
from stepdown.harnesses.containers.engine import Engine, reaching
from stepdown.harnesses.containers.labels import Kind, labels, unique_name

_INIT = ("sh", "-c", "while :; do sleep 3600 & wait $!; done")
"""PID 1: it reaps orphans, which count against the limit of processes."""
_NAMES = Names("/workspace", "/home/agent", "/tmp", "/program", "python3")  # noqa: S108 - in the container
_KEPT = 1 << 16
_LOOK = 0.25
"""Seconds between two looks at whether a program has ended, at most."""


class DockerSandboxMaker:
    """Makes sandboxes in containers of one image."""

    def __init__(self, engine: Engine, image: str, limits: Limits) -> None:
        self._engine, self._image, self._limits = engine, image, limits

    @contextmanager
    def open(self, workspace: Content, program: Path | None) -> Iterator[ProgramSandbox]:
        """A fresh container; it is removed after the block. Raises Technical and Lost."""
        self._engine.tidy()
        images.ensure(self._engine.client, self._image)
        with _container(self._engine, self._image, self._limits, "agent") as made:
            with tempfile.TemporaryDirectory(prefix="stepdown-agent-") as folder:
                fill(Path(folder) / "workspace", workspace)
                for name in ("program", "home"):
                    (Path(folder) / name).mkdir()
                if program is not None:
                    put_program(Path(folder) / "program", program)
                for name, inside in (("workspace", "workspace"), ("program", "program"), ("home", "home/agent")):
                    _put(made, "/", archives.folder_archive(Path(folder) / name, inside))
            yield ContainerSandbox(self._engine, self._image, self._limits, made)


@contextmanager
def _container(engine: Engine, image: str, limits: Limits, kind: Kind) -> Iterator[Any]:
    """A running container of the SDK. Raises Lost."""
    options = confined(
        memory_mib=limits.memory_mib, cpus=limits.cpus, processes=limits.processes, file_mib=limits.file_mib
    )
    name = unique_name(kind)
    try:
        with reaching():
            made = engine.client.containers.create(
                image, entrypoint=list(_INIT[:1]), command=list(_INIT[1:]), name=name, labels=labels(kind), **options
            )
            made.start()
            made.reload()
        yield made
    finally:
        engine.remove(lambda client: client.api.remove_container(name, force=True, v=True))


def _put(container: Any, folder: str, archive: IO[bytes]) -> None:
    with archive, reaching():
        container.put_archive(folder, archive)


class ContainerSandbox:
    """One container, and the program in it."""

    def __init__(self, engine: Engine, image: str, limits: Limits, container: Any) -> None:
        self.names = _NAMES
        self._engine, self._image, self._limits, self._container = engine, image, limits, container
        self._program: ContainerProgram | None = None

    def listen(self) -> socket.socket | None:
        """A socket on the container's own loopback. Raises Technical."""
        return listening_in(int(self._container.attrs["State"]["Pid"]))

    def put(self, folder: str, files: Mapping[str, str]) -> None:
        """Write files."""
        if files:
            _put(self._container, folder, archives.files_archive(files))

    def start(self, command: Sequence[str], environment: Mapping[str, str], on_end: Callable[[], None]) -> Program:
        """Start the program; there is one in a sandbox."""
        own = {"HOME": _NAMES.home, **environment}
        self._program = ContainerProgram(self._engine, self._container, self._limits, command, own, on_end)
        return self._program

    def grade(self, command: str, content: Content, transcript: str, seconds: float) -> Ended:
        """Run a grader in a fresh container of the same image, on a copy of the workspace."""
        with (
            _container(self._engine, self._image, self._limits, "grader") as made,
            tempfile.TemporaryDirectory(prefix="stepdown-grader-") as folder,
        ):
            _put(made, "/", self._archive())
            fill(Path(folder) / "grader", content)
            _put(made, "/", archives.folder_archive(Path(folder) / "grader", "grader"))
            _put(made, "/", archives.files_archive({"transcript.json": transcript}))
            places = {"grader": "/grader", "transcript": "/transcript.json", "python": "python3"}
            for name, place in {**places, "workspace": _NAMES.workspace}.items():
                command = command.replace(f"{{{name}}}", shlex.quote(place))
            finished = threading.Event()
            own = {"LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
            grader = ContainerProgram(self._engine, made, self._limits, ["sh", "-c", command], own, finished.set)
            in_time = finished.wait(seconds)
            grader.stop()
            ended = grader.ended() or Ended(None, "stopped")
            return ended if in_time else Ended(None, f"it took more than {seconds:g} s", ended.output)

    @contextmanager
    def copied_out(self) -> Iterator[Path]:
        """A copy of the workspace's plain files and folders."""
        with tempfile.TemporaryDirectory(prefix="stepdown-agent-") as folder:
            with self._archive() as archive:
                archives.unpack(archive, Path(folder))
            yield Path(folder)

    def _archive(self) -> IO[bytes]:
        """The workspace. Raises Lost, and Technical where it is more than was allowed."""
        with reaching():
            pieces, _ = self._container.get_archive(_NAMES.workspace)
            try:
                return archives.kept_archive(pieces, 2 * self._limits.disk_mib * MIB)
            except ValueError as error:
                raise Technical(f"the workspace can not be copied out: {error}") from None


class ContainerProgram:
    """A program in a container, and the threads that watch it."""

    def __init__(
        self,
        engine: Engine,
        container: Any,
        limits: Limits,
        command: Sequence[str],
        environment: Mapping[str, str],
        on_end: Callable[[], None],
    ) -> None:
        """Raises Lost."""
        self._engine, self._container, self._limits, self._on_end = engine, container, limits, on_end
        self._kept = Kept(_KEPT, _KEPT)
        self._ended: Ended | None = None
        self._lost: Lost | None = None
        self._stopping = threading.Event()
        upper = (container.attrs.get("GraphDriver", {}).get("Data") or {}).get("UpperDir")
        self._upper: str | None = upper
        with reaching():
            self._made = engine.client.api.exec_create(
                container.id, list(command), stdin=False, workdir=_NAMES.workspace, environment=dict(environment)
            )["Id"]
            pieces = engine.client.api.exec_start(self._made, stream=True)
        self._reader = threading.Thread(target=self._read, args=(pieces,), name="agent-output", daemon=True)
        self._watcher = threading.Thread(target=self._watch, name="agent-end", daemon=True)
        self._reader.start()
        self._watcher.start()

    def ended(self) -> Ended | None:
        """How it ended; None while it runs. Raises Lost where that is not known."""
        if self._lost is not None:
            raise self._lost
        return self._ended

    def stop(self) -> None:
        """Kill its container, and all that runs there."""
        self._stopping.set()
        self._watcher.join()

    def _read(self, pieces: Any) -> None:
        with suppress(Exception):  # the connection ends with the container
            for piece in pieces:
                self._kept.add(piece)

    def _watch(self) -> None:
        """Wait for its end, then kill what else runs in the container."""
        try:
            with reaching():
                code, why = self._wait()
                self._reader.join(1.0)
                if self._is_running():
                    self._engine.client.api.kill(self._container.id)
            self._ended = Ended(code, why, self._kept.bytes())
        except Lost as lost:
            self._lost = lost
        finally:
            self._on_end()

    def _wait(self) -> tuple[int | None, str]:
        wait, looked_at = 0.01, 0.0
        api = self._engine.client.api
        while True:
            details = api.exec_inspect(self._made)
            if not details["Running"]:
                break
            if self._stopping.wait(wait):
                return None, "stopped"
            wait = min(_LOOK, 1.5 * wait)
            now = time.monotonic()
            if self._upper is not None and now >= looked_at:
                if used(self._upper) > self._limits.disk_mib * MIB:
                    return None, f"its files took more than {self._limits.disk_mib} MiB"
                looked_at = now + 1.0 + 20 * (time.monotonic() - now)
        if not self._is_running():
            return None, "its container ended"
        if details["ExitCode"] is None:
            raise Lost("Docker does not know how the program ended")
        return int(details["ExitCode"]), ""

    def _is_running(self) -> bool:
        return bool(self._engine.client.api.inspect_container(self._container.id)["State"]["Running"])
