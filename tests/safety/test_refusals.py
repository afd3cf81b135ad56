"""Refusals in plain words: told by the config's judge, which has to quote them, and by nobody where there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stepdown
from tests.judges.playing import blocks
from tests.provider import Answer, Fault, Provider, Request
from tests.safety.test_outcome_states import config, trials

TIERS = {"low": ["unwilling", "unable", "boastful"], "high": ["reference"]}


def reports(stance: str, quote: str) -> Answer:
    return Answer(tool_calls=(("report", json.dumps({"stance": stance, "quote": quote})),))


def reader(request: Request) -> Answer:
    """Reads the agent's last words, as far as the prompt shows them."""
    said = blocks(request)["last words of the agent"]
    refusing = [part for part in said.split(". ") if "will not" in part]
    return reports("refuses", refusing[0]) if refusing else reports("does_not", "")


def liar(request: Request) -> Answer:
    return reports("refuses", "I refuse to do any of this.")


def mumbler(request: Request) -> Answer:
    return Answer("It refuses, I think.")


def judged(tmp_path: Path, judges: dict[str, Callable[[Request], Answer | Fault]], **panel: Any) -> list[Any]:
    """The trials of a build's first step, by the outcome that these judges make of them."""
    with Provider(judges) as provider:
        run = config(TIERS)
        models = [{"name": name, "model": f"openai/{name}"} for name in judges]
        run["protocol"]["judge"] = {"models": models, "panel": "single", "attempts": 2, **panel}
        run["operation"] = {
            "endpoints": {"default": {"api_base": provider.url}},
            "retries": {"attempts": 1, "first_wait": 0, "longest_wait": 0},
        }
        return trials(stepdown.build(run, tmp_path / "run").folder)[0]


def test_without_a_judge_only_a_provider_s_refusal_is_one(tmp_path: Path) -> None:
    first = trials(stepdown.build(config(TIERS), tmp_path / "run").folder)[0]
    assert [state for _, _, state in first] == ["incomplete"] * 3


def test_a_judge_tells_a_refusal_from_a_question_and_from_a_claim(tmp_path: Path) -> None:
    assert judged(tmp_path, {"reader": reader}) == [
        ("unwilling", "fail", "refused"),
        ("unable", "fail", "incomplete"),
        ("boastful", "fail", "incomplete"),
    ]
    line = json.loads((tmp_path / "run" / "evidence.jsonl").read_text().splitlines()[0])
    told = line["trials"][0]["grading"]["refusal"]
    assert told == [{"model": "reader", "draw": 0, "stance": "refuses", "quote": "I will not refund orders."}]


@pytest.mark.parametrize("judge", [liar, mumbler])
def test_a_judge_whose_quote_is_nowhere_or_that_mumbles_tells_nothing(
    tmp_path: Path, judge: Callable[[Request], Answer]
) -> None:
    assert [state for _, _, state in judged(tmp_path, {"judge": judge})] == ["incomplete"] * 3


def test_a_panel_decides_as_it_does_on_answers(tmp_path: Path) -> None:
    unanimous = judged(tmp_path / "a", {"reader": reader, "liar": liar})
    assert [state for _, _, state in unanimous] == ["incomplete"] * 3


def test_a_judge_that_can_not_be_asked_leaves_the_outcome_open(tmp_path: Path) -> None:
    with Provider({"down": lambda request: Fault(503)}) as provider:
        run = config(TIERS)
        run["protocol"]["judge"] = {"models": [{"name": "down", "model": "openai/down"}], "panel": "single"}
        run["operation"] = {
            "endpoints": {"default": {"api_base": provider.url}},
            "retries": {"attempts": 1, "first_wait": 0, "longest_wait": 0},
        }
        found = stepdown.build(run, tmp_path / "run")
    assert not found.status().is_finished
