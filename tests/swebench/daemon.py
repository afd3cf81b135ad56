"""A Docker daemon of the tests' own, to be killed: the machine's serves others too."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any


class Daemon:
    """A dockerd with a folder of its own for everything. `address` is what DOCKER_HOST takes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"unix://{folder}/socket"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, or start it again, and wait until it answers."""
        for _ in range(5):
            self._let_containerd_go()
            with (self.folder / "log").open("ab") as log:
                self._process = subprocess.Popen(
                    [
                        "dockerd",
                        *("--data-root", str(self.folder / "data"), "--exec-root", str(self.folder / "exec")),
                        *("--pidfile", str(self.folder / "pid"), "-H", self.address),
                        *("--bridge=none", "--iptables=false", "--ip6tables=false"),
                    ],
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            if self._answers():
                return
        raise AssertionError((self.folder / "log").read_text()[-2000:])

    def client(self) -> Any:
        """A client of the SDK, closed with the context."""
        import docker

        return closing(docker.DockerClient(self.address, timeout=60))

    def load(self, image: str) -> None:
        """Take an image over from the machine's daemon."""
        saved = subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE)
        subprocess.run(["docker", "-H", self.address, "load", "-q"], stdin=saved.stdout, check=True)
        assert saved.wait() == 0

    def kill(self) -> None:
        """`kill -9`."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def end(self) -> None:
        """End it, its containers before it."""
        with suppress(Exception), self.client() as client:
            for container in client.containers.list(all=True):
                container.remove(force=True)
        self.kill()

    def _answers(self) -> bool:
        assert self._process is not None
        while self._process.poll() is None:
            with suppress(Exception), self.client() as client:
                return bool(client.ping())
            time.sleep(0.05)
        return False

    def _let_containerd_go(self) -> None:
        """Its own containerd ends with it, but a moment later, and a dockerd that finds it waits for it in vain."""
        file = self.folder / "exec" / "containerd" / "containerd.pid"
        for _ in range(100):
            with suppress(OSError, IndexError):
                stat = Path(f"/proc/{file.read_text().strip()}/stat").read_text()
                if stat.rpartition(")")[2].split()[0] != "Z":
                    time.sleep(0.05)
                    continue
            break
        file.unlink(missing_ok=True)


@contextmanager
def own_daemon(*images: str) -> Iterator[Daemon]:
    """A daemon that has these images of the machine's. Nothing of it is left afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="stepdown-dockerd-"))
    # In memory: ten thousand small files are quickly written and gone at once.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4g", "stepdown-dockerd", str(folder)], check=False)
    daemon = Daemon(folder)
    try:
        daemon.start()
        for image in images:
            daemon.load(image)
        yield daemon
    finally:
        daemon.end()
        for place in sorted((line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()), reverse=True):
            if place.startswith(str(folder)):
                subprocess.run(["umount", "-l", place], check=False)
        shutil.rmtree(folder, ignore_errors=True)
