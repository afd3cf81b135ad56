"""Live runs on the planted workload: bills by hand, interruptions, technical tasks, the export."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stepdown.builder.cli.main import main
from stepdown.builder.config.loading import load_config
from stepdown.builder.config.pool import Model
from stepdown.builder.engine.progress import RunProgress
from stepdown.builder.errors import BadInput, Interrupted, RunStopped
from stepdown.builder.records import Prefix, Response, Usage, Verdict
from stepdown.harnesses.planted.setup import planted_config
from stepdown.routing.live.bill import bills
from stepdown.routing.live.driving import LiveSettings
from stepdown.routing.live.export import write_twinrouterbench
from stepdown.routing.live.prompt_caches import PromptCaches
from stepdown.routing.live.records import LiveStep, LiveTask, TaskState
from stepdown.routing.live.run import run_live
from stepdown.routing.live.store import LiveStore
from stepdown.routing.policies.contract import Choice, NoChoice, Policy, View
from stepdown.routing.policies.fixed import Always, Chance, GivenTiers

PLAN = [[0, 0, 3, 1, 0], [0, 3, 0, 0], [1, 0, 0], [0, 0, 0]]
LABELS = {
    f"planted/{number}/{step}": ("low", "mid", "mid_high", "high")[tier]
    for number, row in enumerate(PLAN, 1)
    for step, tier in enumerate(row, 1)
}
SETTINGS = LiveSettings()


class Silent:
    """Has no answer for any second call."""

    name, version = "silent", "1"

    def choose(self, view: View) -> Choice:
        if view.step % 2 == 0:
            raise NoChoice("no digit")
        return Choice("high")


class Watchful:
    """Keeps what it was shown."""

    name, version = "watchful", "1"

    def __init__(self) -> None:
        self.seen: list[View] = []

    def choose(self, view: View) -> Choice:
        self.seen.append(view)
        return Choice("high", model="3-1" if view.step == 2 else "3-0")


def _gold() -> GivenTiers:
    return GivenTiers("labels", LABELS)


def _config(folder: Path, plan: Sequence[Sequence[int]] = PLAN, operation: dict[str, Any] | None = None) -> Path:
    config = planted_config({"tiers": [list(row) for row in plan]}, operation=operation or {"workers": 2})
    file = folder / "live.yaml"
    file.write_text(json.dumps(config))
    return file


def _run(
    folder: Path,
    policies: Sequence[Policy],
    on_call: Callable[[], None] = lambda: None,
    config: Path | None = None,
    settings: LiveSettings = SETTINGS,
) -> list[LiveTask]:
    progress = _Calling(on_call)
    run_live(load_config(config or _config(folder)), policies, folder / "live", settings, progress.stop, progress)
    return _tasks(folder)


def _tasks(folder: Path) -> list[LiveTask]:
    store = LiveStore(folder / "live", "ro")
    try:
        return list(store.tasks())
    finally:
        store.close()


class _Calling(RunProgress):
    """Progress that does something at every call."""

    def __init__(self, on_call: Callable[[], None]) -> None:
        super().__init__()
        self.stop = threading.Event()
        self._do = on_call

    def on_call(self, model: Model, response: Response, fresh: bool) -> None:
        super().on_call(model, response, fresh)
        self._do()


def test_labels_resolve_every_task_and_the_cheapest_tier_those_that_need_no_more(tmp_path: Path) -> None:
    tasks = _run(tmp_path, [Always("high"), _gold(), Always("low")])
    resolved = {(task.policy, task.instance): task.resolved for task in tasks}
    assert all(resolved["always:high", str(n)] and resolved["labels", str(n)] for n in range(1, 5))
    assert [resolved["always:low", str(n)] for n in range(1, 5)] == [not any(row) for row in PLAN]


def test_bills_are_those_of_a_calculation_by_hand(tmp_path: Path) -> None:
    """From what each step sent, when, and the pool's prices: nothing of the code under test but the records."""
    prices = {"low": (0.26, 0.5), "mid": (0.3, 2.0), "mid_high": (0.5, 5.0), "high": (5.0, 25.0)}
    policies: list[Policy] = [Always("high"), _gold(), Chance()]
    tasks = _run(tmp_path, policies)
    found = {one.policy: one for one in bills(tasks, [policy.name for policy in policies], 0.60)}
    for policy in policies:
        spent = 0.0
        for task in (task for task in tasks if task.policy == policy.name):
            passes = all(
                ("low", "mid", "mid_high", "high").index(step.tier) >= PLAN[int(task.instance) - 1][step.step - 1]
                for step in task.steps
            )
            assert task.resolved is passes
            for step in task.steps:
                price = prices[step.tier]
                # The pool states no prices of cached tokens: they cost as others do.
                spent += (step.usage.prompt * price[0] + step.usage.completion * price[1]) / 1e6
            spent += 0.0 if passes else 0.60
        assert found[policy.name].bill.value == pytest.approx(spent, abs=1e-9)


def test_differences_are_paired_by_task_and_draw_whole_groups() -> None:
    def task(policy: str, number: int, usd: float, resolved: bool) -> LiveTask:
        step = LiveStep(1, "m", "high", 0.0, 0.0, Usage(10), usd, True)
        verdict = Verdict.PASS if resolved else Verdict.FAIL
        return LiveTask(policy, "b", str(number), f"g{number // 2}", TaskState.DONE, verdict, "", (step,))

    tasks = [task(name, n, n + extra, n % 2 == 0) for n in range(8) for name, extra in (("a", 0.0), ("b", 0.25))]
    first, second = bills(tasks, ["a", "b"], 0.60)
    assert first.bill.value == pytest.approx(sum(range(8)) + 4 * 0.60)
    assert second.over_first is not None
    lead = second.over_first
    assert (lead.value, lead.low, lead.high) == pytest.approx((2.0, 2.0, 2.0)), "the same on every task: no spread"
    assert first.bill.low is not None
    assert first.bill.low < sum(range(8)) + 4 * 0.60


def test_a_task_that_is_technical_under_one_policy_is_left_out_for_all_and_never_unresolved() -> None:
    done = LiveTask("a", "b", "1", "1", TaskState.DONE, Verdict.FAIL)
    broken = LiveTask("b", "b", "1", "1", TaskState.TECHNICAL, None, "no daemon")
    first, second = bills([done, broken], ["a", "b"], 0.60)
    assert (first.tasks, second.tasks, second.technical, first.bill.value, second.bill.value) == (0, 0, 1, 0.0, 0.0)


def test_prompt_caches_live_300_seconds_for_each_model_and_hold_what_stands_at_the_head() -> None:
    caches = PromptCaches()
    first = Prefix.start([{"role": "user", "content": "a"}])
    longer = first.extend([{"role": "user", "content": "b"}])
    other = Prefix.start([{"role": "user", "content": "c"}])
    assert caches.charge("m", first, Usage(100, completion=9), at=0) == Usage(100, 0, 100, 9)
    assert caches.charge("m", longer, Usage(150), at=300) == Usage(150, 100, 50, 0)
    assert caches.charge("m", longer, Usage(150), at=601) == Usage(150, 0, 150, 0), "301 s later"
    assert caches.charge("n", longer, Usage(150), at=601) == Usage(150, 0, 150, 0), "another model's"
    assert caches.held("m", longer, 700) == (150, 99)
    assert caches.held("m", other, 700) == (0, 99)
    assert caches.held("k", other, 700) == (0, None)
    assert caches.held("m", longer.with_tools([{"type": "function"}]), 700)[0] == 0
    assert caches.charge("m", longer, Usage(150, 7, 0), at=700) == Usage(150, 7, 0, 0), "a provider's own word is taken"


def test_an_interrupted_run_goes_on_and_pays_nothing_twice(tmp_path: Path) -> None:
    policies: list[Policy] = [Always("high"), _gold(), Chance()]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder in (whole, cut):
        folder.mkdir()
    made = [0, 0]

    def count(place: int) -> Callable[[], None]:
        def tell() -> None:
            made[place] += 1
            if place and made[1] in (3, 9, 20):
                raise RunStopped("crashed")

        return tell

    _run(whole, policies, count(0))
    for _ in range(3):
        with pytest.raises(RunStopped):
            _run(cut, policies, count(1), _config(cut, operation={"workers": 1}))
    _run(cut, policies, count(1), _config(cut, operation={"workers": 1}))
    assert json.loads((cut / "live" / "paid.json").read_text()) == json.loads(
        (whole / "live" / "paid.json").read_text()
    )
    assert [_undated(task) for task in _tasks(cut)] == [_undated(task) for task in _tasks(whole)]


def _undated(task: LiveTask) -> LiveTask:
    """Without times, and without who of the policies that asked the same question paid for it."""
    return replace(task, steps=tuple(replace(step, at=0.0, seconds=0.0, paid=False) for step in task.steps))


def test_kill_9_loses_no_step_that_was_kept(tmp_path: Path) -> None:
    plan = [[0, 3, 0, 1, 0, 0, 2, 0]] * 60
    config = _config(tmp_path, plan)
    command = [sys.executable, "-m", "stepdown", "live", str(config), "--out", str(tmp_path / "live")]
    command += ["--policy", "always:high", "--policy", "chance"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and _steps_kept(tmp_path / "live") < 100:
        pass
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = {task.instance: task for task in _tasks(tmp_path) if task.policy == "chance"}
    done = CliRunner().invoke(main, command[3:])
    assert done.exit_code == 0, done.output
    after = _tasks(tmp_path)
    assert len(after) == 120
    assert all(before[task.instance] == task for task in after if task.policy == "chance" and task.instance in before)
    paid = json.loads((tmp_path / "live" / "paid.json").read_text())["calls"]
    questions = {(task.instance, step.step, step.model) for task in after for step in task.steps}
    assert paid >= len(questions)
    assert sum(len(task.steps) for task in after) == 120 * 8


def _steps_kept(folder: Path) -> int:
    try:
        store = LiveStore(folder, "ro")
    except BadInput:
        return 0
    try:
        return sum(len(store.steps("always:high", "planted", str(number))) for number in range(1, 61))
    except BadInput:
        return 0
    finally:
        store.close()


def test_where_a_policy_has_no_answer_the_strong_tier_makes_the_call(tmp_path: Path) -> None:
    tasks = _run(tmp_path, [Silent()])
    assert all(task.resolved for task in tasks)
    assert all(step.fell_back is (step.step % 2 == 0) for task in tasks for step in task.steps)


def test_a_policy_sees_what_is_known_and_may_choose_a_model(tmp_path: Path) -> None:
    policy = Watchful()
    tasks = _run(tmp_path, [policy], config=_config(tmp_path, operation={"workers": 1, "budget": {"usd": 5.0}}))
    assert {step.model for task in tasks for step in task.steps if step.step == 2} == {"3-1"}
    first, second, third = policy.seen[:3]
    assert first.instance == "planted/1"
    assert all(offer.cache_age is None for offer in first.models)
    assert [offer.tier for offer in first.models].count("high") == 2
    held = {offer.name: offer.cached_tokens for offer in second.models}
    assert held["3-0"] > 0
    assert held["0-0"] == 0
    assert third.spent_usd > second.spent_usd > first.spent_usd == 0
    assert first.budget_usd == pytest.approx(5.0)


def test_another_policy_or_plan_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    _run(tmp_path, [Always("high")])
    with pytest.raises(BadInput, match="was begun otherwise"):
        _run(tmp_path, [Always("low")])
    with pytest.raises(BadInput, match="was begun otherwise"):
        _run(tmp_path, [Always("high")], settings=LiveSettings(penalty=1.0))


def test_an_answer_that_is_asked_to_stop_is_interrupted(tmp_path: Path) -> None:
    progress = _Calling(lambda: progress.stop.set())
    with pytest.raises(Interrupted):
        run_live(load_config(_config(tmp_path)), [Always("high")], tmp_path / "live", SETTINGS, progress.stop, progress)


def test_the_export_has_a_result_and_a_trace_of_each_task_with_that_benchmarks_fields(tmp_path: Path) -> None:
    config = _config(tmp_path)
    tasks = _run(tmp_path, [Always("high"), Always("low")], config=config)
    folders = write_twinrouterbench(tmp_path / "export", tasks, load_config(config).protocol.pool)
    assert len(folders) == 2
    [one] = bills(tasks, ["always:low"], 0.60)
    total = 0.0
    for file in sorted((folders[1] / "results").iterdir()):
        result = json.loads(file.read_text())
        steps = [json.loads(line) for line in (folders[1] / result["trace_path"]).read_text().splitlines()]
        assert [step["step_index"] for step in steps] == list(range(len(steps)))
        assert {"model_id", "usage", "raw_usage", "started_at", "step_cost_usd"} <= steps[0].keys()
        assert sum(result["model_distribution"].values()) == len(steps) == result["step_count"]
        total += sum(step["step_cost_usd"] for step in steps) + (0 if result["resolved"] else 0.60)
    assert total == pytest.approx(one.bill.value)


def test_the_command_prints_bills_and_goes_on_by_being_given_again(tmp_path: Path) -> None:
    arguments = ["live", str(_config(tmp_path)), "--policy", "always:high", "--policy", "rules", "--out"]
    for _ in range(2):
        done = CliRunner().invoke(main, [*arguments, str(tmp_path / "live")])
        assert done.exit_code == 0, done.output
        assert "always:high" in done.output
    again = CliRunner().invoke(main, [*arguments, str(tmp_path / "live"), "--json"])
    assert [one["tasks"] for one in json.loads(again.stdout)["policies"]] == [4, 4]


@pytest.mark.parametrize(
    ("policies", "problem"),
    [
        (["always:huge"], "there is no tier 'huge'"),
        (["chance", "chance"], "two policies have the name 'chance'"),
        (["labels:nowhere"], "no such folder"),
    ],
)
def test_wrong_input_is_one_line_and_makes_no_call(tmp_path: Path, policies: list[str], problem: str) -> None:
    named = [part for policy in policies for part in ("--policy", policy)]
    done = CliRunner().invoke(main, ["live", str(_config(tmp_path)), *named, "--out", str(tmp_path / "live")])
    assert (done.exit_code, problem in done.output) == (2, True), done.output
    assert not (tmp_path / "live" / "paid.json").exists()
