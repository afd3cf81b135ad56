"""An estimate's best and worst are what the search takes in its extreme cases, and its bounds otherwise."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stepdown.builder.config.price import Price
from stepdown.builder.engine.search import SearchRules, search
from stepdown.builder.estimate.arithmetic import (
    AmountByModel,
    SearchSettings,
    StepSize,
    StepSizes,
    best,
    expected,
    label_shares,
    worst,
)
from stepdown.builder.records import Outcome, Prefix, Response, Step, Trajectory, Trial, Verdict
from tests import workshop
from tests.conftest import Result, Shop, stepdown
from tests.provider import FAULTS, Answer, Failing, Provider

Start = Callable[..., Provider]
NOWHERE = "http://127.0.0.1:9/v1"
"""Nobody listens there: what an estimate needs, it has without a call."""


# The arithmetic, against the search

any_settings = st.builds(
    lambda cascades, passes, more, early: SearchSettings(
        [[f"{tier}-{n}" for n in range(size)] for tier, size in enumerate(cascades)], passes, passes + more, early
    ),
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.integers(1, 2),
    st.integers(0, 1),
    st.booleans(),
)


def sizes(steps: int) -> StepSizes:
    return tuple(StepSize(100 * number, 10) for number in range(1, steps + 1))


def taken(steps: int, settings: SearchSettings, passes: Callable[[Trial], bool], hint: int | None = None) -> int:
    """The calls that the search takes where nothing makes a trajectory shorter and no answer is shared."""
    one = Prefix.start([{"role": "user", "content": "x"}])
    current: Trajectory = tuple(Step(one, Response("x"), "strong") for _ in range(steps))
    calls = 0

    def run(before: Trajectory, trial: Trial) -> Outcome:
        nonlocal calls
        accepted = passes(trial)
        calls += 1 if settings.early and not accepted else 1 + len(before) - trial.step
        return Outcome(Verdict.PASS, tuple(before)) if accepted else Outcome(Verdict.FAIL)

    search(
        current,
        "strong",
        SearchRules(settings.cascades, passes=settings.passes, of=settings.of),
        lambda step: hint,
        run,
    )
    return calls


@given(any_settings, st.integers(1, 8), st.integers())
def test_what_the_search_takes_lies_between_best_and_worst(settings: SearchSettings, steps: int, seed: int) -> None:
    draw = random.Random(seed)
    real = taken(steps, settings, lambda trial: draw.random() < 0.4)
    assert best(sizes(steps), "strong", settings).calls <= real <= worst(sizes(steps), "strong", settings).calls


@given(any_settings, st.integers(1, 8))
def test_where_all_passes_or_fails_the_search_takes_the_best_and_the_worst(
    settings: SearchSettings, steps: int
) -> None:
    late = SearchSettings(settings.cascades, settings.passes, settings.of, early=False)
    assume(sum(map(len, late.cascades)) * late.failing >= late.passes)
    assert taken(steps, late, lambda trial: True) == best(sizes(steps), "strong", late).calls
    # A candidate that has failed at its last sample only has taken all of them.
    slow = taken(steps, late, lambda trial: trial.sample.number < late.passes - 1)
    assert slow == worst(sizes(steps), "strong", late).calls


@given(any_settings, st.integers(1, 8), st.integers(0, 3))
def test_the_expected_calls_of_a_certain_tier_are_those_of_the_search(
    settings: SearchSettings, steps: int, tier: int
) -> None:
    tier = min(tier, len(settings.cascades))
    shares = [float(number == tier) for number in range(len(settings.cascades) + 1)]
    real = taken(steps, settings, lambda trial: trial.tier >= tier)
    assert expected(sizes(steps), "strong", settings, shares).calls == pytest.approx(real)


@given(any_settings, st.integers(1, 8), st.integers(0, 3), st.integers(0, 3))
def test_the_expected_calls_after_a_hint_are_those_of_the_search(
    settings: SearchSettings, steps: int, tier: int, hint: int
) -> None:
    strong = len(settings.cascades)
    tier, hint = min(tier, strong), min(hint, strong)
    shares = [float(number == tier) for number in range(strong + 1)]
    hints = [[float(number == hint) for number in range(strong + 1)]] * (strong + 1)
    real = taken(steps, settings, lambda trial: trial.tier >= tier, hint)
    assert expected(sizes(steps), "strong", settings, shares, hints).calls == pytest.approx(real)


@given(any_settings, st.integers(1, 8), st.lists(st.floats(0.01, 1), min_size=4, max_size=4))
def test_the_expected_lies_between_the_best_and_the_worst(
    settings: SearchSettings, steps: int, weights: list[float]
) -> None:
    used = weights[: len(settings.cascades) + 1]
    shares = [weight / sum(used) for weight in used]
    mean = expected(sizes(steps), "strong", settings, shares).calls
    assert best(sizes(steps), "strong", settings).calls <= mean + 1e-9
    assert mean <= worst(sizes(steps), "strong", settings).calls + 1e-9


POOL = [["a", "b"], ["c", "d", "e"], ["strong", "other"]]
"""More models than the cascades of two tiers, of two models each, would try."""


def taken_with_probes(steps: int, settings: SearchSettings, passes: Callable[[Trial], bool]) -> int:
    """The calls of a search and of the probes of what it has not tried, one after another."""
    tried: set[tuple[int, str]] = set()

    def noting(trial: Trial) -> bool:
        tried.add((trial.step, trial.model))
        return passes(trial)

    calls = taken(steps, settings, noting)
    for step in range(1 if settings.probe == "all" else steps, steps + 1):
        for tier, models in enumerate(POOL):
            for model in models:
                if (step, model) not in tried:
                    lost = settings.early and not passes(Trial(step, tier, model, steps))
                    calls += 1 if lost else 1 + steps - step
    return calls


probing = st.builds(
    lambda cascade, passes, more, early, probe: SearchSettings(
        [tier[:cascade] for tier in POOL[:-1]], passes, passes + more, early, probe=probe, pool=POOL
    ),
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(0, 1),
    st.booleans(),
    st.sampled_from(["last", "all"]),
)


@given(probing, st.integers(1, 6), st.integers())
def test_a_search_with_probes_takes_calls_between_best_and_worst(
    settings: SearchSettings, steps: int, seed: int
) -> None:
    draw = random.Random(seed)
    real = taken_with_probes(steps, settings, lambda trial: draw.random() < 0.4)
    assert best(sizes(steps), "strong", settings).calls <= real <= worst(sizes(steps), "strong", settings).calls


@given(probing, st.integers(1, 6))
def test_where_all_passes_or_fails_a_search_with_probes_takes_the_best_and_the_worst(
    settings: SearchSettings, steps: int
) -> None:
    late = replace(settings, early=False)
    assume(sum(map(len, late.cascades)) * late.failing >= late.passes)
    slow = taken_with_probes(steps, late, lambda trial: trial.sample.number < late.passes - 1)
    assert slow == worst(sizes(steps), "strong", late).calls
    if late.passes <= late.failing:  # else a candidate that fails takes fewer samples than one that passes
        assert taken_with_probes(steps, late, lambda trial: True) == best(sizes(steps), "strong", late).calls


@given(probing, st.integers(1, 6), st.integers(0, 2))
def test_the_expected_probes_of_a_certain_tier_are_those_that_its_search_leaves(
    settings: SearchSettings, steps: int, tier: int
) -> None:
    shares = [float(number == tier) for number in range(3)]
    real = taken_with_probes(steps, settings, lambda trial: trial.tier >= tier)
    assert expected(sizes(steps), "strong", settings, shares).calls == pytest.approx(real)


@pytest.mark.parametrize(
    ("steps", "early", "per_label"), [(10, False, 16.05), (10, True, 6.64), (30, False, 44.62), (30, True, 14.77)]
)
def test_the_planted_corpus_is_expected_to_cost_what_the_protocol_takes_for_it(
    steps: int, early: bool, per_label: float
) -> None:
    """The figures of a corpus of several thousand steps, whose tiers were drawn with these shares."""
    settings = SearchSettings([["a", "b", "c"], ["d", "e", "f"], ["g", "h", "i"]], early=early)
    mean = expected(sizes(steps), "strong", settings, [0.71, 0.06, 0.05, 0.18]).calls / steps
    assert mean == pytest.approx(per_label, rel=0.03)


def test_tokens_and_money_are_those_of_the_calls() -> None:
    """Two steps, one candidate that passes: it answers both prefixes, the strong model the second one again."""
    amounts: AmountByModel = best(sizes(2), "strong", SearchSettings([["cheap"]]))
    cheap, strong = amounts.by_model["cheap"], amounts.by_model["strong"]
    assert (cheap.calls, cheap.prompt, cheap.output) == (2, 300, 20)
    assert (strong.calls, strong.prompt, strong.output) == (1, 200, 10)
    assert strong.usd(Price(input=5, output=25)) == pytest.approx((200 * 5 + 10 * 25) / 1e6)


@pytest.mark.parametrize("labels", [(239, 8, 1, 0), (94, 33, 41, 168), None])
@pytest.mark.parametrize("tiers", [2, 3, 4, 5, 9])
def test_shares_are_shares(labels: tuple[int, int, int, int] | None, tiers: int) -> None:
    shares = label_shares(labels, tiers)
    assert len(shares) == tiers
    assert sum(shares) == pytest.approx(1)
    assert min(shares) >= 0


# The command, against a build


class Silent(workshop.Workshop):
    """A workshop without pseudo-models: how long its seeds are is not known."""

    answer = None  # type: ignore[assignment]


def estimated(shop: Shop, config: dict[str, Any], *options: str) -> dict[str, Any]:
    result = stepdown("estimate", str(shop.write(config, "estimated.yaml")), "--json", *options)
    assert result.code == 0, result.err
    made: dict[str, Any] = json.loads(result.out)
    return made


def total(made: dict[str, Any], name: str) -> int:
    calls: int = made["total"][name]["calls"]
    return calls


THREE = {"low": ["novice", "clerk"], "mid": ["hand"], "high": ["master"]}
SKILLED = {**workshop.ABILITIES, "clerk": workshop.apprentice(0, manner=" or so")}


def settings(url: str, needs: Sequence[Sequence[int]], **changes: Any) -> dict[str, Any]:
    return workshop.config(url, needs, models=THREE, **changes)


@pytest.mark.parametrize("rules", [{}, {"acceptance": {"passes": 1, "of": 2}, "confirm": 2}])
@pytest.mark.parametrize(("skill", "name"), [(0, "best"), (5, "worst")])
def test_a_build_takes_the_best_or_the_worst_in_the_extreme_cases(
    shop: Shop, provider: Start, skill: int, name: str, rules: dict[str, Any]
) -> None:
    one = provider(SKILLED)
    config = settings(one.url, [[skill] * 4, [skill] * 2], protocol={"rules": rules})
    made = estimated(shop, config)
    assert one.count() == 0, "an estimate costs nothing"
    assert shop.build(config).code == 0
    if name == "best":
        assert total(made, "best") <= made["where_seeds_pass"]["calls"] == one.count()
        made = estimated(shop, config, "--run", str(shop.run))  # now the seeds are known to pass
    assert total(made, name) == one.count()
    by_model = {line["model"]: line[name]["calls"] for line in made["models"]}
    assert by_model == {model: one.count(model) for model in by_model}


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("needs", [[[0, 1, 2, 0], [1, 0]], [[5] * 6]])
def test_a_build_takes_no_less_than_the_best_and_no_more_than_the_worst(
    shop: Shop, provider: Start, needs: list[list[int]], early: bool
) -> None:
    one = provider(SKILLED)
    fresh = {"rules": {"confirm": 1, "control": 1}}
    config = settings(one.url, needs, options={"early": early}, protocol=fresh)
    made = estimated(shop, config)
    assert shop.build(config).code == 0
    assert total(made, "best") <= one.count() <= total(made, "worst")
    assert total(made, "best") <= total(made, "expected") <= total(made, "worst")
    spent = shop.read_json("spend.json")
    # The reference had foreseen the seeds' lengths; that they pass, only the run can say.
    beside = estimated(shop, config, "--run", str(shop.run))
    assert total(beside, "needed") == total(beside, "paid") == one.count() == spent["calls"]
    assert total(made, "best") <= total(beside, "best") == made["where_seeds_pass"]["calls"]


def test_hints_of_a_model_are_counted(shop: Shop, provider: Start) -> None:
    one = provider({**SKILLED, "adviser": lambda request: Answer("dunno")})
    adviser = {"hints": {"source": "model", "model": {"name": "adviser", "model": "openai/adviser"}}}
    config = settings(one.url, [[0] * 3], protocol=adviser)
    made = estimated(shop, config)
    assert made["models"][-1] == {
        "tier": "hints",
        "model": "adviser",
        **{name: made["models"][-1][name] for name in ("best", "expected", "worst")},
    }
    assert shop.build(config).code == 0
    assert made["where_seeds_pass"]["calls"] == one.count()


@pytest.mark.parametrize("source", ["reference", "import"])
def test_seeds_that_are_there_are_played_to_see_how_long_they_are(shop: Shop, source: str) -> None:
    """Two jobs of which the second has no seed that passes."""
    config = settings(NOWHERE, [[0, 0, 0], [99]] if source == "reference" else [[0, 0, 0], [0]])
    seeds: dict[str, Any] = {"source": source}
    if source == "import":
        seeds["file"] = "seeds.jsonl"
        done = [{"content": "made 1"}] * 3
        (shop.folder / "seeds.jsonl").write_text(
            json.dumps({"instance_id": "job-0", "model": "master", "steps": done})
            + "\n"
            + json.dumps({"instance_id": "job-1", "model": "master", "steps": [{"content": "spoilt"}]})
        )
    else:
        config["protocol"]["pool"]["tiers"][2]["models"] = [{"name": "expert", "model": "workload/reference"}]
    config["protocol"]["workloads"][0]["seeds"] = seeds
    made = estimated(shop, config)
    (workload,) = made["workloads"]
    assert (workload["instances"], workload["steps"], workload["without_seed"]) == (2, 3, 1)
    made_by_reference = 3 if source == "reference" else 0
    assert total(made, "best") == made_by_reference + 3 + 2 + 1
    assert not list(shop.folder.glob("**/cache*"))


def unknown(shop: Shop, url: str = NOWHERE) -> dict[str, Any]:
    config = settings(url, [[0, 0, 0], [0]])
    config["protocol"]["workloads"][0]["harness"] = "tests.test_estimate:Silent"
    return config


def test_a_length_that_nothing_tells_is_asked_for(shop: Shop) -> None:
    result = stepdown("estimate", str(shop.write(unknown(shop))))
    assert result.code == 2
    assert "protocol.workloads.0.seeds: how long the seeds of 'workshop' will be is not known" in result.err
    assert "`--steps N`" in result.err


def test_a_length_may_be_assumed_and_is_said_to_be(shop: Shop) -> None:
    made = estimated(shop, unknown(shop), "--steps", "4")
    assert made["workloads"][0]["steps"] == 8
    assert made["where_seeds_pass"]["calls"] == 2 * (4 + 4 + 3 + 2 + 1)
    assert any("2 assumed to take 4 steps" in line for line in made["assumptions"])


def test_a_run_of_the_workload_tells_the_lengths(shop: Shop, provider: Start) -> None:
    one = provider(SKILLED)
    assert shop.build(unknown(shop, one.url)).code == 0
    more = unknown(shop)
    more["protocol"]["workloads"][0]["source"]["needs"].append([0, 0])
    made = estimated(shop, more, "--run", str(shop.run))
    assert made["workloads"][0]["steps"] == 3 + 1 + 2, "an instance that the run does not have is as its mean"
    assert total(made, "needed") == one.count()


def test_the_best_is_a_lower_bound_where_seeds_fail(shop: Shop, provider: Start) -> None:
    one = provider(SKILLED)
    config = settings(one.url, [[99] * 3, [99, 0], [0]])
    made = estimated(shop, config)
    assert shop.build(config).code == 0
    assert total(made, "best") <= one.count() <= total(made, "worst")
    assert one.count() < made["where_seeds_pass"]["calls"]


def test_a_run_tells_which_seeds_fail_and_what_their_attempts_took(shop: Shop, provider: Start) -> None:
    one = provider(SKILLED)
    config = settings(one.url, [[99], [0, 0], [99, 0]])
    assert shop.build(config).code == 0
    made = estimated(shop, config, "--run", str(shop.run))
    (workload,) = made["workloads"]
    assert (workload["without_seed"], workload["steps"]) == (2, 2)
    # Two searched steps pass at once; beside them the seed's two calls and those of the attempts that failed.
    assert total(made, "best") == one.count() == total(made, "expected")
    more = settings(NOWHERE, [[99], [0, 0], [99, 0], [0, 0], [0, 0], [0, 0]])
    wider = estimated(shop, more, "--run", str(shop.run))
    failed = (one.count() - 5) / 2
    assert wider["workloads"][0]["failing"] == pytest.approx(2 / 3)
    assert total(wider, "expected") == pytest.approx(one.count() + 3 * (5 / 3 + failed * 2 / 3), abs=1)


def test_a_run_tells_the_shares_of_labels_and_how_long_answers_are(shop: Shop, provider: Start) -> None:
    one = provider({**SKILLED, "master": lambda request: replace(SKILLED["master"](request), usage=LONG)})
    config = settings(one.url, [[1, 1], [0, 1]])
    config["protocol"]["pool"]["tiers"][2]["models"][0]["price"] = {"output": 1000.0}
    assert shop.build(config).code == 0
    made = estimated(shop, config, "--run", str(shop.run))
    assert made["workloads"][0]["shares"] == [0.25, 0.75, 0.0]
    assert any("expected labels, as the run's: 25.0% low, 75.0% mid, 0.0% high" in line for line in made["assumptions"])
    (master,) = [line for line in made["models"] if line["model"] == "master"]
    assert master["expected"]["usd"] == pytest.approx(master["expected"]["calls"] * 0.9, rel=0.1)


LONG = {"prompt_tokens": 11, "completion_tokens": 900, "total_tokens": 911}


def test_a_run_tells_how_many_errors_to_expect(shop: Shop, provider: Start) -> None:
    one = provider({**SKILLED, "novice": Failing(2, FAULTS["server_503"], workshop.apprentice(0))})
    config = settings(one.url, [[0, 0]])
    assert shop.build(config).code == 0
    lines = estimated(shop, config, "--run", str(shop.run))["assumptions"]
    assert any(line.startswith("the run met 2 errors by another try, at 5 calls: 0.400 a call") for line in lines)


def run_of(shop: Shop, *options: str) -> Result:
    return stepdown("estimate", str(shop.write(settings(NOWHERE, [[0, 0]]), "estimated.yaml")), *options)


def test_where_it_is_piped_the_table_is_plain(shop: Shop) -> None:
    result = run_of(shop)
    assert result.code == 0
    assert result.err == "loading workload tests.workshop:Workshop from tests/workshop.py: its code runs here\n"
    rows = [line.split("\t") for line in result.out.splitlines() if "\t" in line]
    assert rows[0] == ["tier", "model", *(f"{n} {u}" for n in ("best", "expected", "worst") for u in ("calls", "usd"))]
    assert [row[:3] for row in rows[1:]] == [
        ["low", "novice", "0"],
        ["low", "clerk", "0"],
        ["mid", "hand", "0"],
        ["high", "master", "1"],
        ["all", "", "1"],
    ]
    assert result.out.isprintable() or "\x1b" not in result.out


@pytest.mark.parametrize(
    ("options", "words"),
    [(("--steps", "0"), "0 is not in the range"), (("--run", "nowhere"), "nowhere: no run is here")],
)
def test_wrong_options_are_refused(shop: Shop, options: tuple[str, ...], words: str) -> None:
    result = run_of(shop, *options)
    assert result.code == 2
    assert words in result.err
