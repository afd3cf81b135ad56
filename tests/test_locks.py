"""One process works on a run at a time; a file system that can not keep two apart is named as what it is."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stepdown.builder.common.locks import LockHeld, take_lock
from stepdown.builder.errors import BadInput
from tests.conftest import Shop, stepdown
from tests.test_bad_input import refused

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
input()
"""


@pytest.fixture(params=["ENOLCK", "ENOSYS", "EOPNOTSUPP"])
def without_locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file system on which no file can be locked; what it says of it."""
    said = os.strerror(number := getattr(errno, request.param))

    def refuse(*_: object) -> None:
        raise OSError(number, said)

    monkeypatch.setattr(fcntl, "flock", refuse)
    return said


def test_a_file_system_without_locks_is_named_and_no_dead_process_is(shop: Shop, without_locks: str) -> None:
    shop.run.mkdir()
    (shop.run / "lock").write_text("4194304")  # the id of a process that is no more
    result = stepdown("build", "example", "--run", str(shop.run))
    refused(result, f"{shop.run}: this file system has no locks ({without_locks})", "local disk")
    assert "process 4194304" not in result.err


def test_a_run_that_another_process_holds_is_refused_with_its_id(shop: Shop) -> None:
    shop.run.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(shop.run / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        (shop.run / "lock").write_text(str(holder.pid))
        refused(stepdown("build", "example", "--run", str(shop.run)), f"(process {holder.pid})")
        holder.communicate("\n")
    assert stepdown("build", "example", "--run", str(shop.run)).code == 0


def test_a_lock_is_held_apart_from_one_that_can_not_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lock"
    with path.open("w") as first, path.open("w") as second:
        take_lock(first.fileno(), path)
        with pytest.raises(LockHeld):
            take_lock(second.fileno(), path)

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", fail)
    with path.open("w") as file, pytest.raises(BadInput, match="can not be locked: Input/output error"):
        take_lock(file.fileno(), path)
