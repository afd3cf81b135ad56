"""The dynamic track on the repository with a bug: three policies over six tasks, judged by the official grader."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.config.pool import Pool
from stepdown.routing.live.bill import bills
from stepdown.routing.live.export import write_twinrouterbench
from stepdown.routing.live.records import LiveTask
from stepdown.routing.live.store import LiveStore
from stepdown.routing.policies.contract import Choice, View
from tests.conftest import ROOT
from tests.provider import Provider
from tests.swebench import abilities, repository
from tests.swebench.conftest import docker as docker
from tests.swebench.conftest import image as image
from tests.swebench.conftest import written

pytestmark = pytest.mark.docker

TASKS = 6
PRICES = {"looker": (0.26, 0.5), "editor": (0.3, 2.0), "master": (5.0, 25.0)}
PROMPT, COMPLETION = 11, 3
"""Tokens that the scripted provider reports of every call."""
MOST = 6


class Gold:
    """The labels that the abilities imply, by step."""

    name, version = "gold", "1"

    def choose(self, view: View) -> Choice:
        labels = abilities.SHORT_LABELS
        return Choice(labels[view.step - 1] if view.step <= len(labels) else view.tiers[-1])


def _config(folder: Path, url: str, image: str) -> Path:
    rows = [
        repository.instance(image, f"spans__spans-{n}", problem_statement=f"{repository.PROBLEM}\nReported as {n}.")
        for n in range(1, TASKS + 1)
    ]
    config = abilities.config(url, str(written(folder / "instances.jsonl", *rows)), workers=2)
    for tier in config["protocol"]["pool"]["tiers"]:
        for model in tier["models"]:
            model["price"] = dict(zip(("input", "output"), PRICES[model["name"]], strict=True))
    file = folder / "live.json"
    file.write_text(json.dumps(config))
    return file


def _command(config: Path, out: Path) -> list[str]:
    policies = ("always:high", "tests.routing.test_live_swebench:Gold", "always:mid")
    named = [part for policy in policies for part in ("--policy", policy)]
    base = [sys.executable, "-m", "stepdown", "live", str(config), *named, "--out", str(out)]
    return [*base, "--most-calls", str(MOST)]


def _tasks(out: Path) -> list[LiveTask]:
    store = LiveStore(out, "ro")
    try:
        return list(store.tasks())
    finally:
        store.close()


def _steps_kept(out: Path) -> int:
    try:
        store = LiveStore(out, "ro")
    except Exception:
        return 0
    try:
        return sum(len(store.steps("always:high", "swebench", f"spans__spans-{n}")) for n in range(1, TASKS + 1))
    except Exception:
        return 0
    finally:
        store.close()


def test_three_policies_over_six_tasks_killed_once_have_the_bills_of_a_calculation_by_hand(
    tmp_path: Path, docker: Any, image: str
) -> None:
    out = tmp_path / "live"
    with Provider(abilities.SHORT_ABILITIES) as provider:
        command = _command(_config(tmp_path, provider.url, image), out)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        while process.poll() is None and _steps_kept(out) < 5:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        before = {(task.policy, task.instance): task for task in _tasks(out)}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert len(provider.repeated()) <= 2, "nothing is asked again but what was in flight when it was killed"
    tasks = _tasks(out)
    assert all(before[task.policy, task.instance] == task for task in tasks if (task.policy, task.instance) in before)

    # By hand: the strong model and the labels resolve every task in four calls; the middle one never submits.
    made = {
        "always:high": ["master"] * 4,
        "gold": ["looker", "editor", "master", "master"],
        "always:mid": ["editor"] * MOST,
    }
    found = {one.policy: one for one in bills(tasks, list(made), 0.60)}
    for policy, models in made.items():
        spent = sum((PROMPT * PRICES[name][0] + COMPLETION * PRICES[name][1]) / 1e6 for name in models) * TASKS
        assert [[step.model for step in task.steps] for task in tasks if task.policy == policy] == [models] * TASKS
        assert found[policy].usd == pytest.approx(spent)
        resolved = 0 if policy == "always:mid" else TASKS
        assert (found[policy].resolved, found[policy].tasks, found[policy].technical) == (resolved, TASKS, 0)
        assert found[policy].bill.value == pytest.approx(spent + 0.60 * (TASKS - resolved))
    lead = found["gold"].over_first
    assert lead is not None
    assert lead.value == pytest.approx(found["gold"].usd - found["always:high"].usd)
    assert lead.low is None, "all tasks are of one repository: there is nothing to draw from"

    # The export adds up to the same bill.
    pool = Pool.model_validate(json.loads((tmp_path / "live.json").read_text())["protocol"]["pool"])
    folders = {folder.name: folder for folder in write_twinrouterbench(tmp_path / "export", tasks, pool)}
    total = 0.0
    for file in (folders["gold"] / "results").iterdir():
        result = json.loads(file.read_text())
        trace = (folders["gold"] / result["trace_path"]).read_text().splitlines()
        total += sum(json.loads(line)["step_cost_usd"] for line in trace) + (0 if result["resolved"] else 0.60)
    assert total == pytest.approx(found["gold"].bill.value)
