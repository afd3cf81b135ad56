"""A label has moved only where the same question is asked; the trials that moved it are named."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from stepdown.audit.verdict_basis import VerdictBasis, carries_over
from tests.conftest import Shop, stepdown
from tests.provider import FAULTS, Provider
from tests.test_bad_input import refused
from tests.test_relabel import OLD, SKILLS, Tiers, relabel, version_in
from tests.workshop import apprentice, config

Start = Callable[..., Provider]
NEEDS = [[0, 1, 2], [1], [2, 0]]


def versions(
    shop: Shop, one: Provider, tiers: Tiers, needs: Sequence[Sequence[int]] = NEEDS, **settings: Any
) -> tuple[Shop, Shop]:
    """The old pool's run and its relabelling under another pool."""
    new = version_in(shop, "new")
    assert shop.build(config(one.url, needs, models=OLD)).code == 0
    relabel(shop, new, config(one.url, settings.pop("now", needs), models=tiers, **settings))
    return shop, new


def compared(old: Shop, new: Shop) -> dict[str, Any]:
    result = stepdown("diff", str(old.run), str(new.run), "--json")
    assert result.code == 0, result.err
    data: dict[str, Any] = json.loads(result.out)
    return data


def steps(data: Mapping[str, Any]) -> dict[str, str]:
    """What became of every step, by id without the benchmark."""
    return {
        step["id"].partition("/")[2]: step["change"] for instance in data["instances"] for step in instance["steps"]
    }


CLERK_HELPS: Tiers = {"low": ["novice", "clerk"], "mid": ["hand"], "high": ["master"]}


def test_moved_labels_are_told_from_changed_prefixes(shop: Shop, provider: Start) -> None:
    data = compared(*versions(shop, provider(SKILLS), CLERK_HELPS))
    assert steps(data) == {
        "job-0/1": "none",
        # The clerk now makes what the hand made, in words of its own, which all that comes after then sees.
        "job-0/2": "label moved",
        "job-0/3": "prefix changed",
        "job-1/1": "label moved",
        "job-2/1": "none",
        "job-2/2": "none",
    }
    assert data["summary"]["moves"] == {
        "low": {"low": 2, "mid": 0, "high": 0},
        "mid": {"low": 2, "mid": 0, "high": 0},
        "high": {"low": 0, "mid": 0, "high": 1},
    }


def test_a_moved_label_comes_with_the_trials_that_decide_it_before_and_now(shop: Shop, provider: Start) -> None:
    data = compared(*versions(shop, provider(SKILLS), CLERK_HELPS))
    moved = data["instances"][0]["steps"][1]
    assert (moved["old"]["tier"], moved["old"]["model"]) == ("mid", "hand")
    assert (moved["new"]["tier"], moved["new"]["model"]) == ("low", "clerk")
    said = [(trial["tier"], trial["model"], trial["verdict"]) for trial in moved["old"]["decided_by"]]
    assert said == [("low", "novice", "fail"), ("mid", "hand", "pass")]
    said = [(trial["tier"], trial["model"], trial["verdict"]) for trial in moved["new"]["decided_by"]]
    assert said == [("low", "clerk", "pass")]


def test_a_label_that_rose_says_why_the_lower_tier_now_fails(shop: Shop, provider: Start) -> None:
    """From the lowest tier to the highest: also what that lowest tier's new model came to, and in which words."""
    one = provider({**SKILLS, "dunce": apprentice(0, manner=" dully")})
    assert shop.build(config(one.url, [[1]], models={**OLD, "low": ["clerk"]})).code == 0
    new = version_in(shop, "new")
    relabel(shop, new, config(one.url, [[1]], models={"low": ["novice"], "mid": ["dunce"], "high": ["master"]}))
    ((step,),) = [instance["steps"] for instance in compared(shop, new)["instances"]]
    said = [(trial["model"], trial["verdict"], trial["reason"]) for trial in step["new"]["decided_by"]]
    assert said == [("novice", "fail", "a piece is spoilt"), ("dunce", "fail", "a piece is spoilt")]
    assert stepdown("diff", str(shop.run), str(new.run)).out.splitlines()[0] == (
        "workshop/job-0/1: label moved: low -> high; before: clerk of low pass; "
        "now: novice of low fail (a piece is spoilt), dunce of mid fail (a piece is spoilt)"
    )


def test_a_lower_tier_that_was_not_probed_is_said_to_be_so(shop: Shop, provider: Start) -> None:
    one = provider({**SKILLS, "dunce": apprentice(0, manner=" dully")})
    assert shop.build(config(one.url, [[1]], models={**OLD, "low": ["clerk"]})).code == 0
    (shop.folder / "hints.jsonl").write_text('{"id": "workshop/job-0/1", "tier": "mid"}')
    hinted = {"hints": {"source": "file", "file": "hints.jsonl"}}
    new = version_in(shop, "new")
    relabel(shop, new, config(one.url, [[1]], models={**OLD, "low": ["clerk"], "mid": ["dunce"]}, protocol=hinted))
    out = stepdown("diff", str(shop.run), str(new.run)).out
    assert "now: low was not probed, since a tier above it failed, dunce of mid fail (a piece is spoilt)" in out


def test_a_tier_that_the_new_pool_has_not_is_named(shop: Shop, provider: Start) -> None:
    old, new = versions(shop, provider(SKILLS), {"low": ["novice"], "high": ["master"]}, needs=[[1]])
    out = stepdown("diff", str(old.run), str(new.run)).out
    assert "now: the pool has no tier mid, novice of low fail (a piece is spoilt)" in out


def test_a_shorter_version_loses_steps_and_a_longer_one_has_new_ones(shop: Shop, provider: Start) -> None:
    one = provider({**SKILLS, "clerk": apprentice(1, pace=2)})
    old, new = versions(shop, one, {"low": ["clerk"], "high": ["master"]}, needs=[[0, 0, 0]])
    assert steps(compared(old, new)) == {"job-0/1": "none", "job-0/2": "prefix changed", "job-0/3": "step gone"}
    assert steps(compared(new, old)) == {"job-0/1": "none", "job-0/2": "prefix changed", "job-0/3": "step new"}


def test_instances_gained_and_lost_are_listed_with_the_reason(shop: Shop, provider: Start) -> None:
    old, new = versions(shop, provider(SKILLS), OLD, needs=[[0], [1]], now=[[0], [1], [2]])
    (gained,) = (one for one in compared(old, new)["instances"] if one["change"] != "kept")
    assert (gained["id"], gained["change"], gained["reason"]) == (
        "workshop/job-2",
        "gained",
        "the old config does not select it",
    )
    lost = compared(new, old)["instances"][-1]
    assert (lost["id"], lost["change"], lost["reason"]) == (
        "workshop/job-2",
        "lost",
        "the new config does not select it",
    )


def test_a_dropped_and_a_blocked_instance_are_lost_for_their_reason(shop: Shop, provider: Start) -> None:
    one = provider({**SKILLS, "chief": apprentice(1), "clerk": lambda request: FAULTS["server_500"]})
    old, new = versions(shop, one, {"low": ["clerk"], "mid": ["hand"], "high": ["chief"]}, needs=[[2], [0]])
    dropped, blocked = compared(old, new)["instances"]
    assert (dropped["change"], dropped["reason"]) == ("lost", "dropped in the new run: no seed passed: fail")
    assert blocked["change"] == "lost"
    assert blocked["reason"].startswith("blocked in the new run: ")


def test_the_cost_of_the_new_version_is_what_was_paid_its_list_price_and_what_the_cache_saved(
    shop: Shop, provider: Start
) -> None:
    one = provider(SKILLS)
    settings = config(one.url, NEEDS, models=CLERK_HELPS)
    for tier in settings["protocol"]["pool"]["tiers"]:
        for model in tier["models"]:
            model["price"] = {"input": 1000.0}
    new = version_in(shop, "new")
    shop.build(config(one.url, NEEDS))
    before = one.count()
    relabel(shop, new, settings)
    cost = compared(shop, new)["summary"]["cost"]
    assert cost["paid_calls"] == one.count() - before
    # 11 prompt tokens a call.
    assert cost["paid_usd"] == pytest.approx(cost["paid_calls"] * 0.011)
    assert cost["list_price_usd"] == new.manifest()["needed"]["list_price_usd"]
    assert cost["saved_calls"] == new.read_json("spend.json")["calls_paid_by_earlier_runs"] > 0


# Audit verdicts


STEP = VerdictBasis("0f", "mid", 1, "ab")


@pytest.mark.parametrize(
    ("other", "carries"),
    [
        (VerdictBasis("0f", "mid", 1, "ab"), True),
        (VerdictBasis("1f", "mid", 1, "ab"), False),
        (VerdictBasis("0f", "low", 1, "ab"), False),
        (VerdictBasis("0f", "mid", 2, "ab"), False),
        (VerdictBasis("0f", "mid", 1, "a"), False),
        (VerdictBasis("0f", "mid", 1, "abc"), False),
    ],
)
def test_a_verdict_carries_over_only_if_prefix_label_and_the_models_below_are_the_same(
    other: VerdictBasis, carries: bool
) -> None:
    assert carries_over(STEP, other) is carries


def carried(data: Mapping[str, Any]) -> list[str]:
    return [
        step["id"].partition("/")[2]
        for instance in data["instances"]
        for step in instance["steps"]
        if step["audit_carries"]
    ]


ALL = ["job-0/1", "job-0/2", "job-0/3", "job-1/1", "job-2/1", "job-2/2"]
LOW, MID, HIGH = ["novice"], ["hand"], ["master"]


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [
        (OLD, ALL),
        # Labels and prefixes stay, but a model was added to the tier below the high labels, ...
        ({"low": LOW, "mid": ["hand", "clerk"], "high": HIGH}, ["job-0/1", "job-0/2", "job-1/1", "job-2/2"]),
        # ... or to that below the middle ones.
        ({"low": ["novice", "dunce"], "mid": MID, "high": HIGH}, ["job-0/1", "job-0/3", "job-2/1", "job-2/2"]),
        # What moved, and what came to stand behind it, is another question.
        (CLERK_HELPS, ["job-0/1", "job-2/1", "job-2/2"]),
        # The label's own tier may change.
        ({"low": LOW, "mid": MID, "high": ["master", "chief"]}, ALL),
    ],
)
def test_diff_says_of_each_step_whether_its_audit_verdict_carries_over(
    shop: Shop, provider: Start, tiers: Tiers, expected: list[str]
) -> None:
    data = compared(*versions(shop, provider({**SKILLS, "dunce": apprentice(0, manner=" dully")}), tiers))
    assert carried(data) == expected
    assert data["summary"]["audit_carries"] == len(expected)


# What a person sees


def test_a_pipe_gets_plain_lines_and_a_terminal_a_table(
    shop: Shop, provider: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = versions(shop, provider(SKILLS), CLERK_HELPS)
    plain = stepdown("diff", str(old.run), str(new.run)).out
    assert plain.splitlines()[:3] == [
        "workshop/job-0/2: label moved: mid -> low; before: novice of low fail (a piece is spoilt), hand of mid pass; "
        "now: clerk of low pass",
        "workshop/job-0/3: prefix changed: high -> high",
        "workshop/job-1/1: label moved: mid -> low; before: novice of low fail (a piece is spoilt), hand of mid pass; "
        "now: clerk of low pass",
    ]
    assert "steps: 3 unchanged, 2 label moved, 1 prefix changed, 0 step gone, 0 step new" in plain
    assert "saved by the cache" in plain
    assert "\x1b" not in plain
    assert "┃" not in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "┃" in stepdown("diff", str(old.run), str(new.run)).out


def test_a_run_that_is_not_there_or_was_never_begun_is_refused(shop: Shop, provider: Start) -> None:
    settings = config(provider(SKILLS).url, [[0]])
    refused(stepdown("diff", str(shop.run), str(shop.run)), "no run is here")
    wrong = config(provider(SKILLS).url, [[0]])
    wrong["protocol"]["workloads"] *= 2
    shop.build(wrong)
    refused(stepdown("diff", str(shop.run), str(shop.run)), "never begun")
    shop.build(settings)
    (shop.run / "ledger.sqlite").write_bytes(b"not a database" * 1000)
    refused(stepdown("diff", str(shop.run), str(shop.run)), "ledger.sqlite")
