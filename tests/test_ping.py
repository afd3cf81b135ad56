"""`stepdown doctor --ping` asks every model and judge once, and says in a line what came of it."""

from __future__ import annotations

from collections.abc import Callable

from tests.conftest import Shop, stepdown
from tests.provider import FAULTS, Answer, Provider
from tests.workshop import ABILITIES, config

Start = Callable[..., Provider]
JUDGES = {"judge": {"models": [{"name": "critic", "model": "openai/critic"}], "panel": "single"}}


def test_every_model_and_judge_is_asked_once(shop: Shop, provider: Start) -> None:
    loopback = provider({**ABILITIES, "critic": lambda request: Answer("ok")})
    path = shop.write(config(loopback.url, [[0]], protocol=JUDGES))
    told = stepdown("doctor", str(path), "--ping")
    assert told.code == 0, told.out
    assert "asking 4 models once each; their providers charge for it" in told.err
    assert sorted(seen.model for seen in loopback.requests) == ["critic", "hand", "master", "novice"]
    for name in ("novice", "hand", "master", "critic"):
        assert f"ok   model {name}: openai/{name} answers at {loopback.url} (14 tokens, " in told.out


def test_one_that_does_not_answer_is_named_and_the_others_are_asked_all_the_same(shop: Shop, provider: Start) -> None:
    loopback = provider({"novice": ABILITIES["novice"], "master": lambda request: FAULTS["server_503"]})
    told = stepdown("doctor", str(shop.write(config(loopback.url, [[0]]))), "--ping")
    assert told.code == 2
    assert "ok   model novice: " in told.out
    assert "none model hand: model 'hand', openai/hand: the provider does not know it: HTTP 404" in told.out
    assert "none model master: master: HTTP 503: The engine is overloaded" in told.out
    assert loopback.count() == 3, "no retries"


def test_without_a_config_there_is_nobody_to_ask() -> None:
    told = stepdown("doctor", "--ping")
    assert told.code == 2
    assert "name it" in told.err
    assert not told.out


def test_without_ping_nobody_is_asked(shop: Shop, provider: Start) -> None:
    loopback = provider(ABILITIES)
    assert stepdown("doctor", str(shop.write(config(loopback.url, [[0]])))).code == 0
    assert loopback.count() == 0
