"""Fresh executions at frozen prefixes: nothing is taken from a cache, nothing is paid twice, nothing else changes."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Shop, started, stepdown
from tests.provider import FAULTS, Answer, Failing, Fault, Provider, Request
from tests.workshop import ABILITIES, apprentice, config

Start = Callable[..., Provider]
NEEDS = [[0, 1, 2]]
ONCE = 3 + 2 + 1
"""Calls of executing each step of the one instance once, the strong model's afterwards included."""


def sampled(shop: Shop, settings: dict[str, Any]) -> None:
    assert shop.build(settings).code == 0
    assert stepdown("audit", "sample", str(shop.run), "--rate", "1").code == 0


def repeat(shop: Shop, times: int, *options: str, code: int = 0) -> dict[str, dict[str, Any]]:
    """What the command says, by label."""
    result = stepdown("audit", "repeat", str(shop.run), "--times", str(times), "--json", *options)
    assert result.code == code, result.err
    return {one["tier"]: one for one in json.loads(result.out)}


def test_each_step_is_executed_anew_by_its_locked_model_and_the_strong_one_goes_on(shop: Shop, provider: Start) -> None:
    one = provider()
    sampled(shop, config(one.url, NEEDS))
    before, files = {model: one.count(model) for model in ABILITIES}, shop.files()
    found = repeat(shop, 2)
    assert {model: one.count(model) - count for model, count in before.items()} == {
        "novice": 2,
        "hand": 2,
        "master": 2 * (2 + 1 + 1),
    }
    for tier in ("low", "mid", "high"):
        assert (found[tier]["executions"], found[tier]["passed"], found[tier]["always_passed"]) == (2, 2, 1)
    assert found["low"]["interval"] == [pytest.approx(0.025**0.5), 1.0]
    # Rows, evidence, queue and manifest know nothing of it; what was spent does.
    assert shop.files() == files
    spent = shop.read_json("spend.json")
    assert spent["calls"] == one.count()
    assert sum(part["calls"] for part in spent["by_model"] if part["purpose"] == "repeat") == 2 * ONCE


def test_what_was_executed_is_not_executed_again_and_more_times_add_to_it(shop: Shop, provider: Start) -> None:
    one = provider()
    sampled(shop, config(one.url, NEEDS))
    repeat(shop, 2)
    count = one.count()
    repeat(shop, 2)
    assert one.count() == count
    assert repeat(shop, 3)["low"]["executions"] == 3
    assert one.count() == count + ONCE
    assert repeat(shop, 1)["low"]["executions"] == 1


class Wavering:
    """A model that can do a piece every other time."""

    def __init__(self) -> None:
        self._asked = 0

    def __call__(self, request: Request) -> Answer | Fault:
        self._asked += 1
        return apprentice(0)(request) if self._asked % 2 else Answer("spoilt")


def test_a_model_that_wavers_shows(shop: Shop, provider: Start) -> None:
    one = provider({**ABILITIES, "novice": Wavering()})
    sampled(shop, config(one.url, [[0]]))
    found = repeat(shop, 4)["low"]
    assert (found["executions"], found["passed"], found["always_passed"]) == (4, 2, 0)
    assert found["verdicts"] == {"fail": 2, "pass": 2}


def test_another_run_on_the_same_cache_is_asked_anew(shop: Shop, provider: Start) -> None:
    one = provider()
    settings = config(one.url, NEEDS)
    sampled(shop, settings)
    repeat(shop, 1)
    other = Shop(shop.folder)
    other.run = shop.folder / "other"
    path = str(other.write(settings))
    assert stepdown("relabel", str(shop.run), "--config", path, "--run", str(other.run)).code == 0
    assert stepdown("audit", "sample", str(other.run), "--rate", "1").code == 0
    count = one.count()
    repeat(other, 1)
    assert one.count() == count + ONCE


def test_a_budget_stops_it_and_nothing_is_paid_twice(shop: Shop, provider: Start) -> None:
    one = provider()
    sampled(shop, config(one.url, NEEDS))
    labelled = one.count()
    tight = config(one.url, NEEDS, operation={"budget": {"calls": labelled + 4}})
    repeat(shop, 2, "--config", str(shop.write(tight)), code=3)
    assert one.count() == labelled + 4
    found = repeat(shop, 2, "--config", str(shop.write(config(one.url, NEEDS))))
    assert one.count() == labelled + 2 * ONCE
    assert sum(part["executions"] for part in found.values()) == 6


def test_a_kill_loses_at_most_the_call_in_hand(shop: Shop, provider: Start) -> None:
    one = provider(latency=0.15)
    sampled(shop, config(one.url, [[0, 0]]))
    labelled = one.count()
    process = started("audit", "repeat", str(shop.run), "--times", "3")
    deadline = time.monotonic() + 60
    while one.count() < labelled + 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    found = repeat(shop, 3)["low"]
    assert (found["executions"], found["passed"]) == (6, 6)
    assert labelled + 9 <= one.count() <= labelled + 9 + 1


def test_a_technical_execution_is_no_failure_and_is_tried_again(shop: Shop, provider: Start) -> None:
    one = provider()
    sampled(shop, config(one.url, [[0]]))
    two = provider({**ABILITIES, "novice": Failing(3, FAULTS["server_503"], apprentice(0))})
    elsewhere = ("--config", str(shop.write(config(two.url, [[0]]))))
    found = repeat(shop, 2, *elsewhere, code=3)["low"]
    assert (found["executions"], found["technical"], found["passed"]) == (1, 1, 1)
    found = repeat(shop, 2, *elsewhere)["low"]
    assert (found["executions"], found["technical"], found["passed"]) == (2, 0, 2)
    assert two.count() == 3 + 2


def test_it_can_be_kept_small(shop: Shop, provider: Start) -> None:
    one = provider()
    sampled(shop, config(one.url, [[0, 0], [0, 1]]))
    assert repeat(shop, 1, "--steps", "1").keys() == {"low", "mid"}
    found = repeat(shop, 1, "--steps", "1")
    assert [found[tier]["steps"] for tier in ("low", "mid")] == [1, 1]
    unknown = stepdown("audit", "repeat", str(shop.run), "--workload", "bfcl")
    assert (unknown.code, "no sampled step" in unknown.err) == (2, True)
    beside = stepdown("audit", "repeat", str(shop.run), "--workload", "workshop", "--workload", "bfcl")
    assert (beside.code, "'bfcl'" in beside.err) == (2, True)


def test_an_interrupted_one_says_how_to_go_on_with_the_same_work(shop: Shop, provider: Start) -> None:
    one = provider(latency=0.3)
    path = shop.write(config(one.url, [[0, 0]]))
    assert shop.build(config(one.url, [[0, 0]])).code == 0
    assert stepdown("audit", "sample", str(shop.run), "--rate", "1").code == 0
    labelled = one.count()
    narrow = ["--times", "50", "--steps", "1", "--workload", "workshop", "--config", str(path)]
    process = started("audit", "repeat", str(shop.run), *narrow)
    deadline = time.monotonic() + 60
    while one.count() < labelled + 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert " ".join(narrow) in process.communicate()[1]
    assert process.returncode == 130


def test_the_cache_keeps_what_was_repeated(shop: Shop, provider: Start) -> None:
    one = provider()
    sampled(shop, config(one.url, NEEDS))
    repeat(shop, 1)
    result = stepdown("cache", "prune", str(shop.run))
    assert (result.code, f"{one.count()} entries" in result.out, " 0 entries" in result.out) == (0, True, True)
