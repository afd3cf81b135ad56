"""The daemon is killed, and the builder with it: nothing is lost but time, and nothing is left over."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.errors import Lost
from stepdown.builder.records import Verdict
from stepdown.harnesses.containers.engine import Engine
from stepdown.harnesses.containers.labels import KIND, OWNER, labels, unique_name
from stepdown.harnesses.swebench.grading import Grader
from stepdown.harnesses.swebench.limits import INIT, Limits
from stepdown.harnesses.swebench.sandbox import Sandbox
from tests.conftest import ROOT, Shop, started
from tests.provider import spawned
from tests.swebench import abilities, repository
from tests.swebench.conftest import read, written
from tests.swebench.daemon import Daemon, own_daemon

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def daemon(image: str) -> Iterator[Daemon]:
    with own_daemon(image) as one:
        yield one


def ours(docker: Any) -> list[str]:
    """What there is of containers and images of ours, by kind."""
    found = [each["Labels"][KIND] for each in docker.api.containers(all=True, filters={"label": OWNER})]
    return sorted(found + [each["Labels"][KIND] for each in docker.api.images(all=True, filters={"label": OWNER})])


def test_a_daemon_that_dies_during_a_command_or_between_two_is_lost(daemon: Daemon, image: str) -> None:
    import docker as sdk

    engine = Engine(lambda: sdk.DockerClient(daemon.address))
    boxes = [Sandbox(engine, image, image, Limits(), "/testbed", {}) for _ in range(2)]
    killer = threading.Timer(1.0, daemon.kill)
    killer.start()
    with pytest.raises(Lost):
        boxes[0].run("echo begun; sleep 5; echo done", 20)
    killer.join()
    with pytest.raises(Lost):
        boxes[1].run("echo alive", 20)
    for box in boxes:
        box.close()
    daemon.start()
    # What could not be removed while the daemon was away is removed now that it is back.
    engine.tidy()
    with daemon.client() as docker:
        assert docker.api.containers(all=True) == []


def test_a_daemon_that_dies_during_a_grading_says_nothing_about_the_patch(
    daemon: Daemon, image: str, tmp_path: Path
) -> None:
    import docker as sdk

    [instance] = read(tmp_path, repository.instance(image))
    engine = Engine(lambda: sdk.DockerClient(daemon.address))
    grader = Grader(tmp_path / "kept", engine, attempts=1)
    begun = tmp_path / "kept" / "running"
    slow = repository.SPANS.replace(repository.WRONG, repository.RIGHT) + "\n\nimport time\n\ntime.sleep(3)\n"
    patch = repository.diff("spans.py", repository.SPANS, slow)

    def kill() -> None:
        deadline = time.monotonic() + 60
        while not list(begun.glob("*/patch/*/eval.sh")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)
        daemon.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(Lost, match="grading failed"):
        grader.grade(instance, patch)
    killer.join()
    assert not (tmp_path / "kept" / "gradings").exists()
    daemon.start()
    assert grader.grade(instance, patch).verdict is Verdict.PASS
    engine.tidy()
    with daemon.client() as docker:
        assert docker.api.containers(all=True) == []


LEAVES = """
import sys, time
from stepdown.harnesses.containers.engine import Engine
from stepdown.harnesses.swebench.limits import Limits
from stepdown.harnesses.swebench.sandbox import Sandbox
from stepdown.harnesses.swebench.snapshots import Snapshots

engine, image, held = Engine(), sys.argv[1], []
box = Sandbox(engine, image, image, Limits(), "/testbed", {})
for number in range(3):
    box.run(f"echo {number} > made", 20)
    held.append(Snapshots(engine, 1000).take(box))
    box = Sandbox(engine, held[-1].image, image, Limits(), "/testbed", {})
print("ready", flush=True)
time.sleep(600)
"""


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_has_is_not(daemon: Daemon, image: str) -> None:
    environment = {**os.environ, "DOCKER_HOST": daemon.address}
    processes = []
    for _ in range(2):
        command = [sys.executable, "-c", LEAVES, image]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        processes.append(process)
    try:
        with daemon.client() as docker:
            assert ours(docker) == 8 * ["episode"] + 6 * ["snapshot"]
            _end(processes[0])
            engine = Engine(lambda: docker)
            engine.tidy()
            assert ours(docker) == 4 * ["episode"] + 3 * ["snapshot"]
            foreign = docker.containers.create(
                image, list(INIT), name=unique_name("episode"), labels={**labels("episode"), OWNER: "else:where:1:2:3"}
            )
            _end(processes[1])
            Engine(lambda: docker).tidy()
            assert [each["Id"] for each in docker.api.containers(all=True)] == [foreign.id]
            foreign.remove()
            assert ours(docker) == []
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_after_kill_9_of_builder_and_daemon_a_resume_comes_to_the_same_labels_and_leaves_nothing(
    shop: Shop, tmp_path: Path, daemon: Daemon, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path / "instances.jsonl", repository.instance(image))
    log = tmp_path / "requests.jsonl"
    with spawned("tests.swebench.abilities:SHORT_ABILITIES", log) as url:
        monkeypatch.setenv("DOCKER_HOST", daemon.address)
        config = shop.write(abilities.config(url, str(file)))
        builder = started("build", str(config), "--run", str(shop.run))
        _wait_for(lambda: _asked(log) >= 6, builder)
        daemon.kill()
        daemon.start()
        # The trial that lost its environment is executed again; no model is asked twice for that.
        _wait_for(lambda: _asked(log) >= 9, builder)
        daemon.kill()
        builder.kill()
        builder.communicate()
        daemon.start()
        with daemon.client() as docker:
            assert ours(docker), "nothing was under way"
            assert shop.resume().code == 0
            _wait_until(lambda: ours(docker) == [])
    assert shop.labels() == [abilities.SHORT_LABELS]
    asked = Counter(log.read_text().splitlines())
    assert sum(asked.values()) - len(asked) <= 1, "more than the call in flight was paid again"


def _asked(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


def _wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _wait_for(reached: Any, process: Any) -> None:
    deadline = time.monotonic() + 120
    while not reached():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
