"""What steps cost: the paper's three savings profiles, and every case of the cache worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from stepdown.builder.errors import BadInput
from stepdown.scoring.accounting import Prices, Steps, step_cost
from stepdown.scoring.bank import open_bank
from stepdown.scoring.rates import Rate, read_rates
from stepdown.scoring.steps import ScoredStep, ScoredTrajectory, read_trajectories
from tests.banks import TIERS, Life, write_bank

LOW, MID, MID_HIGH, HIGH = range(4)
ROUND = (
    Rate(input=0, cache_read=1, cache_write=10, output=100),
    Rate(input=0, cache_read=2, cache_write=20, output=200),
    Rate(input=0, cache_read=3, cache_write=30, output=300),
    Rate(input=0, cache_read=4, cache_write=40, output=400),
)
"""Rates that are easily multiplied in one's head."""


@pytest.mark.parametrize(
    ("prompt", "read", "cents"),
    [
        (4_000, 0, (3.621, 3.530, 3.467)),
        (20_000, 20_000, (1.965, 2.032, 1.900)),
        (100_000, 0, (61.13, 60.65, 62.67)),
    ],
)
def test_savings_against_high_are_the_papers(prompt: int, read: int, cents: Sequence[float]) -> None:
    rates = read_rates(TIERS)
    costs = [100 * step_cost(prompt, read, 500, rate) for rate in rates]
    for cost, saved in zip(costs, cents, strict=False):
        assert costs[HIGH] - cost == pytest.approx(saved, rel=0.005)


def path(*steps: tuple[int, int, float]) -> ScoredTrajectory:
    """A trajectory of steps (prompt, shared, output)."""
    made = tuple(ScoredStep(str(n), 0, prompt, shared, out, None) for n, (prompt, shared, out) in enumerate(steps))
    return ScoredTrajectory("b", "i", "i", "", made)


def micro_usd(tiers: Sequence[int], *paths: ScoredTrajectory) -> list[float]:
    """Millionths of a dollar of every step under an assignment."""
    prices = Prices(Steps.of(paths), ROUND)
    return [round(cost * 1e6, 6) for cost in prices.of(np.array(tiers)).tolist()]


THREE = path((10, 0, 1), (15, 10, 2), (30, 15, 3))


def test_a_first_step_writes_its_whole_prompt() -> None:
    assert micro_usd([LOW], path((10, 0, 1))) == [10 * 10 + 1 * 100]


def test_a_step_of_the_same_tier_reads_the_prefix_and_writes_the_rest() -> None:
    assert micro_usd([LOW, LOW, LOW], THREE) == [
        10 * 10 + 1 * 100,
        10 * 1 + 5 * 10 + 2 * 100,
        15 * 1 + 15 * 10 + 3 * 100,
    ]


def test_a_step_of_another_tier_than_the_last_writes_all() -> None:
    assert micro_usd([LOW, HIGH, HIGH], THREE) == [
        10 * 10 + 1 * 100,
        15 * 40 + 2 * 400,
        15 * 4 + 15 * 40 + 3 * 400,
    ]


def test_a_tier_that_is_come_back_to_writes_all_again() -> None:
    assert micro_usd([LOW, HIGH, LOW], THREE)[2] == 30 * 10 + 3 * 100


def test_a_step_whose_prefix_does_not_hold_the_last_one_writes_all() -> None:
    assert micro_usd([LOW, LOW], path((10, 0, 1), (8, 0, 2))) == [10 * 10 + 100, 8 * 10 + 2 * 100]


def test_a_trajectory_reads_nothing_of_the_one_before_it() -> None:
    first = path((10, 0, 1))
    assert micro_usd([LOW, LOW], first, first) == [200, 200]


# What a step's numbers are, from rows


def measured(tmp_path: Path, life: Life) -> tuple[ScoredStep, ...]:
    """The life's steps; a message's tokens are the X in it."""
    (found,) = read_trajectories(open_bank(write_bank(tmp_path, [life])), lambda text: text.count("X"))
    return found.steps


def test_prefixes_grow_by_what_the_next_one_adds(tmp_path: Path) -> None:
    answers = [{"content": "XX"}, {"content": "XXXX"}]
    start = [{"role": "system", "content": "X"}, {"role": "user", "content": "XX"}]
    steps = measured(tmp_path, Life([0, 0, 0], start=start, answers=answers))
    assert [(step.prompt, step.shared) for step in steps] == [(3, 0), (5, 3), (9, 5)]


def test_an_answer_is_what_the_next_prefix_adds_and_the_last_one_is_like_the_others_on_average(tmp_path: Path) -> None:
    steps = measured(tmp_path, Life([0, 0, 0], answers=[{"content": "XX"}, {"content": "XXXXX"}]))
    assert [step.output for step in steps] == [2, 5, 3.5]


def test_tokens_of_tool_calls_count_in_answers(tmp_path: Path) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "fX", "arguments": '{"a": "XX"}'}}
    steps = measured(tmp_path, Life([0, 0], answers=[{"content": "", "tool_calls": [call]}]))
    assert [step.output for step in steps] == [3, 3]


def test_an_answer_of_which_nothing_is_known_has_500_tokens(tmp_path: Path) -> None:
    assert [step.output for step in measured(tmp_path, Life([0]))] == [500]


def test_tool_definitions_are_part_of_the_prompt(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "XXX"}}]
    steps = measured(tmp_path, Life([0, 0], tools=tools, answers=[{"content": "X"}]))
    assert [(step.prompt, step.shared) for step in steps] == [(3, 0), (4, 3)]


def test_other_tool_definitions_leave_a_cache_nothing_to_read(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "XXX"}}]
    life = Life([0, 0], tools=tools, answers=[{"content": "X"}], changes={2: {"tools": [*tools, *tools]}})
    steps = measured(tmp_path, life)
    assert [(step.prompt, step.shared, step.output) for step in steps] == [(3, 0, 1), (7, 0, 1)]


def test_a_rewritten_history_is_no_prefix_and_shows_no_answer(tmp_path: Path) -> None:
    summary = {"messages": [{"role": "user", "content": "XX in short"}]}
    steps = measured(tmp_path, Life([0, 0, 0], answers=[{}, {"content": "XXX"}], changes={2: summary}))
    assert [(step.prompt, step.shared) for step in steps] == [(0, 0), (2, 0), (3, 0)]
    assert [step.output for step in steps] == [500, 500, 500]


def test_a_rate_card_must_name_every_tier_and_charge_for_the_strong_one(tmp_path: Path) -> None:
    card = tmp_path / "card.yaml"
    card.write_text("low: {input: 1, cache_read: 1, cache_write: 1, output: 1}\n")
    with pytest.raises(BadInput, match=r"card.yaml: has no rates for tier 'high'"):
        read_rates(["low", "high"], card)
    card.write_text("high: {input: 1, cache_read: 1, cache_write: 0, output: 0}\n")
    with pytest.raises(BadInput, match="must cost something"):
        read_rates(["high"], card)
    card.write_text("high: {input: 1, cache_read: 1, cache_write: 1, outputs: 1}\n")
    with pytest.raises(BadInput, match=r"card.yaml:1: high.output"):
        read_rates(["high"], card)
    with pytest.raises(BadInput, match="--rates"):
        read_rates(["tiny"])
