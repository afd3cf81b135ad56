"""A Debian to make Docker images from, where no registry has one: by debootstrap, from this machine's own mirror.

python -m tests.debian python3-venv      # makes it unless it is there, and prints its name
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from stepdown.builder.records import digest


@contextmanager
def alone() -> Iterator[None]:
    """One process at a time makes images."""
    with open(Path(tempfile.gettempdir()) / "stepdown-test-images.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def base_image(packages: Sequence[str]) -> str:
    """The name of a minimal Debian with these packages. It is tagged by what it is made of, and found again by that."""
    suite = _suite()
    name = f"stepdown-test-base:{digest([suite, packages])[:12]}"
    with alone():
        if not _docker("images", "--quiet", name):
            with tempfile.TemporaryDirectory() as folder:
                _debootstrap(Path(folder), suite, packages)
                tar = subprocess.Popen(["tar", "-C", folder, "-c", *_EXCLUDED, "."], stdout=subprocess.PIPE)
                subprocess.run(["docker", "import", "-", name], stdin=tar.stdout, check=True, capture_output=True)
                assert tar.wait() == 0
    return name


_EXCLUDED = ("--exclude=./var/cache/apt/*", "--exclude=./var/lib/apt/lists/*", "--exclude=./usr/share/doc/*")


def _docker(*words: str) -> str:
    return subprocess.run(["docker", *words], check=True, capture_output=True, text=True).stdout


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


def _debootstrap(folder: Path, suite: str, packages: Sequence[str]) -> None:
    proxy = subprocess.run(["apt-config", "dump", "Acquire::http::Proxy"], capture_output=True, text=True).stdout
    found = re.search(r'"(\S+)"', proxy)
    done = subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", suite, str(folder), _mirror()],
        capture_output=True,
        text=True,
        env={**os.environ, **({"http_proxy": found[1]} if found else {})},
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


if __name__ == "__main__":
    print(base_image(sys.argv[1:]))
