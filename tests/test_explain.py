"""Every label can be traced to the trials that led to it, and what each of them cost."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from stepdown.builder.cli.explain import answer_words
from stepdown.builder.records import Response, Stop, ToolCall
from tests.conftest import Shop, stepdown
from tests.provider import FAULTS, Answer, Failing, Provider
from tests.test_bad_input import refused
from tests.workshop import ABILITIES, apprentice, config

Start = Callable[..., Provider]


def explained(shop: Shop, row_id: str) -> str:
    result = stepdown("explain", str(shop.run), row_id)
    assert result.code == 0, result.err
    return result.out


def trials(out: str, purpose: str = "search") -> list[dict[str, str]]:
    """The lines of trials, by column; `reason` is the last."""
    lines = [line for line in out.splitlines() if f"purpose={purpose} " in line]
    return [dict(re.findall(r"(\w+)=((?:(?! \w+=).)*)", line)) for line in lines]


def priced(url: str, needs: list[list[int]], **protocol: Any) -> dict[str, Any]:
    settings = config(url, needs, protocol=protocol)
    for tier in settings["protocol"]["pool"]["tiers"]:
        tier["models"][0]["price"] = {"input": 1000.0}
    return settings


def test_every_trial_of_the_step_is_told_in_order_with_what_it_asked_and_paid(shop: Shop, provider: Start) -> None:
    shop.build(priced(provider().url, [[0, 2, 0]]))
    out = explained(shop, "workshop/job-0/2")
    assert "label: high, locked with master; step 2 of 3" in out
    assert "seed: trial 1, 3 steps by master" in out
    assert "hint: not asked for" in out
    told = [(t["tier"], t["model"], t["limit"], t["verdict"], t["asked"], t["paid"], t["usd"]) for t in trials(out)]
    assert told == [
        ("low", "novice", "3", "fail", "2", "2", "0.022000"),
        ("mid", "hand", "3", "fail", "2", "2", "0.022000"),
    ]
    assert [trial["reason"] for trial in trials(out)] == ["a piece is spoilt"] * 2
    assert [(t["model"], t["verdict"], t["asked"]) for t in trials(out, "seed")] == [("master", "pass", "3")]
    assert [(t["verdict"], t["asked"]) for t in trials(out, "verify")] == [("pass", "0")]


def test_the_costs_of_all_trials_add_up_to_what_the_run_paid(shop: Shop, provider: Start) -> None:
    one = provider()
    shop.build(priced(one.url, [[0, 1, 2, 0]]))
    told = [trial for step in range(1, 5) for trial in trials(explained(shop, f"workshop/job-0/{step}"))]
    told += trials(explained(shop, "workshop/job-0/1"), "seed")
    assert sum(int(trial["paid"]) for trial in told) == one.count()
    assert sum(float(trial["usd"]) for trial in told) == pytest.approx(shop.read_json("spend.json")["usd"])


def test_technical_trials_that_were_tried_again_are_told_with_their_errors(shop: Shop, provider: Start) -> None:
    one = provider({**ABILITIES, "novice": Failing(4, FAULTS["server_503"], apprentice(0))})
    assert shop.build(config(one.url, [[0]])).code == 3
    blocked = explained(shop, "workshop/job-0/1")
    assert "no label: the instance is blocked: " in blocked
    assert shop.resume().code == 0
    out = explained(shop, "workshop/job-0/1")
    assert [trial["verdict"] for trial in trials(out)] == ["technical, tried again", "pass"]
    errors = [line for line in out.splitlines() if "before a retry" in line]
    # Of the first trial those before it gave up, of the second the one before it was answered.
    assert len(errors) == len([e for e in errors if "overloaded" in e or "503" in e]) >= 2
    assert shop.labels() == [["low"]]


def test_a_hint_is_told(shop: Shop, provider: Start) -> None:
    (shop.folder / "hints.jsonl").write_text('{"id": "workshop/job-0/1", "tier": "mid"}')
    shop.build(config(provider().url, [[0]], protocol={"hints": {"source": "file", "file": "hints.jsonl"}}))
    out = explained(shop, "workshop/job-0/1")
    assert "hint: mid" in out
    assert [trial["model"] for trial in trials(out)] == ["hand", "novice"]


def test_fresh_draws_beside_the_label_are_told_too(shop: Shop, provider: Start) -> None:
    shop.build(config(provider().url, [[2, 0]], protocol={"rules": {"confirm": 2, "control": 1}}))
    out = explained(shop, "workshop/job-0/1")
    assert [trial["model"] for trial in trials(out, "control")] == ["master"]
    assert len(trials(out, "confirm")) == 2
    assert len(trials(explained(shop, "workshop/job-0/2"), "confirm")) == 2


def test_nothing_a_model_or_workload_wrote_reaches_the_terminal_unescaped(
    shop: Shop, provider: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = provider({**ABILITIES, "novice": lambda request: Answer("oops")})
    shop.build(config(one.url, [[0]], options={"breaks_on": "oops"}))
    with sqlite3.connect(shop.run / "ledger.sqlite") as db:
        db.execute("UPDATE trials SET reason = ? WHERE purpose = 'search'", ("\x1b[31m[/red] bad\u202e",))
    for forced in (False, True):
        if forced:
            monkeypatch.setenv("FORCE_COLOR", "1")
            monkeypatch.setenv("COLUMNS", "200")
        out = explained(shop, "workshop/job-0/1")
        assert "[31m[/red]" in out
        assert "\x1b[31m[/red]" not in out
        assert "\u202e" not in out


@pytest.mark.parametrize(
    ("row_id", "words"),
    [
        ("workshop/job-0/9", ("workshop/job-0/1", "workshop/job-0/2")),
        ("workshop/job-0/0", ("workshop/job-0/1",)),
        ("job-1/1", ("near: workshop/job-1/1",)),
        ("Workshop/JOB-0/2", ("near: workshop/job-0/2",)),
        ("job-1", ("near: workshop/job-1/1",)),
        ("workshop/job_1", ("near: workshop/job-1/1",)),
        ("workshop/jobb-1/1", ("no row 'workshop/jobb-1/1'", "workshop/job-1/1")),
        ("nonsense", ("nonsense", "workshop/job-0/1")),
        ("\udcff\udcfe/x/1", ("workshop/job-0/1",)),
        ("workshop/job-0/01", ("workshop/job-0/1",)),
        ("workshop/job-0/one", ("workshop/job-0/1",)),
        ("workshop/job-0/" + "9" * 40, ("workshop/job-0/1",)),
        ("", ("workshop/job-0/1",)),
    ],
)
def test_an_unknown_row_is_refused_with_ids_that_are_near(built: Shop, row_id: str, words: tuple[str, ...]) -> None:
    refused(stepdown("explain", str(built.run), row_id), *words)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    shop = Shop(tmp_path_factory.mktemp("explain"))
    with Provider(ABILITIES) as one:
        assert shop.build(config(one.url, [[0, 1], [0]])).code == 0
    return shop


def test_an_instance_alone_is_told_with_all_its_steps_in_short(shop: Shop, provider: Start) -> None:
    shop.build(config(provider().url, [[0, 2], [99]]))
    out = explained(shop, "workshop/job-0").splitlines()
    assert out[:5] == [
        "workshop/job-0",
        "2 steps labelled",
        "seed: trial 1, 2 steps by master",
        "step 1: low (novice); tried: novice of low pass",
        "step 2: high (master); tried: novice of low fail (a piece is spoilt), hand of mid fail (a piece is spoilt)",
    ]
    assert [trial["model"] for trial in trials("\n".join(out), "seed")] == ["master"]
    dropped = explained(shop, "workshop/job-1")
    assert "no label: the instance is dropped: no seed passed: fail" in dropped
    assert [trial["reason"] for trial in trials(dropped, "seed")] == ["a piece is spoilt"]


def test_what_each_candidate_answered_is_shown_where_it_is_asked_for(shop: Shop, provider: Start) -> None:
    long = "\x1b[31m" + "spoilt and " * 200
    one = provider({**ABILITIES, "novice": lambda request: Answer(long)})
    shop.build(config(one.url, [[1]]))
    assert "answered" not in explained(shop, "workshop/job-0/1")
    result = stepdown("explain", str(shop.run), "workshop/job-0/1", "--answers")
    told = [line.strip() for line in result.out.splitlines() if "answered: " in line]
    assert [line.partition(" answered: ")[0] for line in told] == [
        "trial 1, master",
        "trial 3, novice",
        "trial 4, hand",
    ]
    assert "answered: made 1 with skill 9" in told[0]
    assert "\x1b" not in result.out
    assert told[1].endswith("…")
    assert len(told[1]) < 450
    assert "answered: made 1 with skill 1" in told[2]


def test_calls_stand_in_an_answer_beside_its_text() -> None:
    answer = Response("Let me see.", (ToolCall("look", '{"at": 1}'),), stop=Stop.LENGTH)
    assert answer_words(answer) == 'Let me see. look({"at": 1}) [length]'
    assert answer_words(Response()) == "nothing"


def test_a_folder_without_a_run_is_refused(shop: Shop) -> None:
    refused(stepdown("explain", str(shop.run), "workshop/job-0/1"), "no run is here")
