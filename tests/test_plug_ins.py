"""Workloads are plug-ins: found by name in whatever package is installed, and asked for what is their own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stepdown.builder.errors import BadInput
from stepdown.builder.estimate.arithmetic import PAPER_LABELS
from stepdown.builder.inspect.doctor import examine
from stepdown.harnesses.base import NOT_STATED, Harness
from stepdown.harnesses.registry import facts_of, harness_class, installed
from stepdown.releases.licenses import license_of
from tests.conftest import ROOT, Shop, stepdown

OURS = ["agent", "agentdojo", "bfcl", "mtrag", "pinchbench", "planted", "qa", "qmsum", "swebench"]

PLUG_IN = """
from contextlib import contextmanager
from stepdown.builder.records import Instance, Prefix, Response, Ruling, Verdict
from stepdown.harnesses.base import Episode, Harness, Terms, package


class Guess(Episode):
    def __init__(self, word):
        self.word, self.said = word, None

    def prefix(self):
        return Prefix.start([{"role": "user", "content": f"Say {self.word}."}])

    def advance(self, response):
        self.said = response.content
        return False

    def verdict(self):
        return Ruling(Verdict.PASS) if self.said == self.word else Ruling(Verdict.FAIL, "another word")


class Echo(Harness):
    name, version, multi_step = "echo", "1", False
    terms = Terms("CC0-1.0", "Words.")
    known_limits = ("Words are easy.",)

    @classmethod
    def requirements(cls):
        yield package("no-such-package", "pip install no-such-package")

    def instances(self, source):
        for word in source["words"]:
            yield Instance(self.name, word, {})

    @contextmanager
    def open(self, instance, at=None):
        yield Guess(instance.id)

    def answer(self, name, instance, prefix, sample):
        return Response(instance.id)
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, package: str = "echoes") -> None:
    """A distribution of somebody else's in a folder that is on the path, with one workload."""
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[stepdown.harnesses]\n{name} = {value}\n")
    monkeypatch.syspath_prepend(str(folder))


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site"
    install(folder, monkeypatch, "echo", "echoing_workload:Echo")
    (folder / "echoing_workload.py").write_text(PLUG_IN)
    monkeypatch.delitem(sys.modules, "echoing_workload", raising=False)


def config(harness: str) -> dict[str, object]:
    pool = {
        "version": "1",
        "tiers": [
            {"name": tier, "id": number, "models": [{"name": tier, "model": f"workload/{model}"}]}
            for number, (tier, model) in enumerate({"low": "any", "high": "reference"}.items())
        ],
    }
    workload = {"harness": harness, "source": {"words": ["one", "two"]}, "seeds": {"source": "reference"}}
    return {"protocol": {"pool": pool, "workloads": [workload]}, "operation": {"workers": 1}}


def test_those_that_come_with_stepdown_are_installed_and_sound() -> None:
    assert [name for name in installed() if installed()[name][0].startswith("stepdown.")] == OURS
    for name in OURS:
        found = harness_class(name)
        assert issubclass(found, Harness)
        assert found.name == name
        assert found.expected_labels is None or len(found.expected_labels) == len(PAPER_LABELS)


@pytest.mark.usefixtures("echo")
def test_a_package_of_somebody_else_s_brings_a_workload_that_is_named_and_labelled_like_any(shop: Shop) -> None:
    done = shop.build(config("echo"))
    assert (done.code, "its code runs here" in done.err) == (0, False)
    assert {row["id"]: row["target_tier"] for row in shop.read("question_bank.jsonl")} == {
        "echo/one/1": "low",
        "echo/two/1": "low",
    }


@pytest.mark.usefixtures("echo")
def test_what_is_a_plug_in_s_own_is_asked_of_it() -> None:
    assert license_of("echo").license == "CC0-1.0"
    assert facts_of("echo").known_limits == ("Words are easy.",)
    said = {check.part: (check.ok, check.needed, check.detail) for check in examine(None)}
    missing = "not installed: pip install no-such-package (workload echo)"
    assert said["no-such-package"] == (False, False, missing)


def test_of_a_workload_that_is_not_installed_nothing_is_claimed() -> None:
    assert tuple(license_of("nobody's").model_dump().values()) == tuple(NOT_STATED)
    assert facts_of("nobody's").known_limits == ()
    assert facts_of("nobody's").step_role({"role": "assistant", "content": "x"}) is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (
            "qmsumm",
            r"no such workload 'qmsumm': did you mean 'qmsum'\? installed are agent, agentdojo, .*; or `module:Class`",
        ),
        ("zzzzzz", r"no such workload 'zzzzzz': installed are agent, agentdojo, bfcl"),
        (":Class", r"':Class' is no workload: `module:Class` is needed"),
    ],
)
def test_an_unknown_name_is_told_which_there_are(name: str, problem: str, shop: Shop) -> None:
    done = shop.build(config(name))
    assert done.code == 2
    assert re.search(problem, done.err)


def test_two_packages_that_claim_one_name_stop_the_use_of_that_name_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "qa", "elsewhere:QA")
    with pytest.raises(BadInput, match="two packages install a workload 'qa'"):
        harness_class("qa")
    assert harness_class("planted").name == "planted"
    told = stepdown("doctor")
    assert (told.code, "workload qa: two packages install a workload 'qa'" in told.out) == (0, True)


def test_a_broken_plug_in_is_told_of_and_stands_in_nobody_s_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "ruin", "no_such_module_here:Ruin")
    told = stepdown("doctor")
    assert told.code == 0
    assert "none workload ruin: 'ruin' can not be loaded" in told.out


def test_asking_a_workload_s_class_imports_nothing_dear() -> None:
    dear = ["bfcl_eval", "datasets", "docker", "litellm", "minisweagent", "pandas", "swebench"]
    code = (
        "import json, sys\n"
        "from stepdown.harnesses.registry import harness_class, installed\n"
        "for name in installed():\n"
        "    found = harness_class(name)\n"
        "    found.terms, found.known_limits, found.expected_labels, found.recordings\n"
        "    found.step_role({'role': 'assistant', 'content': 'x'})\n"
        f"print(json.dumps(sorted({{*{dear}}} & {{*sys.modules}})))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


WORKLOADS = re.compile(r"agentdojo|bfcl|swe-?bench|mini-?swe|mtrag|qmsum|pinchbench|planted", re.IGNORECASE)
PACKAGES = ("builder", "judges", "audit", "releases", "routing", "scoring", "reports")


def test_no_code_outside_the_harnesses_names_a_workload() -> None:
    """What is a workload's own is asked of it; an example of a workload is `made`, or `qa`."""
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.suffix in (".py", ".html")]
    files += (ROOT / "stepdown").glob("*.py")
    assert len(files) > 100
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in files
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if WORKLOADS.search(line)
    ]
    assert not found, "\n".join(found)
