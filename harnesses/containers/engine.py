"""The Docker daemon: one client a thread, every failure of it technical, nothing of ours left behind."""

from __future__ import annotations

import logging
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from stepdown.builder.common.extras import require
from stepdown.builder.errors import Lost
from stepdown.harnesses.containers.labels import remove_leftovers

DOCKER = {"docker": 1.0}
"""What a machine of a cluster must state of itself that containers are to run on: `ray start --resources`."""
_IDS = re.compile(r"\b[0-9a-f]{12,64}\b")
_SECONDS = 120
"""What one request to the daemon may take."""

_log = logging.getLogger(__name__)
T = TypeVar("T")


def connect() -> Any:
    """A client of the daemon that the environment names (DOCKER_HOST), or of this machine's. Raises Lost, BadInput."""
    require("swebench", "docker")
    import docker

    with reaching():
        return docker.from_env(timeout=_SECONDS)


def described() -> str:
    """The daemon in a line: version, how it stores layers, the space left there. Raises Lost, BadInput."""
    client = connect()
    with reaching():
        info = client.info()
        client.close()
    root = str(info.get("DockerRootDir", ""))
    try:
        space = f"{shutil.disk_usage(root).free / 2**30:.1f} GiB free in {root}"
    except OSError:
        space = f"free space in {root} unknown from here"
    return f"version {info.get('ServerVersion')}, storage {info.get('Driver')}, {space}"


@contextmanager
def reaching() -> Iterator[None]:
    """Turns what the SDK raises where daemon or container are gone into Lost, without ids of this machine."""
    from docker.errors import APIError, DockerException
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except APIError as error:
        raise Lost(f"Docker: {_IDS.sub('ID', str(error.explanation or error))[:200]}") from error
    except (DockerException, RequestException, HTTPError, OSError) as error:
        raise Lost(f"Docker does not answer ({type(error).__name__})") from error


class Engine:
    """The daemon, shared by the threads of a process."""

    def __init__(self, connect: Callable[[], Any] = connect) -> None:
        self._connect = connect
        self._own = threading.local()
        # A snapshot that goes is noticed wherever memory is tidied up, also by a thread that holds this already.
        self._guard = threading.RLock()
        self._tidied = False
        self._owed: list[Callable[[Any], None]] = []
        # One thread: what is begun later is done later, and an image can go once its containers have.
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="docker-aside")

    @property
    def client(self) -> Any:
        """This thread's client. Raises Lost."""
        if not hasattr(self._own, "client"):
            self._own.client = self._connect()
        return self._own.client

    def check(self) -> None:
        """Raises Lost where the daemon does not answer."""
        with reaching():
            self.client.ping()

    def aside(self, job: Callable[[], T]) -> Future[T]:
        """Do something that nobody waits for, after all that was given here before; at once where the process ends."""
        try:
            return self._aside.submit(job)
        except RuntimeError:
            done: Future[T] = Future()
            done.set_result(job())
            return done

    def settle(self) -> None:
        """Wait until all that was put aside is done."""
        self.aside(lambda: None).result()

    def tidy(self) -> None:
        """Remove what dead processes left behind, once, and what this one could not remove before. Raises Lost."""
        with self._guard:
            owed, self._owed = self._owed, []
            first, self._tidied = not self._tidied, True
        if first:
            try:
                with reaching():
                    remove_leftovers(self.client)
            except Lost:
                self._tidied = False
                raise
        for removal in owed:
            self.remove(removal)

    def remove(self, removal: Callable[[Any], None]) -> None:
        """Remove something of ours: now, or where the daemon is away, when it is back. Never raises."""
        from docker.errors import NotFound

        try:
            with reaching():
                removal(self.client)
        except Lost as error:
            if not isinstance(error.__cause__, NotFound):
                _log.debug("not removed yet: %s", error)
                with self._guard:
                    self._owed.append(removal)
