"""What several tests share: a run of the command in this process, and the marks that need something of the machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from click.testing import CliRunner

from stepdown.builder.cli.main import main
from tests import workshop
from tests.provider import Provider

# A property must not fail because a machine is busy: neither an example nor the making of examples is timed.
hypothesis.settings.register_profile("untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("untimed")

# Ray reads it once, when it is imported, and that may be for a doctest: a cluster of tests is at 127.0.0.1 alone.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"

ROOT = Path(__file__).parent.parent
REQUIRED = set(os.environ.get("STEPDOWN_REQUIRE", "").replace(",", " ").split())
"""Marks whose tests must run here: what they need being absent is then a failure, not a reason to skip."""


LABEL_STUDIO = ROOT / ".labelstudio"
"""An environment with Label Studio's server and SDK, which `make labelstudio` builds."""


def _no_docker() -> str | None:
    """Why containers can not be tested here: debootstrap makes their base image; some tests start a second daemon."""
    for program in ("docker", "dockerd", "debootstrap"):
        if shutil.which(program) is None:
            return f"{program} is not installed (.ci/run installs it)"
    if os.geteuid() != 0:
        return "the containers' base image can only be made by root"
    try:
        answers = subprocess.run(["docker", "info"], capture_output=True, timeout=30).returncode == 0
    except subprocess.TimeoutExpired:
        answers = False
    return None if answers else "no Docker daemon answers (.ci/run starts one)"


@cache
def _missing(mark: str) -> str | None:
    """Why tests of a mark can not run on this machine."""
    if mark == "docker":
        return _no_docker()
    if mark == "browser" and not Path("/usr/bin/chromium").exists():
        return "Debian's chromium is not installed"
    if mark == "opencode" and shutil.which("npm") is None:
        return "npm, which installs OpenCode, is not here (.ci/run installs it)"
    if mark == "cluster" and find_spec("ray") is None:
        return "Ray is not installed: pip install 'stepdown[cluster]'"
    if mark == "labelstudio" and not (LABEL_STUDIO / "bin" / "label-studio").exists():
        return "Label Studio is not there: make labelstudio"
    if mark == "agentdojo" and find_spec("agentdojo") is None:
        return "AgentDojo's package is not there: stepdown install agentdojo"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for mark in ("docker", "browser", "opencode", "cluster", "labelstudio", "agentdojo"):
            if item.get_closest_marker(mark) and mark not in REQUIRED and (reason := _missing(mark)):
                item.add_marker(pytest.mark.skip(reason=reason))


def _at_the_top() -> set[str]:
    return {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}


@pytest.fixture(scope="session", autouse=True)
def no_test_leaves_a_file_at_the_top() -> Iterator[None]:
    """What a command writes where it is started belongs into a test's folder: at the top it would be committed."""
    before = _at_the_top()
    yield
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").replace("/", "").split()
    left = {name for name in _at_the_top() - before if not any(fnmatch(name, pattern) for pattern in ignored)}
    assert not left


@dataclass(frozen=True)
class Result:
    """What the command came to."""

    code: int
    out: str
    err: str


class Shop:
    """A run of the workshop's workload in a folder of its own, by the command."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.run = folder, folder / "run"

    def write(self, config: Mapping[str, Any], name: str = "config.yaml") -> Path:
        path = self.folder / name
        path.write_text(workshop.as_yaml(config))
        return path

    def build(self, config: Mapping[str, Any]) -> Result:
        return stepdown("build", str(self.write(config)), "--run", str(self.run))

    def resume(self, *options: str) -> Result:
        return stepdown("resume", str(self.run), *options)

    def read(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.run / name).read_text().splitlines()]

    def labels(self) -> list[list[str]]:
        """The tier of every step, by instance."""
        found: dict[str, list[str]] = {}
        for row in self.read("question_bank.jsonl"):
            found.setdefault(row["instance_id"], []).append(row["target_tier"])
        return list(found.values())

    def trials(self) -> list[str]:
        """Every executed search trial, as `instance/step:model:verdict`."""
        return [
            f"{row['id'].split('/', 1)[1]}:{trial['model']}:{trial['verdict']}"
            for row in self.read("evidence.jsonl")
            for trial in row["trials"]
        ]

    def read_json(self, name: str) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.run / name).read_text())
        return data

    def manifest(self) -> dict[str, Any]:
        return self.read_json("manifest.json")

    def files(self) -> dict[str, bytes]:
        """The bytes of all that must not depend on how the run went."""
        names = ("question_bank.jsonl", "evidence.jsonl", "audit_queue.jsonl", "manifest.json")
        return {name: (self.run / name).read_bytes() for name in names}


def stepdown(*arguments: str) -> Result:
    """Run the command in this process. An exception that it did not turn into a message is raised here."""
    result = CliRunner().invoke(main, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Result(result.exit_code, result.stdout, result.stderr)


def started(*arguments: str) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "stepdown", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.fixture
def provider() -> Iterator[Callable[..., Provider]]:
    """Starts loopback providers that end with the test."""
    started: list[Provider] = []

    def start(abilities: Mapping[str, Any] = workshop.ABILITIES, **options: Any) -> Provider:
        one = Provider(abilities, **options)
        started.append(one.__enter__())
        return one

    yield start
    for one in started:
        one.__exit__(None, None, None)
