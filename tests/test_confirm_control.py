"""Fresh executions beside the labels: they are drawn anew, recorded as evidence, and change no label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.conftest import Shop
from tests.provider import FAULTS, Answer, Failing, Fault, Provider, Request
from tests.workshop import ABILITIES, apprentice, config

Start = Callable[..., Provider]


class Fading:
    """A model that can do a piece the first time it is asked for it, and never again."""

    def __init__(self, able: Any) -> None:
        self._able = able
        self._asked: set[str] = set()

    def __call__(self, request: Request) -> Answer | Fault:
        question = str(request["messages"])
        known = question in self._asked
        self._asked.add(question)
        answer: Answer | Fault = Answer("spoilt") if known else self._able(request)
        return answer


def test_confirm_executes_the_final_mixed_trajectory_afresh_each_step_by_its_lock(shop: Shop, provider: Start) -> None:
    one = provider()
    assert shop.build(config(one.url, [[0, 1, 2]], protocol={"rules": {"confirm": 3}})).code == 0
    plain = {"novice": 3, "hand": 2, "master": 3 + 2 + 2}
    for model, calls in plain.items():
        assert one.count(model) == calls + 3
    for row in shop.read("evidence.jsonl"):
        assert row["confirm"] == {"of": 3, "accepted": 3, "verdicts": {"pass": 3}}


def test_a_lock_that_was_luck_shows_in_confirm_and_keeps_its_label(shop: Shop, provider: Start) -> None:
    one = provider({**ABILITIES, "novice": Fading(apprentice(0))})
    assert shop.build(config(one.url, [[0]], protocol={"rules": {"confirm": 2}})).code == 0
    assert shop.labels() == [["low"]]
    assert shop.read("evidence.jsonl")[0]["confirm"] == {"of": 2, "accepted": 0, "verdicts": {"fail": 2}}


def test_control_draws_the_strong_model_anew_at_the_steps_that_stayed_strong(shop: Shop, provider: Start) -> None:
    one = provider({**ABILITIES, "master": Fading(apprentice(9))})
    assert shop.build(config(one.url, [[0, 2]], protocol={"rules": {"control": 2}})).code == 0
    low, high = shop.read("evidence.jsonl")
    assert shop.labels() == [["low", "high"]]
    assert "control" not in low
    # Not even the strong model does it again: what was measured at this step is not the candidates' skill.
    assert high["control"] == {"of": 2, "accepted": 0, "verdicts": {"fail": 2}}


def test_an_outage_during_confirm_blocks_the_instance_and_a_resume_goes_on_there(shop: Shop, provider: Start) -> None:
    plain = Shop(shop.folder)
    plain.run = shop.folder / "plain"
    settings: dict[str, Any] = {"rules": {"confirm": 2, "control": 1}}
    assert plain.build(config(provider().url, [[2]], protocol=settings)).code == 0
    down = provider({**ABILITIES, "master": Later(1, Failing(3, FAULTS["server_500"], apprentice(9)), apprentice(9))})
    assert shop.build(config(down.url, [[2]], protocol=settings)).code == 3
    assert shop.resume().code == 0
    assert shop.files() == plain.files()


def test_confirm_speaks_of_the_trajectory_that_was_confirmed_also_after_a_resume(shop: Shop, provider: Start) -> None:
    """A candidate that was passed over is not tried again once its successor's lock has been confirmed."""
    down = Failing(3, FAULTS["server_500"], apprentice(0, manner=" a"))
    # The second's lock is confirmed once, then it is down for as long as one call is retried.
    flaky = Later(2, Failing(3, FAULTS["server_500"], apprentice(0)), apprentice(0))
    one = provider({**ABILITIES, "novice": down, "clerk": flaky})
    models = {"low": ["novice", "clerk"], "high": ["master"]}
    assert shop.build(config(one.url, [[0]], models=models, protocol={"rules": {"confirm": 2}})).code == 3
    assert shop.resume().code == 0
    (row,) = shop.read("evidence.jsonl")
    assert row["lock"]["model"] == "clerk"
    assert row["confirm"] == {"of": 2, "accepted": 2, "verdicts": {"pass": 2}}
    assert one.count("novice") == 3


class Later:
    """One ability for the first requests, another from then on."""

    def __init__(self, count: int, later: Any, first: Any) -> None:
        self._left, self._later, self._first = count, later, first

    def __call__(self, request: Request) -> Answer | Fault:
        self._left -= 1
        answer: Answer | Fault = (self._first if self._left >= 0 else self._later)(request)
        return answer
