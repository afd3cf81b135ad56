"""The official grading of patches, in real containers."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from stepdown.builder.errors import Technical
from stepdown.builder.records import Instance, Verdict
from stepdown.harnesses.containers.engine import Engine
from stepdown.harnesses.containers.labels import KIND, OWNER, owner, remove_leftovers
from stepdown.harnesses.swebench.grading import Grader
from stepdown.harnesses.swebench.limits import MIB, Limits
from tests.conftest import ROOT
from tests.swebench.conftest import read
from tests.swebench.repository import EVAL_SCRIPT, SOLUTION, SPANS, added, diff, instance

pytestmark = pytest.mark.docker

LIMITS = Limits(memory_mib=256, cpus=1.0, processes=64, file_mib=48, disk_mib=96)
WRONG = added("more.py", "more = 1\n")
ENDLESS = diff("spans.py", SPANS, f"import time\n\ntime.sleep(1000)\n{SPANS}")
NO_PATCH = SOLUTION.replace("merged", "joined")


def with_conftest(code: str) -> str:
    """The reference patch, and what runs before its tests."""
    return SOLUTION + diff("tests/conftest.py", "", code).replace("--- a/tests/conftest.py", "--- /dev/null").replace(
        "diff --git a/tests/conftest.py b/tests/conftest.py\n",
        "diff --git a/tests/conftest.py b/tests/conftest.py\nnew file mode 100644\n",
    )


class CountingDocker:
    """A Docker client that counts the containers that it is asked for. The daemon's own memory of events is short."""

    def __init__(self, docker: Any) -> None:
        self._docker, self._guard = docker, Lock()
        self.made = 0
        self.containers = SimpleNamespace(create=self._create)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._docker, name)

    def _create(self, **options: Any) -> Any:
        with self._guard:
            self.made += 1
        return self._docker.containers.create(**options)


class Bench:
    """A grader with a folder, an instance, and a count of the containers that its gradings had."""

    def __init__(self, docker: Any, instance: Instance, folder: Path) -> None:
        self.docker, self.instance, self.folder = docker, instance, folder
        self._counting = CountingDocker(docker)
        self.grader = self.new()

    def new(self, limits: Limits = LIMITS, seconds: float = 60, attempts: int = 1) -> Grader:
        self.grader = Grader(self.folder, Engine(lambda: self._counting), limits, seconds, attempts)
        return self.grader

    def containers(self) -> int:
        return self._counting.made

    def left(self) -> list[Any]:
        filters = {"label": [f"{OWNER}={owner()}", f"{KIND}=grading"]}
        return list(self.docker.containers.list(all=True, filters=filters, ignore_removed=True))

    def output(self) -> str:
        """What the tests of the last graded patch printed."""
        logs = (self.folder / "logs").glob("*/*/test_output.txt")
        return max(logs, key=lambda log: log.stat().st_mtime).read_text()


@pytest.fixture
def bench(docker: Any, image: str, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(docker, read(tmp_path, instance(image))[0], tmp_path / "kept")
    yield made
    assert made.left() == []


def test_the_official_grader_resolves_the_reference_patch_only(bench: Bench) -> None:
    right, wrong = (bench.grader.grade(bench.instance, patch) for patch in (SOLUTION, WRONG))
    assert (right.verdict, wrong.verdict) == (Verdict.PASS, Verdict.FAIL)
    assert right.evidence()["FAIL_TO_PASS"] == {"success": 1, "failure": []}
    assert wrong.evidence()["PASS_TO_PASS"] == {"success": 2, "failure": []}
    assert wrong.reason == "tests fail: FAIL_TO_PASS"
    assert right.usage.seconds > 0
    assert right.usage.memory is not None
    assert 0 < right.usage.memory <= LIMITS.memory_mib * MIB


def test_an_empty_patch_fails_without_a_container_and_one_without_a_change_with_one(bench: Bench) -> None:
    empty = bench.grader.grade(bench.instance, " \n")
    assert (empty.verdict, empty.reason, bench.containers()) == (Verdict.FAIL, "the patch is empty", 0)
    assert bench.grader.grade(bench.instance, "# no change\n").verdict is Verdict.FAIL
    assert bench.containers() == 1


def test_a_patch_that_does_not_apply_fails(bench: Bench) -> None:
    graded = bench.grader.grade(bench.instance, NO_PATCH)
    assert (graded.verdict, graded.reason, graded.report) == (Verdict.FAIL, "the patch does not apply", None)


def test_a_patch_is_graded_once_by_threads_and_later_graders(bench: Bench) -> None:
    with ThreadPoolExecutor(2) as threads:
        first = list(threads.map(lambda _: bench.grader.grade(bench.instance, SOLUTION), range(2)))
    assert [bench.new().grade(bench.instance, SOLUTION.encode())] * 2 == first
    assert bench.containers() == 2, "the second with a canary among the tests"
    bench.new(LIMITS.model_copy(update={"processes": 80})).grade(bench.instance, SOLUTION)
    assert bench.containers() == 4, "under other limits it is another question"


def test_a_patch_arrives_byte_by_byte(bench: Bench) -> None:
    text = added("data.txt", "DATA\n").encode().replace(b"DATA", b"\xff\xe9\r")
    check = "from pathlib import Path\n\nassert Path('data.txt').read_bytes() == b'\\xff\\xe9\\r\\n'\n"
    assert bench.grader.grade(bench.instance, with_conftest(check).encode() + text).verdict is Verdict.PASS


HOSTILE = """\
import os, socket, subprocess, time

done = []
for address in [("172.17.0.1", {port}), ("127.0.0.1", {port}), ("1.1.1.1", 53)]:
    try:
        socket.create_connection(address, timeout=2)
        done.append(f"REACHED {{address}}")
    except OSError:
        pass
for command in ["mount -t tmpfs none /mnt", "mount -o remount,rw /sys", "unshare -rm true", "mknod /disk b 8 0",
                "date -s 2001-01-01", "sysctl -w kernel.hostname=taken"]:
    if subprocess.run(command.split(), capture_output=True).returncode == 0:
        done.append(f"DONE {{command}}")
children = 0
try:
    while True:
        if os.fork() == 0:
            os.closerange(0, 100)
            time.sleep(1000)
        children += 1
except OSError:
    done.append(f"FORKED {{children}}")


def pytest_report_header():
    return done
"""


def test_tests_that_open_sockets_mount_and_fork_do_not_reach_the_host(bench: Bench) -> None:
    clock = time.time()
    with socket.create_server(("0.0.0.0", 0)) as server:
        server.settimeout(0.1)
        graded = bench.grader.grade(bench.instance, with_conftest(HOSTILE.format(port=server.getsockname()[1])))
        with pytest.raises(TimeoutError):
            server.accept()
    output = bench.output()
    assert "REACHED" not in output
    assert "DONE" not in output
    assert graded.verdict is Verdict.PASS, "what a patch tries beside its tests is no matter of the predicate"
    forked = int(output.split("FORKED ")[1].split()[0])
    assert 0 < forked < LIMITS.processes
    assert " /mnt " not in Path("/proc/self/mounts").read_text()
    assert abs(time.time() - clock) < 3600


def test_tests_that_write_a_gigabyte_fail_and_leave_nothing(bench: Bench) -> None:
    bench.grader.verify(bench.instance, SOLUTION)
    seeds = bench.containers()
    free = shutil.disk_usage(bench.docker.info()["DockerRootDir"]).free
    writes = "for number in range(30):\n    open(f'/{number}', 'wb').write(bytes(40 << 20))\n"
    graded = bench.grader.grade(bench.instance, with_conftest(writes + "import time\ntime.sleep(50)\n"))
    assert (graded.verdict, graded.over) == (Verdict.FAIL, "disk")
    assert bench.containers() - seeds == 2
    assert free - shutil.disk_usage(bench.docker.info()["DockerRootDir"]).free < 1024 * MIB


TALKATIVE = """\
import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    for _ in range(20):
        terminalreporter._tw._file.write("x" * (1 << 20) + chr(10))
"""


def test_tests_that_print_without_end_are_cut_short_in_memory_and_on_disk(bench: Bench) -> None:
    graded = bench.grader.grade(bench.instance, with_conftest(TALKATIVE))
    assert graded.verdict is Verdict.PASS, "the end of the output, which holds the results, is kept"
    assert 17 * MIB < len(bench.output()) < 18 * MIB


def test_tests_without_end_are_held_against_the_patch_only_where_the_seed_s_were_quick(bench: Bench) -> None:
    with pytest.raises(Technical, match="over their limit of time, and it is not known"):
        bench.new(seconds=1).grade(bench.instance, ENDLESS)
    assert bench.containers() == 2
    needed = bench.new(seconds=600).verify(bench.instance, SOLUTION, 1).usage.seconds
    bench.new(seconds=4 + 12 * needed)
    assert bench.grader.verify(bench.instance, SOLUTION, 1).verdict is Verdict.PASS
    before = bench.containers()
    graded = bench.grader.grade(bench.instance, ENDLESS)
    assert (graded.verdict, graded.over) == (Verdict.FAIL, "time")
    assert graded.reason == "the tests were twice over their limit of time"
    assert bench.containers() - before == 2


def test_tests_that_take_all_memory_are_told_from_tests_that_fail(bench: Bench) -> None:
    bench.grader.verify(bench.instance, SOLUTION)
    graded = bench.grader.grade(bench.instance, with_conftest("hoard = bytearray(1 << 30)\n"))
    assert (graded.verdict, graded.over) == (Verdict.FAIL, "memory")


def test_a_flaky_instance_has_no_seed(bench: Bench) -> None:
    wavering = with_conftest("import os\n\nassert os.urandom(1)[0] % 2\n")
    graded = bench.grader.verify(bench.instance, wavering, 40)
    assert (graded.verdict, graded.reason) == (Verdict.INCOMPLETE, "its grading is flaky")
    before = bench.containers()
    assert bench.new().verify(bench.instance, SOLUTION, 3) == graded
    assert bench.containers() == before


def test_a_seed_is_graded_afresh_as_often_as_asked(bench: Bench) -> None:
    bench.grader.grade(bench.instance, SOLUTION)
    before = bench.containers()
    assert bench.grader.verify(bench.instance, SOLUTION, 2).verdict is Verdict.PASS
    assert bench.containers() - before == 2, "the one with a canary is had already"


def test_a_verification_goes_on_after_an_interruption(bench: Bench) -> None:
    bench.grader.verify(bench.instance, SOLUTION, 2)
    before = bench.containers()
    assert bench.new().verify(bench.instance, SOLUTION, 3).verdict is Verdict.PASS
    assert bench.containers() - before == 1


def test_pip_does_not_wait_for_a_network_that_is_not_there(docker: Any, image: str, tmp_path: Path) -> None:
    script = EVAL_SCRIPT.replace("cd /testbed", "cd /testbed\necho retries $PIP_RETRIES", 1)
    bench = Bench(docker, read(tmp_path, instance(image, eval_script=script))[0], tmp_path / "kept")
    bench.grader.grade(bench.instance, WRONG)
    assert "retries 0" in bench.output().splitlines()


def test_a_missing_report_is_technical(bench: Bench) -> None:
    """A container that somebody else ends says nothing about the patch; nothing is kept, and it is graded again."""
    seen = Event()

    def end_it() -> None:
        while not seen.is_set():
            for container in bench.left():
                if container.status == "running" and container.exec_run("test -e /eval.sh").exit_code == 0:
                    container.kill()
                    seen.set()

    killer = Thread(target=end_it)
    killer.start()
    try:
        with pytest.raises(Technical, match="grading failed"):
            bench.grader.grade(bench.instance, ENDLESS)
    finally:
        seen.set()
        killer.join()
    assert bench.new(attempts=2).grade(bench.instance, SOLUTION).verdict is Verdict.PASS


def test_an_image_that_cannot_be_had_is_technical(bench: Bench, image: str, tmp_path: Path) -> None:
    nowhere = read(tmp_path, instance("127.0.0.1:9/nobody/nothing:none"))[0]
    with pytest.raises(Technical, match=r"the image .* is not on this machine"):
        bench.grader.grade(nowhere, SOLUTION)


GRADE = """
import sys
from pathlib import Path
from stepdown.harnesses.containers.engine import Engine
from stepdown.harnesses.swebench.grading import Grader
from stepdown.harnesses.swebench.instances import select
[instance] = select({"file": sys.argv[1]})
Grader(Path(sys.argv[2]), Engine()).grade(instance, Path(sys.argv[3]).read_bytes())
"""


def _until(happened: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 60
    while not (found := happened()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def test_what_a_killed_grading_leaves_is_removed_at_the_next_start(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "endless.diff").write_text(ENDLESS)
    paths = [str(tmp_path / "instances.jsonl"), str(bench.folder), str(tmp_path / "endless.diff")]
    process = subprocess.Popen([sys.executable, "-c", GRADE, *paths], cwd=ROOT)
    filters = {"label": f"{KIND}=grading"}

    def theirs() -> list[Any]:
        found = bench.docker.containers.list(filters=filters, ignore_removed=True)
        return [each for each in found if f":{process.pid}:" in each.labels[OWNER]]

    [container] = _until(theirs)
    _until(lambda: container.exec_run("test -e /eval.sh").exit_code == 0)
    remove_leftovers(bench.docker)
    assert theirs(), "what belongs to a live process is none"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert remove_leftovers(bench.docker).containers >= 1
    assert theirs() == []
    assert list((bench.folder / "gradings").rglob("*.json")) == []


def test_the_script_of_the_instance_is_run_as_it_is(docker: Any, image: str, tmp_path: Path) -> None:
    """Tests that give no result are a failure, whatever their output says of the environment."""
    said = EVAL_SCRIPT.replace("python3 -m pytest", "echo Error response from daemon # ")
    bench = Bench(docker, read(tmp_path, instance(image, eval_script=said))[0], tmp_path / "kept")
    graded = bench.grader.grade(bench.instance, SOLUTION)
    assert graded.verdict is Verdict.FAIL
    assert graded.reason == "the tests gave no result that the grader reads"
    assert graded.evidence()["infra_failure"] is True
