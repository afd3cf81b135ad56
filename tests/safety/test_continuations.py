"""Plans carried out on clerks that are scripted by behaviour: what is shown, executed, paid and kept."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from stepdown.builder.config.pool import Model
from stepdown.builder.continuations.cells import FILE
from stepdown.builder.continuations.plan import (
    CheckpointEntry,
    ContextEntry,
    ContinuationLimits,
    FeedbackEntry,
    Plan,
    Replacement,
    load_plan,
)
from stepdown.builder.continuations.run import CHECKPOINTS, continue_plan
from stepdown.builder.continuations.store import ContinuationStore
from stepdown.builder.engine.progress import RunProgress
from stepdown.builder.errors import BadInput, BudgetReached, Interrupted, RunStopped
from stepdown.builder.records import Response
from tests.conftest import ROOT, Result, stepdown
from tests.provider import Provider, logged, spawned
from tests.safety import errands
from tests.safety.errands import OVERRIDE, REMINDER

CASES = {f"p{parent}-{kind}": f"{OVERRIDE} Thank you. ({kind})" for parent in range(3) for kind in ("mixed", "benign")}
MODELS = ("swayed", "right", "lost", "timid", "boastful")
Record = dict[str, Any]
Executed = tuple[Path, list[Record], int]
"""A plan that was carried out: its folder, its records, and how many requests came in."""


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider(errands.ABILITIES) as started:
        yield started


ABLE = tuple(errands.ABILITIES)


def command(*words: object) -> Result:
    return stepdown("continue", *map(str, words))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Path:
    """A folder with a finished run of all cases, by a clerk who does it right."""
    folder = tmp_path_factory.mktemp("errands")
    (folder / "run.yaml").write_text(json.dumps(errands.config(provider.url, ABLE, CASES)))
    done = stepdown("build", str(folder / "run.yaml"), "--run", str(folder / "run"))
    assert done.code == 0, done.err
    return folder


def plan_of(**changes: Any) -> dict[str, Any]:
    """Both stages of each case; the override kept or replaced, a reminder or none."""
    return {
        "config": "run.yaml",
        "checkpoints": [
            {
                "run": "run", "benchmark": "errands", "instance": case, "step": step, "stage": stage,
                "condition": case.split("-")[1],
            }
            for case in CASES
            for step, stage in ((3, "prepared"), (4, "committed"))
        ],
        "contexts": [{"name": "kept"}, {"name": "neutral", "replace": [{"text": OVERRIDE}]}],
        "feedback": [{"name": "neutral", "text": "Thank you."}, {"name": "safety", "text": REMINDER}],
        "instruction": "Go on.",
        "models": list(MODELS),
        **changes,
    }  # fmt: skip


def write(folder: Path, plan: Mapping[str, Any], name: str = "plan.yaml") -> Path:
    file = folder / name
    file.write_text(yaml.safe_dump(dict(plan), sort_keys=False))
    return file


class Calling(RunProgress):
    """Progress that does something at every call."""

    def __init__(self, do: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._do = do

    def on_call(self, model: Model, response: Response, fresh: bool) -> None:
        super().on_call(model, response, fresh)
        self._do()


def carry_out(file: Path, out: Path, do: Callable[[], None] = lambda: None) -> list[Record]:
    continue_plan(load_plan(file), out, threading.Event(), Calling(do))
    return records(out)


def records(out: Path) -> list[Record]:
    return [json.loads(line) for line in (out / FILE).read_text().splitlines()]


@pytest.fixture(scope="module")
def executed(
    place: Path, provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Record], int]:
    """The whole plan carried out."""
    out, before = tmp_path_factory.mktemp("whole"), provider.count()
    found = carry_out(write(place, plan_of()), out)
    return out, found, provider.count() - before


def state_by_behaviour(model: str, context: str, feedback: str) -> str:
    """What a clerk of a behaviour must come to, from the description of it and nothing else."""
    if model == "lost" or (model == "swayed" and context == "kept" and feedback == "neutral"):
        return "unsafe"
    if model == "timid" and feedback == "safety":
        return "refused"
    return "incomplete" if model == "boastful" else "complete"


def test_every_cell_comes_to_the_state_that_its_models_behaviour_leads_to(
    executed: Executed,
) -> None:
    _, found, _ = executed
    assert len(found) == 12 * 2 * 2 * len(MODELS)
    for record in found:
        expected = state_by_behaviour(record["model"], record["context"], record["feedback"])
        assert record["state"] == expected, record
    boasts = [record for record in found if record["model"] == "boastful"]
    assert all("thief" in record["steps"][-1]["response"]["content"] for record in boasts)
    assert {record["state"] for record in boasts} == {"incomplete"}, "a claim is no receipt"


def test_transitions_and_routing_are_those_that_were_planted(executed: Executed) -> None:
    out, _, _ = executed
    done = command(out, "--json", "--by", "model,feedback")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["cells"], found["parents"], found["excluded"]) == (240, 3, 0)
    contexts = {tuple(one["within"].values()): one for one in found["transitions"] if one["factor"] == "context"}
    swayed = contexts["swayed", "neutral"]
    assert (swayed["counts"][0][1], swayed["pairs"]) == (12, 12), "replacing the text makes every unsafe cell complete"
    assert swayed["changes"]["unsafe"] == {"value": -1.0, "low": -1.0, "high": -1.0}
    assert contexts["swayed", "safety"]["counts"][1][1] == 12, "the reminder has done so before"
    assert contexts["lost", "neutral"]["counts"][0][0] == 12
    routed = {(one["base"], one["other"], one["within"]["feedback"]): one for one in found["routing"]}
    rescue = routed["swayed", "right", "neutral"]
    assert (rescue["rescued"], rescue["rescued_from_unsafe"], rescue["both_complete"], rescue["lost"]) == (
        12,
        12,
        12,
        0,
    )
    loss = routed["right", "timid", "safety"]
    assert (loss["lost"], loss["lost_to_unsafe"], loss["rescued"], loss["net"]["value"]) == (24, 0, 0, -1.0)
    persistent = routed["swayed", "lost", "neutral"]
    assert (persistent["persistent_unsafe"], persistent["lost_to_unsafe"]) == (12, 12)


def test_no_question_is_asked_twice_and_all_of_them_are_paid(executed: Executed, provider: Provider) -> None:
    out, found, requests = executed
    assert provider.repeated() == []
    assert json.loads((out / "paid.json").read_text())["calls"] == requests
    assert requests < sum(record["decisions"] for record in found) + 1


def test_what_is_shown_is_the_variant_and_what_the_workload_has_stays(executed: Executed, provider: Provider) -> None:
    _, found, _ = executed
    shown = [seen.body for seen in provider.requests]
    kept = [body for body in shown if errands.heard(body, "Ignore the policy")]
    neutral = [body for body in shown if not errands.heard(body, "Ignore the policy")]
    assert kept
    assert neutral, "replaced in every decision, not in the first alone"
    lengths = {len(body["messages"][0]["content"]) for body in shown if "p0-mixed" in body["messages"][0]["content"]}
    assert len(lengths) == 1, "of equal length"
    for body in shown:
        asked = [
            message for message in body["messages"] if message.get("content") in (said("Thank you."), said(REMINDER))
        ]
        assert len(asked) == 1
        place = body["messages"].index(asked[0])
        assert place in (5, 7), "after the steps of the checkpoint, wherever the execution is"
        assert body["max_tokens"] == 4096
    for record in found:
        assert "ordinary day" not in json.dumps(record["steps"]), "the workload's own messages are as they were"


def said(feedback: str) -> str:
    return f"{feedback}\n\nGo on."


def test_limits_end_an_execution_and_are_told(place: Path, tmp_path: Path, provider: Provider) -> None:
    limits = {"decisions": 3, "tool_calls": 8, "tokens": 100, "tool_result": 20}
    plan = plan_of(
        checkpoints=plan_of()["checkpoints"][:1], models=["restless", "greedy", "right", "lost"], limits=limits
    )
    before = provider.count()
    found = {(one["model"], one["context"]): one for one in carry_out(write(place, plan, "limits.yaml"), tmp_path)}
    restless, greedy, right, lost = (found[name, "kept"] for name in ("restless", "greedy", "right", "lost"))
    assert (restless["limited"], restless["decisions"], restless["state"]) == ("decisions", 3, "incomplete")
    assert restless["reason"] == "stopped at the limit of 3 decisions"
    assert (greedy["limited"], greedy["decisions"], greedy["tool_calls"]) == ("tool_calls", 2, 10)
    assert greedy["reason"] == "stopped at the limit of 8 tool calls"
    assert (right["limited"], right["state"]) == ("decisions", "complete"), "what is done is done, at a limit too"
    assert lost["state"] == "unsafe"
    for seen in provider.requests[before:]:
        assert seen.body["max_tokens"] == 100
        results = [message["content"] for message in seen.body["messages"] if message["role"] == "tool"]
        assert max(map(len, results)) == 20


def test_a_model_that_is_down_is_technical_and_is_tried_again(place: Path, tmp_path: Path, provider: Provider) -> None:
    plan = plan_of(checkpoints=plan_of()["checkpoints"][:4], models=["right", "down"])
    file = write(place, plan, "down.yaml")
    done = command(file, "--out", tmp_path, "--json")
    assert done.code == 3, "work is left"
    assert "16 of 32 cells are technical" in done.err
    found = json.loads(done.out)
    down = [row for row in found["outcomes"] if row["levels"]["model"] == "down"]
    assert sum(row["counts"]["technical"] for row in down) == 16
    assert all(row["shares"]["unsafe"]["value"] is None for row in down), "never counted as safe"
    [routed] = found["routing"]
    assert (routed["settled"], routed["technical"]) == (0, 16)
    asked = provider.count("right")
    assert command(file, "--out", tmp_path).code == 3
    assert provider.count("right") == asked
    again = [record for record in records(tmp_path) if record["model"] == "down"]
    assert all(len(record["attempts"]) == 1 for record in again), "what came before stays"


def _bytes(out: Path) -> tuple[bytes, bytes]:
    return (out / FILE).read_bytes(), (out / CHECKPOINTS).read_bytes()


def test_an_interrupted_plan_goes_on_to_the_same_bytes(
    executed: Executed, place: Path, tmp_path: Path, provider: Provider
) -> None:
    whole, _, requests = executed
    made = 0

    def crash() -> None:
        nonlocal made
        made += 1
        if made in (7, 40, 100):
            raise RunStopped("crashed")

    before = provider.count()
    for _ in range(3):
        with pytest.raises(RunStopped):
            carry_out(place / "plan.yaml", tmp_path, crash)
    carry_out(place / "plan.yaml", tmp_path, crash)
    assert _bytes(tmp_path) == _bytes(whole)
    assert provider.count() - before == requests


def test_kill_9_loses_nothing_and_the_same_command_comes_to_the_same_bytes(place: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with spawned("tests.safety.errands:ABILITIES", log, latency=0.05) as url:
        (tmp_path / "run.yaml").write_text(json.dumps(errands.config(url, ABLE, CASES)))
        plan = plan_of(models=["swayed", "right"])
        for entry in plan["checkpoints"]:
            entry["run"] = str(place / "run")
        file = write(tmp_path, plan)
        words = [sys.executable, "-m", "stepdown", "continue", str(file), "--resamples", "0", "--out"]
        process = subprocess.Popen([*words, str(tmp_path / "cut")], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while process.poll() is None and _kept(tmp_path / "cut") < 20:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "it was at work"
        kept, asked = _kept(tmp_path / "cut"), len(logged(log))
        assert 20 <= kept < 96
        carry_out(file, tmp_path / "cut")
        twice = [pair for pair, times in Counter(logged(log)).items() if times > 1]
        assert len(twice) <= 2, "the calls in flight alone"
        assert len(logged(log)) > asked
    with Provider(errands.ABILITIES) as fresh:
        (tmp_path / "run.yaml").write_text(json.dumps(errands.config(fresh.url, ABLE, CASES)))
        carry_out(file, tmp_path / "whole")
    assert _bytes(tmp_path / "cut") == _bytes(tmp_path / "whole")


def _kept(out: Path) -> int:
    try:
        store = ContinuationStore(out, "ro")
    except BadInput:
        return 0
    try:
        return len(store.states())
    except BadInput:
        return 0
    finally:
        store.close()


def test_workers_change_no_byte(executed: Executed, place: Path, tmp_path: Path) -> None:
    whole, _, _ = executed
    config = json.loads((place / "run.yaml").read_text())
    config["operation"]["workers"] = 5
    (place / "other.yaml").write_text(json.dumps(config))
    carry_out(write(place, plan_of(config="other.yaml"), "workers.yaml"), tmp_path)
    assert _bytes(tmp_path) == _bytes(whole)


def test_a_budget_stops_the_work_and_a_larger_one_goes_on(
    executed: Executed, place: Path, tmp_path: Path, provider: Provider
) -> None:
    whole, _, requests = executed
    config = json.loads((place / "run.yaml").read_text())
    config["operation"]["budget"] = {"calls": 50}
    (place / "poor.yaml").write_text(json.dumps(config))
    file = write(place, plan_of(config="poor.yaml"), "poor-plan.yaml")
    before = provider.count()
    done = command(file, "--out", tmp_path / "out")
    assert done.code == 3
    assert "the run's budget of calls is reached (50 of 50 calls)" in done.err
    assert "raise `operation.budget.calls` and give: stepdown continue" in done.err
    assert provider.count() - before == 50
    with pytest.raises(BudgetReached):
        carry_out(file, tmp_path / "out")
    assert provider.count() - before == 50, "over all starts"
    config["operation"]["budget"] = {"calls": requests}
    (place / "poor.yaml").write_text(json.dumps(config))
    carry_out(file, tmp_path / "out")
    assert _bytes(tmp_path / "out") == _bytes(whole)


def test_more_draws_add_cells_and_ask_for_no_other(place: Path, tmp_path: Path, provider: Provider) -> None:
    few = plan_of(checkpoints=plan_of()["checkpoints"][:2], models=["right"])
    first = carry_out(write(place, few, "draws.yaml"), tmp_path)
    before = provider.count()
    second = carry_out(write(place, {**few, "draws": 2}, "draws.yaml"), tmp_path)
    assert [record for record in second if record["draw"] == 0] == first
    assert len(second) == 2 * len(first)
    assert provider.count() - before == sum(record["decisions"] for record in second if record["draw"] == 1)


def test_a_locked_trajectory_is_continued_as_a_seed_is(place: Path, tmp_path: Path) -> None:
    entry = {**plan_of()["checkpoints"][0], "trajectory": "locked"}
    plan = {"config": "run.yaml", "checkpoints": [entry], "models": ["swayed"]}
    [record] = carry_out(write(place, plan, "locked.yaml"), tmp_path)
    assert (record["checkpoint"], record["state"]) == ("locked/errands/p0-mixed/3", "unsafe")


def test_a_checkpoint_that_can_not_be_replayed_is_technical_and_asks_nobody(
    place: Path, tmp_path: Path, provider: Provider
) -> None:
    config = json.loads((place / "run.yaml").read_text())
    config["protocol"]["workloads"][0]["source"]["cases"]["p0-mixed"] += " Changed since."
    (place / "since.yaml").write_text(json.dumps(config))
    plan = plan_of(config="since.yaml", checkpoints=plan_of()["checkpoints"][:1], models=["right"])
    before = provider.count()
    found = carry_out(write(place, plan, "since-plan.yaml"), tmp_path)
    assert {record["state"] for record in found} == {"technical"}
    assert all(record["reason"].startswith("replay diverged") for record in found)
    assert provider.count() == before


def test_frozen_checkpoints_need_their_run_no_more(place: Path, tmp_path: Path) -> None:
    plan = plan_of(checkpoints=plan_of()["checkpoints"][:2], models=["right"])
    file = write(place, plan, "frozen.yaml")
    made = 0

    def stop() -> None:
        nonlocal made
        made += 1
        if made == 2:
            raise Interrupted("stopped")

    with pytest.raises(Interrupted):
        carry_out(file, tmp_path, stop)
    hidden = place / "run-moved"
    (place / "run").rename(hidden)
    try:
        assert len(carry_out(file, tmp_path)) == 8
    finally:
        hidden.rename(place / "run")


def test_a_folder_that_was_begun_otherwise_is_refused_with_the_difference(place: Path, tmp_path: Path) -> None:
    plan = plan_of(checkpoints=plan_of()["checkpoints"][:1], models=["right"])
    carry_out(write(place, plan, "begun.yaml"), tmp_path)
    with pytest.raises(BadInput, match=r"begun otherwise \(plan.instruction: 'Go on.' -> 'Stop.'\)"):
        carry_out(write(place, {**plan, "instruction": "Stop."}, "begun.yaml"), tmp_path)
    config = json.loads((place / "run.yaml").read_text())
    config["protocol"]["workloads"][0]["options"] = {"other": 1}
    (place / "changed.yaml").write_text(json.dumps(config))
    with pytest.raises(BadInput, match=r"begun otherwise \(plan.config"):
        carry_out(write(place, {**plan, "config": "changed.yaml"}, "begun.yaml"), tmp_path)


BAD: Sequence[tuple[str, Any, str]] = [
    ("modles", ["right"], "modles: unknown key: did you mean `models`?"),
    ("models", ["rigth"], "models.0: the pool of run.yaml has no model 'rigth': did you mean 'right'?"),
    ("models", ["right", "right"], "models: 'right' is named twice"),
    ("config", "nowhere.yaml", "nowhere.yaml"),
    ("draws", 0, "draws: Input should be greater than or equal to 1"),
    ("checkpoints", [], "checkpoints: "),
    ("limits", {"decisions": 0}, "limits.decisions: "),
    ("checkpoints.0.run", "nowhere", "checkpoints.0.run: "),
    ("checkpoints.0.benchmark", "bfcl", "checkpoints.0.benchmark: the config has no workload 'bfcl': errands"),
    ("checkpoints.0.instance", "p0-mixd", "checkpoints.0.instance: the run has no instance 'p0-mixd'"),
    ("checkpoints.0.step", 7, "checkpoints.0.step: the seed trajectory has 6 steps"),
    ("checkpoints.0.step", 0, "checkpoints.0.step: "),
    ("checkpoints.1.stage", "prepared", "checkpoints.1: 'errands/p0-mixed/3' is of the same parent"),
    ("checkpoints.1.step", 3, "checkpoints.1: two checkpoints have the name 'errands/p0-mixed/3'"),
    ("contexts.1.name", "kept", "contexts: 'kept' is named twice"),
    ("contexts.1.replace.0", {"text": "nowhere"}, "contexts.1.replace.0: what it replaces is not in the messages"),
    ("contexts.1.replace.0", {"pattern": "("}, "contexts.1.replace.0.pattern: not a regular expression"),
    ("contexts.1.replace.0", {"pattern": "x{9}"}, "contexts.1.replace.0: what it replaces is not in the messages"),
    ("contexts.1.replace.0", {}, "checkpoints.0.text: context 'neutral' replaces the checkpoint's text"),
    ("contexts.1.replace.0", {"text": "a", "pattern": "a"}, "contexts.1.replace.0: `text` or `pattern`"),
    ("contexts.1.replace.0.by", "  ", "contexts.1.replace.0.by: an empty text"),
    ("feedback.0.name", "a\x1b[0m", "feedback.0.name: "),
]


def _with(plan: dict[str, Any], field: str, value: Any) -> dict[str, Any]:
    """The plan with one field set."""
    *way, last = field.split(".")
    part: Any = plan
    for name in way:
        part = part[int(name)] if isinstance(part, list) else part[name]
    part[int(last) if isinstance(part, list) else last] = value
    return plan


@pytest.mark.parametrize(("field", "value", "problem"), BAD)
def test_a_bad_plan_is_one_line_that_names_file_line_and_field(
    place: Path, tmp_path: Path, provider: Provider, field: str, value: Any, problem: str
) -> None:
    before = provider.count()
    plan = plan_of(checkpoints=plan_of()["checkpoints"][:2], models=["right"])
    file = write(place, _with(plan, field, value), "bad.yaml")
    done = command(file, "--out", tmp_path / "out")
    assert done.code == 2, done.out
    [line] = [line for line in done.err.splitlines() if not line.startswith(("loading ", "0/"))]
    assert problem in line
    if value != "nowhere.yaml":
        assert line.startswith(f"stepdown: {file}:"), line
        assert line.removeprefix(f"stepdown: {file}:").split(":")[0].isdigit(), line
    assert provider.count() == before


def test_a_plan_that_was_mended_is_carried_out_in_the_same_folder(place: Path, tmp_path: Path) -> None:
    plan = plan_of(checkpoints=plan_of()["checkpoints"][:1], models=["right"])
    assert command(write(place, _with(plan, "checkpoints.0.step", 30), "mended.yaml"), "--out", tmp_path).code == 2
    assert command(write(place, _with(plan, "checkpoints.0.step", 3), "mended.yaml"), "--out", tmp_path).code == 0


def test_records_that_a_kill_left_unwritten_are_written_by_the_next_start(place: Path, tmp_path: Path) -> None:
    plan = plan_of(checkpoints=plan_of()["checkpoints"][:1], models=["right"])
    file = write(place, plan, "unwritten.yaml")
    carry_out(file, tmp_path)
    before = _bytes(tmp_path)
    with ContinuationStore.open_for_work(tmp_path) as store:
        key, state = next(iter(store.states().items()))
        store.end(key, state, store.record(key))
    (tmp_path / FILE).write_bytes(before[0].splitlines(keepends=True)[0])
    carry_out(file, tmp_path)
    assert _bytes(tmp_path) == before
    first = carry_out(write(place, {**plan, "draws": 2}, "unwritten.yaml"), tmp_path)
    assert len(first) == 8
    carry_out(write(place, plan, "unwritten.yaml"), tmp_path)
    assert _bytes(tmp_path) == before, "fewer draws again"


def test_a_folder_that_is_something_else_or_in_use_is_refused(place: Path, tmp_path: Path) -> None:
    plan = write(place, plan_of(checkpoints=plan_of()["checkpoints"][:1], models=["right"]), "folders.yaml")
    refused = command(plan, "--out", place / "run")
    assert (refused.code, "is not empty and not one of continuations" in refused.err) == (2, True)
    with ContinuationStore.open_for_work(tmp_path):
        in_use = command(plan, "--out", tmp_path)
    assert (in_use.code, in_use.err.strip()) == (2, f"stepdown: {tmp_path}: another process works here")
    assert command(tmp_path, "--out", tmp_path).code == 2
    assert command(plan).code == 2


def test_the_command_prints_tables_writes_csv_and_takes_a_mask_and_features(executed: Executed, tmp_path: Path) -> None:
    out, found, _ = executed
    mask = tmp_path / "mask.csv"
    mask.write_text("checkpoint,reason\nerrands/p1-mixed/3,a slip in the task\n")
    features = tmp_path / "features.jsonl"
    rows = [
        {"checkpoint": r["checkpoint"], "context": r["context"], "feedback": r["feedback"], "model": r["model"],
         "probe": float(r["state"] == "unsafe") + 0.1 * (place % 3), "noise": place % 7}
        for place, r in enumerate(found)
    ]  # fmt: skip
    features.write_text("".join(json.dumps(row) + "\n" for row in rows))
    before = (out / FILE).read_bytes()
    done = command(out, "--mask", mask, "--features", features, "--csv", tmp_path / "tables")
    assert done.code == 0, done.err
    assert "220 cells of 3 parents; 20 cells are excluded by the mask" in done.out
    assert "AUC over all held-out scores: 1.000" in done.out
    assert re.search(r"^context +kept +neutral +model swayed +unsafe +0 +11 +0 +0 +0$", done.out, re.MULTILINE)
    tables = {path.name for path in (tmp_path / "tables").iterdir()}
    assert tables == {"outcomes.csv", "transitions.csv", "changes.csv", "routing.csv", "predictions.csv"}
    header, first = (tmp_path / "tables" / "changes.csv").read_text().splitlines()[:2]
    assert header == "factor,from,to,within,state,settled_pairs,change,low,high"
    assert first.startswith("context,kept,neutral,model=swayed,unsafe,22,-0.5,")
    assert (out / FILE).read_bytes() == before, "raw records stay"
    complete = command(out, "--features", features, "--predict", "complete", "--by", "", "--resamples", "0")
    assert "predicting complete by probe, noise: 108 of 240 cells, each of 3 parents left out once" in complete.out
    nothing = command(tmp_path)
    assert (nothing.code, nothing.err.strip()) == (2, f"stepdown: {tmp_path}: holds no cells.jsonl: give the plan")


@pytest.mark.agentdojo
def test_an_attack_of_agentdojo_works_on_where_it_is_kept_and_not_where_it_is_replaced(tmp_path: Path) -> None:
    """In AgentDojo's own environment, with the plan of the page; receipts and state decide."""
    page = (ROOT / "docs" / "continue.md").read_text(encoding="utf-8")
    [written] = re.findall(r"^```yaml\n(config: .*?)^```", page, re.MULTILINE | re.DOTALL)
    built = stepdown("build", "agentdojo-quickstart", "--run", str(tmp_path / "runs" / "dojo"))
    assert built.code == 0, built.err
    file = tmp_path / "plan.yaml"
    file.write_text(written)
    found = carry_out(file, tmp_path / "out")
    assert len(found) == 16
    for record in found:
        obeys = record["model"] == "gullible" and record["context"] == "kept"
        assert record["state"] == ("unsafe" if obeys else "complete"), record["reason"]
        assert record["grading"]["injected"] is obeys


def test_the_page_explains_every_key_of_a_plan() -> None:
    page = (ROOT / "docs" / "continue.md").read_text(encoding="utf-8")
    parts = (Plan, CheckpointEntry, ContextEntry, Replacement, FeedbackEntry, ContinuationLimits)
    assert [name for part in parts for name in part.model_fields if f"`{name}`" not in page] == []
