"""A policy as the source of hints: it saves trials, and labels are what they are without it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from stepdown.builder.cli.main import main
from stepdown.routing.policies.contract import Choice, NoChoice, View
from stepdown.routing.training.train import TrainSettings, train
from stepdown.scoring.bank import open_bank
from tests.test_planted import PlantedRun

BY_STEP = (0, 0, 3, 1, 0)
"""What each step of every instance takes: a rule that the prefix shows, since it says which step is next."""
HERE = "tests.routing.test_policy_hints"


class Knowing:
    """A perfect hint: it knows the rule."""

    name, version = "knowing", "1"

    def choose(self, view: View) -> Choice:
        if not view.messages:
            raise NoChoice("asked about nothing")
        return Choice(view.tiers[BY_STEP[view.step - 1]])


class Dearer:
    """A tier too high on every step: the paper's kind of model hint, which mostly errs upwards."""

    name, version = "dearer", "1"

    def choose(self, view: View) -> Choice:
        return Choice(view.tiers[min(BY_STEP[view.step - 1] + 1, 3)])


class Mad:
    name, version = "mad", "1"

    def choose(self, view: View) -> Choice:
        if view.messages:
            raise ZeroDivisionError("no words")
        return Choice(view.tiers[0])


def _built(folder: Path, plan: Sequence[Sequence[int]], policy: str | None) -> PlantedRun:
    """A finished planted run, its hints by a policy where one is named."""
    run = PlantedRun(folder)
    config = run.write(plan)
    if policy is not None:
        data = json.loads(config.read_text())
        data["protocol"]["hints"] = {"source": "policy", "policy": policy}
        config.write_text(json.dumps(data))
    assert run.build(config)
    return run


@settings(max_examples=12, deadline=None)
@given(
    plan=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=3),
    policy=st.sampled_from(
        ["chance", "chance:3", "rules", "always:low", "always:mid", "always:high", f"{HERE}:Dearer"]
    ),
)
def test_no_policy_changes_a_label_in_a_pool_without_surprises(plan: list[list[int]], policy: str) -> None:
    with TemporaryDirectory() as folder:
        hinted = _built(Path(folder) / "hinted", plan, policy)
        assert hinted.labels() == _built(Path(folder) / "plain", plan, None).labels() == plan


def test_trials_by_hints_none_perfect_upwards_and_learned(tmp_path: Path) -> None:
    """Learned: trained on one run, used on another one's new instances."""
    plan = [BY_STEP] * 8
    plain = _built(tmp_path / "plain", plan, None)
    train(open_bank(plain.run), tmp_path / "policy", "p", TrainSettings())
    hints = {"perfect": f"{HERE}:Knowing", "upwards": f"{HERE}:Dearer", "learned": str(tmp_path / "policy")}
    trials = {"none": _trials(plain)}
    for name, policy in hints.items():
        run = _built(tmp_path / name, plan, policy)
        assert run.labels() == [list(BY_STEP)] * 8
        trials[name] = _trials(run)
    # Per instance: a low step passes at its first trial (3 steps); mid and high steps try every model below first.
    assert trials["none"] == 8 * (3 * 1 + 4 + 9)
    # Told the tier, a search still has to show that the tier below fails.
    assert trials["learned"] == trials["perfect"] < trials["none"]
    assert trials["perfect"] < trials["upwards"]


def _trials(run: PlantedRun) -> int:
    return sum(len(row["trials"]) for row in run.read("evidence.jsonl"))


def _stepdown(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_a_run_keeps_its_policy_and_refuses_another_one(tmp_path: Path) -> None:
    plan = [BY_STEP] * 3
    plain = _built(tmp_path / "plain", plan, None)
    policy = tmp_path / "policy"
    train(open_bank(plain.run), policy, "p", TrainSettings())
    hinted = _built(tmp_path / "hinted", plan, str(policy))
    manifest = json.loads((hinted.run / "manifest.json").read_text())
    assert manifest["protocol"]["hints"]["policy"] == "policy"
    assert str(tmp_path) not in (hinted.run / "manifest.json").read_text()
    (policy / "policy.json").write_text((policy / "policy.json").read_text().replace('"name": "p"', '"name": "q"'))
    assert _stepdown("resume", str(hinted.run)).exit_code == 0, "it goes on with its own copy"
    changed = _stepdown("build", str(tmp_path / "hinted" / "config.yaml"), "--run", str(hinted.run))
    assert changed.exit_code == 2
    assert "hints" in changed.output
    for file in (hinted.run / "inputs").rglob("policy.json"):
        file.write_text("{}")
    assert "own copy of the policy" in _stepdown("resume", str(hinted.run)).output


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ("nowhere", "no such policy"),
        ("always:huge", "there is no tier 'huge'"),
        (f"{HERE}:Mad", "policy 'mad' broke: ZeroDivisionError: no words"),
    ],
)
def test_a_policy_that_can_not_be_used_stops_the_run_in_one_line(tmp_path: Path, policy: str, problem: str) -> None:
    run = PlantedRun(tmp_path)
    config = run.write([BY_STEP])
    data = json.loads(config.read_text())
    data["protocol"]["hints"] = {"source": "policy", "policy": policy}
    config.write_text(json.dumps(data))
    done = _stepdown("build", str(config), "--run", str(run.run))
    assert done.exit_code == 2, done.output
    assert problem in done.output


def test_an_estimate_says_what_hints_would_save(tmp_path: Path) -> None:
    """A policy that knows every tier saves what perfect hints save."""
    plain = _built(tmp_path / "plain", [BY_STEP] * 4, None)
    config = str(tmp_path / "plain" / "config.yaml")
    done = _stepdown("estimate", config, "--run", str(plain.run), "--policy", f"{HERE}:Knowing", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    searched = {name: spent["calls"] for name, spent in found["searched_by_hints"].items()}
    assert searched["perfect"] < searched["none"]
    assert searched["knowing"] == searched["perfect"]
    assert any("searching with perfect hints would take" in line for line in found["assumptions"])


def test_what_a_policy_hints_is_only_known_on_a_run(tmp_path: Path) -> None:
    config = str(PlantedRun(tmp_path).write([BY_STEP]))
    done = _stepdown("estimate", config, "--policy", "rules")
    assert (done.exit_code, "--policy: goes with --run" in done.output) == (2, True)
