"""The benchmark of what a label costs executes what it prints, and is billed as providers bill."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cost import Plan, billed_as, hinted, measured
from benchmarks.cost_bank import FIRST_TOKENS, LAST_TOKENS, STEPS, CostBank
from stepdown.builder.common.tokens import CHARACTERS_PER_TOKEN
from stepdown.builder.records import Sample
from tests.reports.test_report_tables import tables


def test_prefixes_grow_from_4_000_to_30_000_tokens() -> None:
    bank = CostBank(billed_as())
    instance = next(bank.instances({"instances": 1, "steps": STEPS}))
    sizes = []
    with bank.open(instance) as episode:
        for _ in range(STEPS):
            prefix = episode.prefix()
            sizes.append(sum(len(message["content"]) for message in prefix.messages) / CHARACTERS_PER_TOKEN)
            answer = bank.answer("3-0", instance, prefix, Sample())
            assert answer is not None
            episode.advance(answer)
    assert sizes[0] == pytest.approx(FIRST_TOKENS, rel=0.01)
    assert sizes[-1] == pytest.approx(LAST_TOKENS, rel=0.01)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], tuple[dict[str, float], Path]]:
    """Figures and folder of one trajectory's cases; that labels are the planted tiers is seen to by each."""
    made = {}
    for kind, prompt_cache in (("none", False), ("none", True), ("model", True), ("perfect", True)):
        folder = tmp_path_factory.mktemp(kind)
        made[kind, prompt_cache] = (measured(kind, prompt_cache, 1, False, folder), folder)
    return made


def test_caching_changes_the_bill_alone(cases: dict[tuple[str, bool], tuple[dict[str, float], Path]]) -> None:
    (plain, _), (kept, folder) = cases["none", False], cases["none", True]
    assert plain["calls"] == kept["calls"]
    assert kept["usd_per_label"] < plain["usd_per_label"] / 2
    told = tables(folder / "run")["what prompt caching saved"][-1]
    assert float(told[7]) == pytest.approx(plain["usd"] - kept["usd"], abs=1e-3), (
        "the report's figure is the executed one"
    )


def test_hints_save_trials_and_are_paid_for(cases: dict[tuple[str, bool], tuple[dict[str, float], Path]]) -> None:
    (none, _), (model, _), (perfect, _) = (cases[kind, True] for kind in ("none", "model", "perfect"))
    assert perfect["usd_per_label"] < none["usd_per_label"]
    assert perfect["usd_of_hints"] == none["usd_of_hints"] == 0
    assert 0 < model["usd_of_hints"] < model["usd"]


def test_hints_are_wrong_as_often_as_it_is_told() -> None:
    plan: Plan = {str(number): [number % 4] * STEPS for number in range(2000)}
    named = {
        kind: [[hinted(kind, name, step, plan) for step in range(1, STEPS + 1)] for name in plan if plan[name][0] == 3]
        for kind in ("model", "learned", "perfect")
    }
    shares = {kind: sum(row.count(3) for row in rows) / sum(map(len, rows)) for kind, rows in named.items()}
    assert shares["model"] == pytest.approx(7 / 147, abs=0.02)
    assert shares["learned"] == pytest.approx(137 / 168, abs=0.02)
    assert shares["perfect"] == 1
