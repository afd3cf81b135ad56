"""One container in which an agent's commands run: without network, bounded, and with nothing of the host in it.

Three things can go wrong and are told apart. A command fails or takes too long: that is its result. The agent breaks
its own container, so that no command will ever run in it again: `Broken`, the model's failure. The container or the
daemon goes away from outside: `Lost`, which says nothing about the model.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from stepdown.builder.errors import Lost
from stepdown.harnesses.containers.engine import Engine, reaching
from stepdown.harnesses.containers.labels import KIND, labels, unique_name
from stepdown.harnesses.swebench import disk
from stepdown.harnesses.swebench.limits import INIT, MIB, Limits
from stepdown.harnesses.swebench.output import MOST, KeptOutput, Stopped, Stream

MOST_FILES = 20_000
"""Files beyond the image's that a snapshot is taken of: of more, the commands that
made them are done again sooner."""
LONGEST_COMMAND = 131_071
"""Bytes that Linux takes as one argument of a program."""

# Errors go into the same pipe as the rest, so that what is read does not depend on who was scheduled first.
_JOINED = ("sh", "-c", 'exec "$@" 2>&1', "sh")
_SHELL = ("bash", "-c")
_OUTSIDE = "ls -A /dev /dev/shm /dev/mqueue; cat /etc/hosts /etc/hostname /etc/resolv.conf"
_KILLED_OUTSIDE = 137
"""Exit code of a PID 1 that was killed. Nothing inside can kill it: the kernel does, where memory runs out, and says
so; else it was the daemon, on its way down or up."""
_NOT_STARTED = (126, 127)
"""Exit codes of commands that a shell or Docker could not start."""
_PROBE_SECONDS = 30.0
_KILL_SECONDS = 10.0
_CLOCK_TICK = 0.02
"""Seconds that the clock which dates files may be behind."""


class Broken(Exception):
    """The agent made its own container useless."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command came to."""

    output: bytes
    returncode: int
    exception: str = ""
    """Why it did not end by itself, in words for the model."""


class Sandbox:
    """A running container. Used by one thread; `close` removes it."""

    def __init__(
        self,
        engine: Engine,
        image: str,
        base: str,
        limits: Limits,
        cwd: str,
        environment: Mapping[str, str],
        since: disk.ContainerFiles | None = None,
    ) -> None:
        """Start a container of `image`. `base` is the instance's own image, which is known to work; of a snapshot,
        `since` tells when its files were written. Raises Lost.
        """
        self._engine, self.base, self._limits = engine, base, limits
        self._cwd, self._environment = cwd, dict(environment)
        self._id = ""
        name = unique_name("episode")
        try:
            with reaching():
                made = engine.client.containers.create(
                    image,
                    entrypoint=list(INIT[:1]),
                    command=list(INIT[1:]),
                    name=name,
                    labels=labels("episode"),
                    **limits.container_options(),
                )
                self._id = made.id
                made.start()
                details = engine.client.api.inspect_container(self._id)
        except BaseException:
            self._id = self._id or name
            self.close()
            raise
        self._pid = str(details["State"]["Pid"])
        self._running: tuple[str, ...] = ()
        self._upper = disk.upper_folder(details)
        self._files: disk.ContainerFiles | None = disk.ContainerFiles().since(since or disk.ContainerFiles())
        self._keeps_fractions = bool(self._upper) and os.access(self._upper, os.W_OK)

    @property
    def id(self) -> str:
        """The container's."""
        return self._id

    def run(self, command: str, seconds: float) -> Ran:
        """Run a command to its end, at most so long. Raises Broken and Lost."""
        if len(command.encode()) > LONGEST_COMMAND:
            return Ran(b"", -1, "Argument list too long")
        keep = KeptOutput()
        self._let_the_second_end(self._is_racy())
        self._thaw()
        deadline = time.monotonic() + seconds
        with self._executed([*_JOINED, *_SHELL, command], self._environment) as (made, stream):
            stopped = stream.read(keep, deadline, self._has_room)
            if stopped is None:
                stopped = self._waited(made, deadline)
            if stopped is None:
                ran = Ran(keep.bytes(), self._exit_code(made, keep))
            else:
                self._kill(stream)
                self._check_running()
                ran = Ran(keep.bytes(), -1, _why(stopped, seconds))
            if not self._has_room():
                raise Broken("the files it wrote are over the limit")
        self._freeze()
        return ran

    @property
    def running(self) -> tuple[str, ...]:
        """The commands of processes that the last command left running, and that a snapshot would lose."""
        return self._running

    @property
    def unkept(self) -> str:
        """What of its files a snapshot would lose, or make far larger; empty where it holds them all."""
        if self._files is None or self._files.length > self._limits.disk_mib * MIB:
            return "files that are too long"
        return "very many files" if self._files.count > MOST_FILES else self._files.lost

    @property
    def files(self) -> disk.ContainerFiles | None:
        """Its own files after the last command; None where they were over a limit."""
        return self._files

    @property
    def length(self) -> int:
        """Bytes that a snapshot of its own files takes."""
        return self._files.length if self._files is not None else 0

    def outside(self) -> bytes:
        """What of the container's state lies in no layer: shared memory, and the files that Docker mounts.

        A snapshot loses it, so one may be taken only where this is what it was at the start. Raises Lost.
        """
        code, said = self._probe(self._id, [*_JOINED, *_SHELL, _OUTSIDE])
        return str(code).encode() + said

    def commit(self, repository: str, tag: str) -> None:
        """Keep the files as an image of this name, labelled as ours. Raises Lost.

        Where it is lost, the image may come to be all the same.
        """
        self._let_the_second_end(not self._keeps_fractions)
        with reaching():
            # Not paused: nothing runs in it, and a daemon that died meanwhile would leave it frozen.
            api = self._engine.client.api
            api.commit(self._id, repository, tag, pause=False, changes=[f"LABEL {KIND}=snapshot"])
            if self._keeps_fractions:
                disk.keep_fractions(disk.upper_folder(api.inspect_image(f"{repository}:{tag}")), self._upper)

    def close(self) -> None:
        """Remove the container, or where Docker is away, have it removed later. Never raises."""
        identity, self._id = self._id, ""
        if identity:
            self._engine.remove(lambda client: client.api.remove_container(identity, force=True, v=True))

    # One command

    @contextmanager
    def _executed(self, arguments: Sequence[str], environment: Mapping[str, str]) -> Any:
        """A command that was begun, and its output. Raises Lost, also where the connection breaks on the way."""
        from docker.errors import APIError

        api = self._engine.client.api
        with reaching():
            try:
                made = api.exec_create(
                    self._id, list(arguments), stdin=False, workdir=self._cwd, environment=dict(environment)
                )["Id"]
            except APIError:
                self._check_running()
                raise
            stream = Stream(api.exec_start(made, socket=True))
            try:
                yield made, stream
            finally:
                stream.close()

    def _waited(self, made: str, deadline: float) -> Stopped | None:
        """Wait for a command that closed its output before its end."""
        wait = 0.005
        while self._engine.client.api.exec_inspect(made)["Running"]:
            if time.monotonic() >= deadline:
                return "time"
            time.sleep(wait)
            wait = min(1.0, 2 * wait)
        return None

    def _exit_code(self, made: str, kept: KeptOutput) -> int:
        """The command's exit code. A daemon that was started anew knows nothing of it: its output is not believed.

        Raises Broken, and what `reaching` turns into Lost.
        """
        details = self._engine.client.api.exec_inspect(made)
        self._check_running()
        code = details["ExitCode"]
        if code is None:
            raise Lost("Docker does not know how the command ended")
        if code in _NOT_STARTED:
            # An ordinary result, or what Docker says where a command can not be started.
            if self._probe(self._id, [*_JOINED, *_SHELL, ":"], self._cwd)[0] != 0:
                self._give_up("no command can be run in its container any more")
            if not details["Pid"] and kept.bytes().startswith(b"OCI runtime"):
                raise Lost("Docker could not start the command")
        return int(code)

    def _freeze(self) -> None:
        """Processes that run on stand still between commands. Raises Lost.

        Nobody looks at what they take meanwhile, and how far they come must not depend on how long a model thinks.
        """
        self._running = self._processes()
        if self._running:
            with reaching():
                self._engine.client.api.pause(self._id)

    def _thaw(self) -> None:
        if self._running:
            with reaching():
                self._engine.client.api.unpause(self._id)
            self._running = ()

    def _processes(self) -> tuple[str, ...]:
        """The commands of all processes but PID 1 and its own; the first twenty."""
        with reaching():
            # The state is asked for: a command may call itself what a zombie is called.
            top = self._engine.client.api.top(self._id, "-eo pid,ppid,stat,args")
        place = {title: index for index, title in enumerate(top["Titles"])}
        found, own = [], 1
        for process in top["Processes"]:
            pid, parent, state, command = (process[place[title]] for title in ("PID", "PPID", "STAT", "COMMAND"))
            if own and parent == self._pid and command == "sleep 3600":
                own = 0
            elif pid != self._pid and not state.startswith("Z"):
                found.append(command)
        return tuple(found[:20])

    def _check_running(self) -> None:
        """Raises Broken where the container was ended from inside, Lost where from outside."""
        state = self._engine.client.api.inspect_container(self._id)["State"]
        if state["Running"] and not state["Paused"]:
            return
        if state["Running"] or (state["ExitCode"] == _KILLED_OUTSIDE and not state["OOMKilled"]):
            raise Lost("the container was stopped from outside")
        raise Broken("it ended its own container")

    def _kill(self, stream: Stream) -> None:
        """Kill all that runs in the container: from inside, or where that fails, by starting it anew."""
        from docker.errors import APIError

        api = self._engine.client.api
        try:
            api.exec_start(api.exec_create(self._id, [*_SHELL, "kill -9 -1"], stdin=False)["Id"], detach=True)
        except APIError:
            self._check_running()
        if stream.drain(time.monotonic() + _KILL_SECONDS):
            return
        try:
            api.restart(self._id, timeout=0)
            self._pid = str(api.inspect_container(self._id)["State"]["Pid"])
        except APIError:
            self._give_up("its processes can not be ended")

    def _probe(self, container: str, arguments: Sequence[str], cwd: str | None = None) -> tuple[int, bytes]:
        """A command of our own: exit code and output; not 0 where it did not come to its end. Raises Lost."""
        api = self._engine.client.api
        with reaching():
            made = api.exec_create(container, list(arguments), stdin=False, workdir=cwd)["Id"]
            stream = Stream(api.exec_start(made, socket=True))
            keep = KeptOutput()
            try:
                stopped = stream.read(keep, time.monotonic() + _PROBE_SECONDS)
            finally:
                stream.close()
            code = api.exec_inspect(made)["ExitCode"]
        return (-1 if stopped is not None or code is None else int(code)), keep.bytes()

    def _give_up(self, reason: str) -> None:
        """The container is of no use: the model's failure, unless a fresh one is not either. Raises Broken or Lost."""
        control = Sandbox(self._engine, self.base, self.base, self._limits, self._cwd, self._environment)
        try:
            code, _ = self._probe(control.id, [*_JOINED, *_SHELL, ":"], self._cwd)
        finally:
            control.close()
        if code != 0:
            raise Lost("Docker can not run commands in a fresh container either")
        raise Broken(reason)

    # Disk

    def _has_room(self) -> bool:
        """Whether the container's own files are within their limits. Raises Lost where the host's disk is full."""
        before = self._files
        found = disk.used(self._engine.client.api, self._id, self._upper, self._limits)
        self._files = found.since(before) if found is not None and before is not None else found
        return found is not None

    def _is_racy(self) -> bool:
        """Whether a file that is written in this second may be taken for what it was before.

        Replayed commands follow each other faster than those of a live agent. Python compares whole seconds: a source
        that is edited in the second in which it was written and compiled would not be compiled again. Where snapshots
        keep whole seconds, this goes for whatever is built.
        """
        if self._files is None or not self._keeps_fractions:
            return True
        written, compiled = self._files.source, self._files.compiled
        return written <= compiled and int(written) == int(time.time())

    def _let_the_second_end(self, wait: bool) -> None:
        now = time.time()
        if wait and self._files is not None and int(self._files.newest) == int(now):
            time.sleep(int(now) + 1 + _CLOCK_TICK - now)


def _why(stopped: Stopped, seconds: float) -> str:
    """What a model is told of a command that was killed: nothing of how it was run."""
    match stopped:
        case "time":
            return f"the command was killed after {seconds:g} seconds"
        case "output":
            return f"the command was killed: it printed more than {MOST // MIB} MiB"
        case "disk":
            return "the command was killed: it wrote too much"
