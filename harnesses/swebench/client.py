"""The Docker client that the official grader is lent: it confines the container, bounds what is read, and takes notes.

The grader asks for a container with extra rights and the default network, reads what commands print without bound, and
answers every error alike. What it sees here is as much of the Docker SDK as it uses. The notes say afterwards how far
it came, which its answer does not.
"""

from __future__ import annotations

import io
import tarfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any, Literal, TypeVar

from stepdown.builder.errors import Lost
from stepdown.harnesses.containers.engine import Engine
from stepdown.harnesses.containers.labels import labels, unique_name
from stepdown.harnesses.swebench import disk
from stepdown.harnesses.swebench.limits import INIT, MIB, Limits

T = TypeVar("T")
Bound = Literal["time", "memory", "disk"]

MOST_OUTPUT = 16 * MIB
"""Of what the tests print, the first so many bytes are kept, and the last `LAST_OUTPUT`, which hold the end marker."""
LAST_OUTPUT = MIB
MOST_OF_GIT = MIB // 4
"""The same for git's own output, which goes to the log only."""
SLACK = 300.0
"""Seconds that applying the patch and the rest may take beside the tests."""
DYING = 5.0
"""Seconds within which a container that was killed is seen to have ended."""
_OFFLINE = {"PIP_RETRIES": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
"""What pip is told where there is no network: an instance that installs itself anew
would wait at each retry."""
LOOK_EVERY = 1.0
"""Seconds between two looks at what the container takes."""


class Stage(IntEnum):
    """How far a run of the grader came."""

    NOTHING = 0
    PATCHING = 1
    """The container runs and has the patch."""
    TESTING = 2
    """The patch is applied, and the script that runs the tests is there."""
    TESTED = 3
    """The tests have ended, by themselves."""


@dataclass(slots=True)
class Notes:
    """What became of one run of the grader."""

    stage: Stage = Stage.NOTHING
    begun: float | None = None
    """When the tests were begun, on the monotonic clock."""
    seconds: float | None = None
    """What the tests took, once they have ended."""
    over: Bound | None = None
    """What the container took too much of."""
    disk: int = 0
    """Bytes of its files beyond the image's, as they were last looked at."""
    troubles: list[str] = field(default_factory=list)
    """What Docker had to complain about."""

    def tested_for(self) -> float:
        """Seconds that the tests took, or have taken so far."""
        if self.seconds is not None:
            return self.seconds
        return time.monotonic() - self.begun if self.begun is not None else 0.0


class GraderClient:
    """A client for one run of the grader in one container. `close` removes the container, whatever became of it."""

    def __init__(self, engine: Engine, limits: Limits, seconds: float, patch: bytes) -> None:
        """`seconds` is what the tests may take; `patch` is put into the container byte by byte, in place of what the
        grader makes of it as text. Raises Lost."""
        docker = engine.client
        self.notes = Notes()
        self.images = SimpleNamespace(get=lambda name: self._noted(lambda: docker.images.get(name)), pull=self._pull)
        self.containers = SimpleNamespace(get=self._nobody, create=self._create)
        self._engine, self._docker = engine, docker
        self._limits, self._seconds, self._patch = limits, seconds, patch
        self._name = ""
        self._container: GraderContainer | None = None
        self._watch: _Watch | None = None

    def settle(self) -> bool:
        """Complete the notes. True where the container ran on all the time, under a daemon that answers.

        Commands of a container that was ended are over a moment before it counts as ended: it is looked at until it
        runs a command or has had the time to end. One without a free process for a command runs as well.
        """
        if self._container is None or self._watch is None:
            return False
        self._watch.end()
        latest = time.monotonic() + DYING
        try:
            while self._docker.api.inspect_container(self._container.id)["State"]["Running"]:
                if self._container.exec_run(["true"]).exit_code == 0 or time.monotonic() > latest:
                    return True
                time.sleep(0.1)
            return False
        except Exception as error:  # the SDK's, requests' and urllib3's errors have no common root
            self.notes.troubles.append(str(error))
            return False

    def memory_peak(self) -> int | None:
        """The most memory in bytes that the container has had, page cache included; None where it cannot be known."""
        if self._container is None:
            return None
        files = ("/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes")
        said = self._container.exec_run(["cat", *files], stderr=False).output.split()
        figures = [int(part) for part in said if part.isdigit() and len(part) < 16]
        return figures[0] if figures else None

    def close(self) -> None:
        """Remove the container, or where the daemon is away, have it removed when it is back. Never raises."""
        if self._watch is not None:
            self._watch.end()
        name = self._name
        if name:
            self._engine.remove(lambda client: client.api.remove_container(name, force=True, v=True))

    def _noted(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except Exception as error:
            self.notes.troubles.append(f"{type(error).__name__}: {error}")
            raise

    @staticmethod
    def _pull(name: str) -> None:
        raise LookupError(f"there is no image {name}")

    @staticmethod
    def _nobody(name: str) -> None:
        """The grader looks for a container of an earlier run under its name. Ours have names that nobody else has."""
        from docker.errors import NotFound

        raise NotFound(f"no container {name}")

    def _create(self, *, image: str, user: str, **_: Any) -> GraderContainer:
        options = self._limits.container_options()
        self._name = unique_name("grading")
        made = self._noted(
            lambda: self._docker.containers.create(
                image=image,
                name=self._name,
                user=user,
                entrypoint=list(INIT[:1]),
                command=list(INIT[1:]),
                labels=labels("grading"),
                environment=_OFFLINE,
                **options,
            )
        )
        self._container = GraderContainer(made, self.notes, self._patch)
        self._watch = _Watch(self._docker, made.id, self.notes, self._limits, self._seconds + SLACK)
        return self._container


class GraderContainer:
    """As much of the Docker SDK's container as the grader uses."""

    def __init__(self, container: Any, notes: Notes, patch: bytes) -> None:
        self.id, self.name = container.id, container.name
        self.client = SimpleNamespace(
            api=SimpleNamespace(
                exec_create=container.client.api.exec_create,
                exec_start=self._tests,
                exec_inspect=container.client.api.exec_inspect,
            )
        )
        self.start = container.start
        self._container, self._api = container, container.client.api
        self._notes, self._patch = notes, patch

    def put_archive(self, path: str, data: bytes) -> bool:
        """Put the one file of a tar archive into a folder, owned by root and readable whatever the host's user is."""
        name, content = _unpacked(data)
        if name == "patch.diff":
            content = self._patch
        done = bool(self._container.put_archive(path, _packed(name, content)))
        if name == "patch.diff":
            self._notes.stage = Stage.PATCHING
        elif name == "eval.sh":
            self._notes.stage = Stage.TESTING
        return done

    def exec_run(self, command: Any, **options: Any) -> Any:
        """A command's exit code and the bounded, readable part of its output.

        Before the tests it raises where Docker cannot run the command. After them it has nothing to say then: tests may
        have left no process to run one in, and what is asked goes to the log alone.
        """
        options.pop("detach", None)
        try:
            made = self._api.exec_create(self.id, command, **options)["Id"]
            output = b"".join(_bounded(self._api.exec_start(made, stream=True), MOST_OF_GIT, 0))
            code = self._api.exec_inspect(made)["ExitCode"]
            if code is None:
                raise ConnectionError("the container's output broke off")
        except Exception as error:
            if self._notes.stage >= Stage.TESTING:
                return SimpleNamespace(exit_code=None, output=b"")
            self._notes.troubles.append(f"{type(error).__name__}: {error}")
            raise
        return SimpleNamespace(exit_code=code, output=output.decode(errors="replace").encode())

    def _tests(self, made: str, stream: bool = True) -> Iterator[bytes]:
        """The output of the tests, in pieces, as far as it is kept."""
        self._notes.begun = begun = time.monotonic()
        try:
            yield from _growing(_bounded(self._api.exec_start(made, stream=True), MOST_OUTPUT, LAST_OUTPUT))
            self._notes.seconds = time.monotonic() - begun
            if self._api.exec_inspect(made)["ExitCode"] is not None:
                self._notes.stage = Stage.TESTED
        except Exception as error:
            self._notes.troubles.append(f"{type(error).__name__}: {error}")
            raise


class _Watch(Thread):
    """Looks at what the container takes, and kills it where the grader itself would wait for ever."""

    def __init__(self, docker: Any, container: str, notes: Notes, limits: Limits, seconds: float) -> None:
        super().__init__(name=f"watch-{container[:12]}", daemon=True)
        self._api, self._container, self._notes, self._limits = docker.api, container, notes, limits
        self._seconds, self._begun, self._upper = seconds, time.time(), ""
        self._ended = Event()
        self.start()

    def end(self) -> None:
        """Stop looking, after one last look."""
        self._ended.set()
        self.join()

    def run(self) -> None:
        while True:
            last = self._ended.wait(LOOK_EVERY)
            try:
                self._look()
            except Exception as error:  # the SDK's, requests' and urllib3's errors have no common root
                self._notes.troubles.append(f"{type(error).__name__}: {error}")
            if last:
                return

    def _look(self) -> None:
        filters = {"container": self._container, "event": "oom"}
        # The daemon remembers some hundred events only, so it is asked all along. It tells of a process that was killed
        # for memory though the container itself goes on.
        for _ in self._api.events(self._begun - 5, time.time(), filters, decode=True):
            self._notes.over = self._notes.over or "memory"
        if not self._upper:
            self._upper = disk.upper_folder(self._api.inspect_container(self._container))
        try:
            taken = disk.used(self._api, self._container, self._upper, self._limits)
        except Lost:
            self._kill()
            raise
        if taken is None:
            self._notes.over = "disk"
            self._kill()
            return
        self._notes.disk = max(self._notes.disk, taken.taken)
        if time.time() > self._begun + self._seconds:
            self._notes.troubles.append("the grader did not come to an end")
            self._kill()

    def _kill(self) -> None:
        from docker.errors import APIError

        try:
            self._api.kill(self._container)
        except APIError as error:  # it is dead already
            self._notes.troubles.append(str(error))


def _bounded(pieces: Iterable[bytes], first: int, last: int) -> Iterator[bytes]:
    """The first and the last bytes of a stream, with a note on what was left out between them.

    >>> b"".join(_bounded([b"ab", b"cd", b"ef"], 3, 1))
    b'abc\\n[2 bytes left out]\\nf'
    """
    left, tail, held, dropped = first, deque[bytes](), 0, 0
    for piece in pieces:
        if left:
            yield piece[:left]
        piece, left = piece[left:], max(0, left - len(piece))
        if piece:
            tail.append(piece)
            held += len(piece)
        while held > last:
            oldest = tail.popleft()
            cut = min(len(oldest), held - last)
            held, dropped = held - cut, dropped + cut
            if oldest[cut:]:
                tail.appendleft(oldest[cut:])
    if dropped:
        yield f"\n[{dropped} bytes left out]\n".encode()
    yield b"".join(tail)


def _growing(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces that grow with what came before: the grader appends each to all it has, by copying it.

    >>> pieces = list(_growing([b"."] * 1000))
    >>> len(b"".join(pieces)), len(pieces) < 200
    (1000, True)
    """
    held, size, given = list[bytes](), 0, 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size * 32 > given:
            yield b"".join(held)
            held, size, given = [], 0, given + size
    if held:
        yield b"".join(held)


def _unpacked(data: bytes) -> tuple[str, bytes]:
    """The one file in a tar archive."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        member = archive.getmembers()[0]
        file = archive.extractfile(member)
        return member.name, file.read() if file else b""


def _packed(name: str, content: bytes) -> bytes:
    """A tar archive of one file of root's."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), 0o644
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
