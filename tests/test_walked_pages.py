"""The tutorial, and the page of each use of stepdown: every command in turn, in an empty folder.

The tutorial's small models are played here by a server on loopback: see test_quickstart.py for the models themselves.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stepdown.builder.config.validation import yaml_value
from tests.audit.reviewing import review, tight
from tests.conftest import stepdown
from tests.documented import WALKED
from tests.provider import Answer, Provider, Request
from tests.walking import environment, walk


@pytest.fixture(autouse=True)
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Somebody who works in an empty folder."""
    monkeypatch.setattr("sys.path", list(sys.path))
    before = Path.cwd()
    os.chdir(tmp_path)
    yield
    os.chdir(before)


def test_each_page_is_walked_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert len(WALKED) > 3
    assert [page for page in WALKED if f'"{page}"' not in text] == []


def nothing() -> str:
    """What a test leaves out: packages are installed already, and pages that are served have tests of their own."""
    return ""


def reviewed(run: str, reviewer: str) -> Callable[[], str]:
    """Somebody answers every step on the review page."""

    def answer() -> str:
        review(Path(run), reviewer, tight)
        return ""

    return answer


SMALL = ("smollm2-135m", "gemma-3-270m")


def shy(request: Request) -> Answer:
    """A model that looks at the first file that it is told of, writes one word into it, and says that it is done."""
    tools_said = [message["content"] for message in request["messages"] if message["role"] == "tool"]
    (name,) = re.findall(r"\w+\.\w+", request["messages"][1]["content"])[-1:]
    if not tools_said:
        return Answer("", (("read_file", json.dumps({"path": name})),))
    if len(tools_said) == 1 and "written" not in tools_said[0]:
        return Answer("", (("write_file", json.dumps({"path": name, "text": "seen"})),))
    return Answer("Done.")


def test_own_tasks_come_to_a_scored_release() -> None:
    with Provider(dict.fromkeys(SMALL, shy)) as provider:

        def init() -> str:
            assert stepdown("init", "first", "--kind", "agent", "--sample").code == 0
            pool = yaml_value(Path("first/pool.yaml").read_text())
            small = [model for tier in pool["tiers"] for model in tier["models"] if model["name"] in SMALL]
            for model in small:
                model |= {"model": f"openai/{model['name']}", "actions": "tools"}
                del model["weights"]
            Path("first/pool.yaml").write_text(json.dumps(pool))
            with Path("first/run.yaml").open("a") as file:
                file.write(f"  endpoints: {{default: {{api_base: {provider.url!r}}}}}\n")
            return ""

        walk(
            "docs/tutorial.md",
            {
                "pip install 'stepdown[audit,release]'": nothing,
                "stepdown init first --kind agent --sample --install": init,
                "stepdown view runs/first": nothing,
                "stepdown audit serve runs/first --reviewers ana": reviewed("runs/first", "ana"),
            },
            other_figures=True,
        )
    tiers = {row["id"]: row["target_tier"] for row in _rows("releases/first/question_bank.jsonl")}
    assert tiers["agent/errors/1"] == "low", "whoever reads the file may go on"
    assert tiers["agent/errors/2"] == "high", "what is written must be right"


def test_a_changed_pool_comes_to_a_new_version() -> None:
    walk("docs/uses/changed-pool.md", {})
    old, new = (_rows(f"runs/{run}/question_bank.jsonl") for run in ("may", "june"))
    moved = [(was["target_tier"], now["target_tier"]) for was, now in zip(old, new, strict=True) if was != now]
    assert moved == [("high", "mid")] * 3
    spent = json.loads(Path("runs/june/spend.json").read_text())
    assert (spent["calls"], spent["calls_paid_by_earlier_runs"]) == (3, 26)


def test_samples_are_audited_and_released() -> None:
    def taken_back() -> str:
        with Path("steps.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        with Path("steps.csv").open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, rows[0])
            table.writeheader()
            table.writerows(row | {"verdict": "tight"} for row in rows)
        done = stepdown("audit", "import", "runs/may", "steps.csv", "--reviewer", "ana")
        assert done.code == 0, done.err
        return done.out + done.err

    walk(
        "docs/uses/audit-samples.md",
        {
            "stepdown audit import runs/may steps.csv --reviewer ana": taken_back,
            "stepdown audit serve runs/may --reviewers bo": reviewed("runs/may", "bo"),
        },
    )


@pytest.mark.local
def test_an_interrupted_search_goes_on() -> None:
    def init() -> str:
        assert stepdown("init", "--kind", "qa", "--sample").code == 0
        questions = Path("questions.jsonl")
        questions.write_text("".join(questions.read_text().splitlines(keepends=True)[:6]))
        return ""

    walk(
        "docs/uses/interrupted.md",
        {
            "stepdown init --kind qa --sample --install": init,
            "stepdown build run.yaml --run runs/first": killed_while_it_works,
        },
        other_figures=True,
    )
    assert len(_rows("runs/first/question_bank.jsonl")) == 6
    assert len(_rows("runs/little/question_bank.jsonl")) == 13


def killed_while_it_works() -> str:
    """The build, killed as soon as it has paid for something."""
    words = [sys.executable, "-m", "stepdown", "build", "run.yaml", "--run", "runs/first"]
    process = subprocess.Popen(words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not re.search(r"paid: [1-9]", stepdown("status", "runs/first").out):
        assert process.poll() is None, "it ended before it was stopped"
        time.sleep(0.1)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert not Path("runs/first/question_bank.jsonl").exists()
    return ""


def _rows(path: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
