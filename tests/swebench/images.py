"""Docker images of the tests' own: a Debian base made once per machine, and on it a repository with a bug in it.

Both are tagged by the digest of what they are made of, so that a second run of the tests finds them.
"""

from __future__ import annotations

import fcntl
import io
import os
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stepdown.builder.records import digest

PACKAGES = ("git", "patch", "procps", "python3-pytest")


@contextmanager
def _alone() -> Iterator[None]:
    """One process at a time makes images."""
    with open(Path(tempfile.gettempdir()) / "stepdown-test-images.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def base_image(docker: Any) -> str:
    """A minimal Debian with git and pytest, from the mirror that this machine's apt uses."""
    suite = _suite()
    name = f"stepdown-test-base:{digest([suite, PACKAGES])[:12]}"
    with _alone():
        if not docker.images.list(name):
            with tempfile.TemporaryDirectory() as folder:
                _debootstrap(Path(folder), suite)
                tar = subprocess.Popen(["tar", "-C", folder, "-c", *_EXCLUDED, "."], stdout=subprocess.PIPE)
                subprocess.run(["docker", "import", "-", name], stdin=tar.stdout, check=True, capture_output=True)
                assert tar.wait() == 0
    return name


_EXCLUDED = ("--exclude=./var/cache/apt/*", "--exclude=./var/lib/apt/lists/*", "--exclude=./usr/share/doc/*")


def _suite() -> str:
    release = Path("/etc/os-release").read_text()
    found = re.search(r"^VERSION_CODENAME=(\w+)$", release, re.MULTILINE)
    assert found, "the base image is made from the Debian that this machine runs"
    return found[1]


def _mirror() -> str:
    """The first package mirror that apt is configured with."""
    for path in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]:
        text = path.read_text() if path.is_file() else ""
        if found := re.search(r"^(?:URIs:\s*|deb\s+(?:\[[^]]*]\s+)?)(https?://\S+)", text, re.MULTILINE):
            return found[1]
    raise AssertionError("apt has no mirror")


def _debootstrap(folder: Path, suite: str) -> None:
    proxy = subprocess.run(["apt-config", "dump", "Acquire::http::Proxy"], capture_output=True, text=True).stdout
    found = re.search(r'"(\S+)"', proxy)
    done = subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", suite, str(folder), _mirror()],
        capture_output=True,
        text=True,
        env={**os.environ, **({"http_proxy": found[1]} if found else {})},
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def repository_image(docker: Any, files: Mapping[str, str]) -> str:
    """An image whose /testbed is a git repository of these files, committed."""
    base = base_image(docker)
    name = f"stepdown-test-repository:{digest([base, files, _COMMIT])[:12]}"
    with _alone():
        if not docker.images.list(name):
            container = docker.containers.create(base, ["sleep", "600"], network_mode="none")
            try:
                container.put_archive("/", _tree(files))
                container.start()
                done = container.exec_run(["bash", "-ec", _COMMIT], workdir="/testbed")
                assert done.exit_code == 0, done.output
                container.commit(*name.split(":"), conf={"WorkingDir": "/testbed"})
            finally:
                container.remove(force=True)
    return name


_COMMIT = """
git config --global user.email tests@example.invalid
git config --global user.name tests
git config --global init.defaultBranch main
export GIT_AUTHOR_DATE=2024-01-01T00:00:00Z GIT_COMMITTER_DATE=2024-01-01T00:00:00Z
git init -q
git add README.md
git commit -q -m "Begin"
git add -A
git commit -q -m "Merge spans"
"""


def _tree(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(f"testbed/{path}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()
