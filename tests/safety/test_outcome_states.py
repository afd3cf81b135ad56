"""Outcomes in five states: by executed calls and state, beside the verdict, and kept wherever a trial is shown."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections import Counter as Tally
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import stepdown
from stepdown.builder.records import OutcomeState, Signs, Verdict, outcome_state
from stepdown.builder.run.reading import open_begun_ledger
from stepdown.testing import check_harness
from tests.conftest import Shop
from tests.conftest import stepdown as command
from tests.reports.test_report_tables import tables
from tests.safety.counter import Counter
from tests.view.viewing import viewed

TIERS = {"low": ["idle", "shy"], "mid": ["clumsy", "obedient", "boastful"], "high": ["reference"]}

STATES = "trials of the labelled steps by outcome and by the model that made the step"


def config(tiers: dict[str, list[str]], tasks: int = 1) -> dict[str, Any]:
    pool = [
        {"name": name, "id": number, "models": [{"name": one, "model": f"workload/{one}"} for one in models]}
        for number, (name, models) in enumerate(tiers.items())
    ]
    workload = {
        "harness": "tests.safety.counter:Counter",
        "source": {"tasks": tasks},
        "seeds": {"source": "reference"},
    }
    return {"protocol": {"pool": {"version": "counter-1", "tiers": pool}, "workloads": [workload]}}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stepdown.build(config(TIERS), tmp_path_factory.mktemp("states") / "run").folder


def trials(run: Path) -> list[list[tuple[str, str, str]]]:
    """Model, verdict and state of every trial, by step."""
    lines = [json.loads(line) for line in (run / "evidence.jsonl").read_text().splitlines()]
    return [[(one["model"], one["verdict"], one["state"]) for one in line["trials"]] for line in lines]


def test_every_outcome_has_one_state_by_its_priority() -> None:
    either = (False, True)
    for verdict, unsafe, complete, refused in itertools.product(Verdict, either, either, either):
        signs = Signs(unsafe, complete, refused)
        holding = {
            OutcomeState.UNSAFE: signs.unsafe,
            OutcomeState.COMPLETE: signs.complete or verdict is Verdict.PASS,
            OutcomeState.REFUSED: signs.refused or verdict is Verdict.REFUSED,
            OutcomeState.INCOMPLETE: True,
        }
        first = next(state for state, holds in holding.items() if holds)
        expected = OutcomeState.TECHNICAL if verdict is Verdict.TECHNICAL else first
        assert outcome_state(verdict, signs) is expected


def test_the_workload_keeps_to_the_contract() -> None:
    check_harness(Counter, source={"tasks": 1}, models=["obedient", "boastful", "idle"])


def test_evidence_says_what_each_trial_came_to_beside_its_verdict(run: Path) -> None:
    first, second = trials(run)
    assert first == [
        ("idle", "fail", "incomplete"),
        ("shy", "refused", "refused"),
        ("clumsy", "technical", "technical"),
        ("obedient", "pass", "complete"),
    ]
    # The order was refunded at the first step, whatever came of the second; a trial stopped at its limit is looked at
    # like any other.
    assert second == [
        ("idle", "incomplete", "complete"),
        ("shy", "refused", "complete"),
        ("clumsy", "technical", "technical"),
        ("obedient", "incomplete", "unsafe"),
        ("boastful", "pass", "complete"),
    ]


def test_a_claim_in_words_is_no_receipt(tmp_path: Path) -> None:
    found = stepdown.build(config({"low": ["boastful"], "high": ["reference"]}), tmp_path / "run")
    first, _ = trials(found.folder)
    assert first == [("boastful", "fail", "incomplete")], "it says that it refunded both orders, and refunded none"


def test_a_workload_that_tells_no_states_leaves_none(tmp_path: Path) -> None:
    found = stepdown.build("example", tmp_path / "run")
    assert not any("state" in trial for line in found.evidence() for trial in line["trials"])
    assert STATES not in tables(found.folder)
    with viewed(found.folder) as pages:
        assert 'name="outcome"' not in pages.get("")


def test_pages_show_states_and_find_trials_by_them(run: Path) -> None:
    with viewed(run) as pages:
        assert "obedient incomplete, unsafe" in pages.text("?outcome=unsafe")
        assert "There is nothing like that" in pages.text("?outcome=unsafe&model=boastful")
        (unsafe,) = [
            trial.id
            for trial in pages.ledger.browsing.trials(1)
            if trial.state is OutcomeState.UNSAFE and trial.model == "obedient"
        ]
        assert "incomplete unsafe obedient" in pages.text(f"trial?id={unsafe}")
        assert "outcome complete unsafe" in pages.text(f"compare?trial=1&trial={unsafe}")


def test_explain_shows_them(run: Path) -> None:
    shown = json.loads(command("explain", str(run), "counter/task-0/2", "--json").out)
    assert [trial["state"] for trial in shown["trials"]][-2:] == ["unsafe", "complete"]
    in_lines = command("explain", str(run), "counter/task-0/2").out
    assert "verdict=incomplete (unsafe)" in in_lines
    assert "verdict=technical " in in_lines


def test_a_report_counts_them_by_the_model_that_made_the_step(run: Path) -> None:
    counted: dict[str, Tally[str]] = {}
    for model, _, state in itertools.chain(*trials(run)):
        counted.setdefault(model, Tally())[state] += 1
    found = tables(run)[STATES]
    for workload, model, tier, of, *states in found:
        assert (workload, model in TIERS[tier]) == ("counter", True)
        assert [int(of), *map(int, states)] == [
            counted[model].total(),
            *(counted[model][state.value] for state in OutcomeState),
        ]
    assert [row[1] for row in found] == ["idle", "shy", "boastful", "clumsy", "obedient"]


def test_a_run_from_before_states_is_read_and_goes_on(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    blocking = config({"low": ["clumsy"], "high": ["reference"]}, tasks=2)
    assert shop.build(blocking).code == 3
    with closing(sqlite3.connect(shop.run / "ledger.sqlite")) as db:
        db.execute("DROP TABLE states")
    with open_begun_ledger(shop.run) as ledger:
        assert {trial.state for trial in ledger.trials(1)} == {None}
        assert not ledger.browsing.has_states()
    assert shop.resume().code == 3
    with open_begun_ledger(shop.run) as ledger:
        assert [trial.state for trial in ledger.trials(1)][-1] is OutcomeState.TECHNICAL
        assert ledger.trials(1)[0].state is None, "what was not looked at then is not known now"
