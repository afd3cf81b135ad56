"""Which steps are sampled: the same ones anywhere, at any time, however the run came about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from stepdown.audit.sampling import SamplingPlan, assignments, sampled_steps
from stepdown.audit.store import AuditStore
from stepdown.audit.verdicts import AuditStep
from stepdown.builder.artifacts.sampling import draw_of
from tests import workshop
from tests.audit.reviewing import above_lowest, read_steps, review, rows, tight
from tests.conftest import Shop, stepdown
from tests.provider import Provider


def steps(count: int, tiers: tuple[str, ...] = ("low", "mid", "high")) -> list[AuditStep]:
    return [
        AuditStep(
            f"made/job-{n // 5}/{n % 5 + 1}", "made", f"job-{n // 5}", n % 5 + 1, tiers[n % len(tiers)], 0, False, ""
        )
        for n in range(count)
    ]


def test_a_steps_draw_is_what_it_was_on_the_first_machine() -> None:
    assert draw_of(0, "bfcl/multi_turn_base_0/1") == 4763820150382874945
    assert draw_of(7, "bfcl/multi_turn_base_0/1") == 10502253691006542343
    assert draw_of(0, "swebench/django__django-11099/7") == 1064340749247142109
    assert draw_of(0, "made/é/3") == 6847994745157116520


def test_the_sample_of_a_seed_is_what_it_was_on_the_first_machine() -> None:
    found = [step.id for step in sampled_steps(SamplingPlan(0.05, 0), lambda: steps(100))]
    assert found == ["made/job-4/2", "made/job-7/3", "made/job-16/4", "made/job-19/4"]


@given(st.integers(0, 300), st.integers(0, 300), st.floats(0, 1), st.integers(0, 9))
def test_a_run_that_grows_keeps_its_sample(before: int, more: int, rate: float, seed: int) -> None:
    plan = SamplingPlan(rate, seed)
    early = {step.id for step in sampled_steps(plan, lambda: steps(before))}
    late = {step.id for step in sampled_steps(plan, lambda: steps(before + more))}
    assert early == late & {step.id for step in steps(before)}


@given(st.integers(0, 60), st.integers(0, 20), st.sampled_from([0.0, 0.1, 0.9]), st.booleans())
def test_a_minimum_is_filled_by_the_smallest_draws_of_each_stratum(
    count: int, minimum: int, rate: float, by_tier: bool
) -> None:
    plan = SamplingPlan(rate, 3, minimum, "tier" if by_tier else "workload")
    found = {step.id for step in sampled_steps(plan, lambda: steps(count))}
    strata = {plan.stratum(step) for step in steps(count)}
    for stratum in strata:
        inside = sorted((draw_of(3, step.id), step.id) for step in steps(count) if plan.stratum(step) == stratum)
        below_rate = [draw < rate * 2**64 for draw, _ in inside].count(True)
        wanted = {name for _, name in inside[: max(minimum, below_rate)]}
        assert {name for _, name in inside} & found == wanted


def test_the_command_and_the_queue_file_of_a_build_ask_people_about_the_same_steps(run: Path) -> None:
    assert stepdown("audit", "sample", str(run)).code == 0
    assert [step.id for step in above_lowest(run)] == [row["id"] for row in rows(run / "audit_queue.jsonl")]


def test_a_step_once_sampled_stays_whatever_is_drawn_later(run: Path) -> None:
    assert stepdown("audit", "sample", str(run), "--rate", "0.5").code == 0
    first = read_steps(run)
    assert stepdown("audit", "sample", str(run), "--rate", "0.01").code == 0
    assert read_steps(run) == first
    assert stepdown("audit", "sample", str(run), "--rate", "0", "--minimum", "2", "--strata", "tier").code == 0
    assert read_steps(run)[: len(first)] == first
    assert min(Counter(step.tier for step in read_steps(run)).values()) >= 2


def test_a_run_that_was_stopped_and_resumed_has_the_sample_of_one_that_was_not(
    shop: Shop, tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    url, needs = provider().url, [[0, 1], [1, 5], [0, 0], [5, 1]]
    settings = workshop.config(url, needs, operation={"budget": {"calls": 16}})
    assert shop.build(settings).code == 3
    assert stepdown("audit", "sample", str(shop.run), "--rate", "0.8").code == 0
    early = read_steps(shop.run)
    more = shop.write(workshop.config(url, needs), "more.yaml")
    assert shop.resume("--config", str(more)).code == 0
    assert stepdown("audit", "sample", str(shop.run), "--rate", "0.8").code == 0
    (tmp_path / "other").mkdir()
    whole = Shop(tmp_path / "other")
    assert whole.build(workshop.config(url, needs)).code == 0
    assert stepdown("audit", "sample", str(whole.run), "--rate", "0.8").code == 0
    assert 0 < len(early) < len(read_steps(shop.run))
    assert {step.id for step in read_steps(shop.run)} == {step.id for step in read_steps(whole.run)}


def test_workloads_of_one_turn_are_left_out_unless_they_are_named(
    shop: Shop, provider: Callable[..., Provider]
) -> None:
    settings = workshop.config(provider().url, [[0], [1]])
    settings["protocol"]["workloads"][0]["harness"] = "tests.audit.test_sampling:OneTurn"
    assert shop.build(settings).code == 0
    refused = stepdown("audit", "sample", str(shop.run), "--rate", "1")
    assert (refused.code, "labelled yet" in refused.err) == (2, True)
    unknown = stepdown("audit", "sample", str(shop.run), "--include", "shop")
    assert (unknown.code, "no workload 'shop': workshop" in unknown.err) == (2, True)
    assert stepdown("audit", "sample", str(shop.run), "--rate", "1", "--include", "workshop").code == 0
    assert len(read_steps(shop.run)) == 2


class OneTurn(workshop.Workshop):
    multi_step = False


def test_steps_are_shared_out_to_reviewers_with_an_overlap(run: Path) -> None:
    given = ("audit", "sample", str(run), "--rate", "1")
    assert stepdown(*given, "--reviewers", "ann, bob", "--overlap", "0.25").code == 0
    found = list(assignments((step.id for step in above_lowest(run)), ("ann", "bob"), 0.25, 0))
    per_step = Counter(step for _, step in found)
    assert set(per_step) == {step.id for step in above_lowest(run)}
    assert 0 < sum(count == 2 for count in per_step.values()) < len(per_step)
    review(run, "ann", tight)
    with AuditStore(run) as store:
        assert {item.step.id for item in store.queue("ann")} == {step for who, step in found if who == "ann"}
        assert store.progress("ann").done == store.progress("ann").total
        assert store.progress("bob").done == 0
    assert stepdown(*given).code == 0  # once more: nothing is assigned anew
    with AuditStore(run) as store:
        assert {item.step.id for item in store.queue("bob")} == {step for who, step in found if who == "bob"}
    late = stepdown("audit", "sample", str(run), "--reviewers", "cy,dan")
    assert (late.code, "no step is left for cy, dan" in late.err) == (0, True)


def test_wrong_options_are_told_in_a_line(run: Path, tmp_path: Path) -> None:
    for options, words in (
        (["--reviewers", "ann,ann"], "--reviewers: a reviewer is named twice"),
        (["--reviewers", "ann,a/b"], "no slashes"),
        (["--reviewers", "ann,"], "--reviewers: a reviewer's name is"),
        (["--from", str(tmp_path)], "relabels no other one"),
        (["--rate", "1.5"], "0<=x<=1"),
        (["--rate", "nan"], "is not a number"),
        (["--reviewers", "ann", "--overlap", "NaN"], "is not a number"),
    ):
        result = stepdown("audit", "sample", str(run), *options)
        assert (result.code, words in result.err) == (2, True), result.err
    none = stepdown("audit", "sample", str(run), "--rate", "0")
    assert (none.code, "no step is below the rate" in none.err) == (0, True)
    held = stepdown("publish", str(run), "--out", str(tmp_path / "release"), "--holdout", "nan")
    assert (held.code, "is not a number" in held.err) == (2, True)
    nowhere = stepdown("audit", "sample", str(tmp_path / "nowhere"))
    assert (nowhere.code, "no run is here" in nowhere.err) == (2, True)
