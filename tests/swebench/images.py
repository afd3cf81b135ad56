"""Docker images of the tests' own: a Debian base made once per machine, and on it a repository with a bug in it.

Both are tagged by the digest of what they are made of, so that a second run of the tests finds them.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from typing import Any

from stepdown.builder.records import digest
from tests import debian

PACKAGES = ("git", "patch", "procps", "python3-pytest")


def base_image() -> str:
    """A minimal Debian with git and pytest."""
    return debian.base_image(PACKAGES)


def repository_image(docker: Any, files: Mapping[str, str]) -> str:
    """An image whose /testbed is a git repository of these files, committed."""
    base = base_image()
    name = f"stepdown-test-repository:{digest([base, files, _COMMIT])[:12]}"
    with debian.alone():
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
