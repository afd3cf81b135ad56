"""A program that forks, hangs, floods or ignores comes to a verdict or a technical trial, and nothing of it is left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.errors import BadInput, Technical
from stepdown.builder.records import Instance, Prefix, Response, Ruling, Verdict
from stepdown.harnesses.agent import process
from stepdown.harnesses.agent.harness import AgentHarness
from stepdown.harnesses.containers.labels import owner
from tests.agents.orders import PROGRAMS
from tests.conftest import ROOT

LIMITS = {"seconds": 3, "processes": 16, "memory_mib": 256, "file_mib": 64, "disk_mib": 48, "steps": 6, "side_calls": 5}


def made(folder: Path, habit: str, **options: Any) -> tuple[AgentHarness, Instance]:
    task = {"id": "one", "prompt": habit, "grader": {"command": "true"}}
    (folder / "tasks.jsonl").write_text(json.dumps(task) + "\n")
    settings = {"command": "{python} {program}/unruly.py {prompt}", "program": "unruly.py", "limits": LIMITS}
    harness = AgentHarness(**{"sandbox": "process", **settings, **options})
    (instance,) = harness.instances({"file": str(folder / "tasks.jsonl"), "assets": str(PROGRAMS)})
    return harness, instance


def played(harness: AgentHarness, instance: Instance) -> Ruling:
    """The program, answered with a few words until it ends."""
    with harness.open(instance) as episode:
        episode.prefix()
        while episode.advance(Response("go on")):
            episode.prefix()
        return episode.verdict()


def processes(folder: Path) -> list[str]:
    """Commands that still run with something of this folder in their environment or their words."""
    found = []
    for one in Path("/proc").iterdir():
        if one.name.isdigit() and int(one.name) != os.getpid():
            try:
                command, environment = (one / "cmdline").read_bytes(), (one / "environ").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in command + environment:
                found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return found


@pytest.fixture(autouse=True)
def sandboxes(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the sandboxes are; after each test nothing is there, and nothing runs."""
    folder = tmp_path_factory.mktemp("sandboxes")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert processes(folder) == []
    assert [*folder.iterdir()] == []


@pytest.mark.parametrize(
    ("habit", "verdict", "reason"),
    [
        ("orphans", Verdict.PASS, ""),
        ("forks", Verdict.INCOMPLETE, "it ran more than 16 processes"),
        ("hangs", Verdict.INCOMPLETE, "it neither asked nor ended within 3 s"),
        ("floods", Verdict.INCOMPLETE, "it neither asked nor ended within 3 s"),
        ("fills", Verdict.PASS, ""),  # the kernel ends it at the longest file there may be, and the grader looks
        ("fills_with_many", Verdict.INCOMPLETE, "its files took more than 48 MiB"),
        ("eats", Verdict.INCOMPLETE, "its processes took more than 256 MiB of memory"),
        ("ignores", Verdict.INCOMPLETE, "it asked for more than 6 steps"),
        ("closes_its_output", Verdict.INCOMPLETE, "it neither asked nor ended within 3 s"),
        ("crashes", Verdict.PASS, ""),
        ("asks_as_it_ends", Verdict.PASS, ""),
        ("locks_its_files", Verdict.PASS, ""),
    ],
)
def test_an_unruly_program_comes_to_a_verdict(tmp_path: Path, habit: str, verdict: Verdict, reason: str) -> None:
    ruling = played(*made(tmp_path, habit))
    assert ruling.verdict is verdict
    assert reason in ruling.reason


def test_a_program_that_asks_nothing_is_technical_with_what_it_said(tmp_path: Path) -> None:
    harness, instance = made(tmp_path, "asks_nothing", command="sh -c 'echo no model here >&2; exit 3'")
    with harness.open(instance) as episode, pytest.raises(Technical) as broken:
        episode.prefix()
    assert broken.value.reason == "the program ended without a request: exit code 3: no model here"


def test_a_program_that_is_not_there_is_technical(tmp_path: Path) -> None:
    harness, instance = made(tmp_path, "x", command="no-such-agent {prompt}")
    with harness.open(instance) as episode, pytest.raises(Technical, match="no-such-agent: No such file"):
        episode.prefix()


def test_a_program_whose_requests_are_refused_is_told_of(tmp_path: Path) -> None:
    harness, instance = made(tmp_path, "x", environment={"OPENAI_API_KEY": "another"})
    with harness.open(instance) as episode, pytest.raises(Technical, match="without this episode's key"):
        episode.prefix()


def test_side_calls_are_bounded_and_no_steps(tmp_path: Path) -> None:
    rule = {"pattern": "^a title$", "answer": "Title"}
    ruling = played(*made(tmp_path, "talks_on_the_side", side_calls=rule))
    assert (ruling.verdict, ruling.reason) == (Verdict.INCOMPLETE, "it made more than 5 side calls")


def test_side_calls_are_answered_by_the_model_that_is_named(tmp_path: Path) -> None:
    rule = {"pattern": "^a title$", "model": "small"}
    harness, instance = made(tmp_path, "talks_on_the_side", side_calls=rule)
    assert harness.side_models == ("small",)
    asked = []

    def ask(model: str, prefix: Prefix) -> Response:
        asked.append((model, prefix.messages[0]["content"]))
        return Response("Title")

    with harness.open(instance) as episode:
        episode.answer_beside(ask)
        episode.prefix()
        assert not episode.advance(Response("go on"))
    assert asked == [("small", "a title")] * 5


def test_nothing_outlives_stepdown_where_it_is_killed(tmp_path: Path, sandboxes: Path) -> None:
    """No handler runs after kill -9: the supervisor notices by itself."""
    task = {"id": "one", "prompt": "hangs", "grader": {"command": "true"}}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(task) + "\n")
    code = f"""
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from tests.agents.test_unruly_programs import made
from stepdown.builder.records import Response
harness, instance = made(Path({str(tmp_path)!r}), "hangs", limits={{"seconds": 60}})
with harness.open(instance) as episode:
    episode.prefix()
    import threading
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
    episode.advance(Response("go on"))
"""
    environment = {**os.environ, "TMPDIR": str(sandboxes)}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    deadline = time.monotonic() + 30
    while (processes(sandboxes) or any(sandboxes.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.05)


def test_stepdowns_own_environment_is_not_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "secret-of-a-provider")
    harness, instance = made(tmp_path, "x", command="sh -c 'env; exit 1'")
    with harness.open(instance) as episode, pytest.raises(Technical):
        episode.prefix()
    harness, instance = made(tmp_path, "x", command="sh -c 'env | grep -c OPENROUTER'")
    with harness.open(instance) as episode, pytest.raises(Technical, match="exit code 1: 0"):
        episode.prefix()


@pytest.mark.skipif(shutil.which("faketime") is None, reason="faketime is not installed")
def test_each_episode_begins_at_the_moment_that_is_asked_for(tmp_path: Path) -> None:
    for _ in range(2):
        harness, instance = made(tmp_path, "x", clock="2026-01-15T09:00", command="sh -c 'date +%F_%H; exit 1'")
        with harness.open(instance) as episode, pytest.raises(Technical, match=r"2026-01-15_09$"):
            episode.prefix()


def test_a_moment_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"options\.clock: must be a date and a time"):
        made(tmp_path, "x", clock="tomorrow")


def test_the_sandbox_of_a_process_that_was_killed_is_removed_at_the_next_start(tmp_path: Path, sandboxes: Path) -> None:
    for name, whose in (("stepdown-agent-dead", owner().rpartition(":")[0] + ":1"), ("stepdown-agent-live", owner())):
        (sandboxes / name).mkdir()
        (sandboxes / name / "owner").write_text(whose)
    process._remove_leftovers.cache_clear()
    assert played(*made(tmp_path, "crashes")).verdict is Verdict.PASS
    assert [sandbox.name for sandbox in sandboxes.iterdir()] == ["stepdown-agent-live"]
    shutil.rmtree(sandboxes / "stepdown-agent-live")
