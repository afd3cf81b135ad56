"""What a gateway says that calls cost stands beside the list price, and calls with estimated tokens are counted."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from stepdown.builder.common.files import digest_of
from tests.conftest import Shop, stepdown
from tests.provider import Ability, Answer, Fault, Provider
from tests.workshop import ABILITIES, config, worked

Start = Callable[..., Provider]
DOLLAR = {"input": 1e6 / 14, "output": 1e6 / 14}
"""Of a call of 14 tokens, the usual ones of the scripted provider."""
USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}


def billing(skill: int, cost: float) -> Ability:
    """A model behind a gateway that says what each call cost."""
    return lambda request: Answer(worked(skill, request["messages"]), usage={**USAGE, "cost": cost})


def silent(skill: int) -> Ability:
    """A model whose server says nothing of tokens."""

    def ability(request: dict[str, Any]) -> Fault:
        body = Answer(worked(skill, request["messages"])).body("m")
        return Fault(200, {name: value for name, value in body.items() if name != "usage"})

    return ability


def settings(url: str, **changes: Any) -> dict[str, Any]:
    made = config(url, [[0, 1], [9]], **changes)
    for tier in made["protocol"]["pool"]["tiers"]:
        for model in tier["models"]:
            model["price"] = DOLLAR
    return made


def test_reported_cost_and_estimates_stand_beside_the_list_price_by_model(shop: Shop, provider: Start) -> None:
    one = provider({**ABILITIES, "novice": silent(0), "master": billing(9, 0.25)})
    assert shop.build(settings(one.url)).code == 0
    spent = shop.read_json("spend.json")
    masters, novices = one.count("master"), one.count("novice")
    assert (spent["reported_usd"], spent["reported_calls"]) == (0.25 * masters, masters)
    assert spent["estimated_calls"] == novices
    for line in spent["by_model"]:
        told = (line["reported_usd"], line["reported_calls"], line["estimated_calls"])
        expected = {"master": (0.25 * line["calls"], line["calls"], 0), "novice": (None, 0, line["calls"])}
        assert told == expected.get(line["model"], (None, 0, 0))
    lines = stepdown("status", str(shop.run)).out.splitlines()
    by_gateway = f"reported by its gateway: ${0.25 * masters:.4f} for {masters} calls"
    assert f"  master: {masters} calls, ${masters:.4f} at list price; {by_gateway}" in lines
    assert any(
        line.startswith("  novice: ") and line.endswith(f"tokens estimated of {novices} calls") for line in lines
    )
    assert not any(line.startswith("  hand: ") for line in lines)


def test_what_gateways_report_changes_spend_alone(shop: Shop, provider: Start) -> None:
    assert shop.build(settings(provider().url)).code == 0
    usual = shop.files()
    again = Shop(shop.folder / "again")
    again.folder.mkdir()
    one = provider({"novice": billing(0, 1.5), "hand": billing(1, 0), "master": billing(9, 7)})
    assert again.build(settings(one.url)).code == 0
    assert again.files() == usual
    assert again.read_json("spend.json")["reported_usd"] > 0


def test_a_run_of_before_is_read_and_resumed_and_its_spend_told_anew(shop: Shop, provider: Start) -> None:
    assert shop.build(settings(provider({**ABILITIES, "master": billing(9, 0.25)}).url)).code == 0
    files, spend = shop.files(), shop.read_json("spend.json")
    older = {name: value for name, value in spend.items() if not name.startswith(("reported", "estimated"))}
    (shop.run / "spend.json").write_text(json.dumps(older))
    with sqlite3.connect(shop.run / "ledger.sqlite") as db:
        db.execute("DROP TABLE accounts")
        ((digests,),) = db.execute("SELECT value FROM meta WHERE key = 'released'")
        digests = json.loads(digests) | {"spend.json": digest_of(shop.run / "spend.json")}
        db.execute("UPDATE meta SET value = ? WHERE key = 'released'", (json.dumps(digests),))
    assert stepdown("status", str(shop.run)).code == 0
    assert shop.resume().code == 0
    assert shop.files() == files
    nothing = {"reported_usd": None, "reported_calls": 0, "estimated_calls": 0}
    assert shop.read_json("spend.json").items() >= nothing.items(), "what was not kept then is not known now"
