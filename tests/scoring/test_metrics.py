"""The five metrics, the accounting variants, and what must hold of them whatever is predicted."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepdown.scoring.accounting import Prices, Steps
from stepdown.scoring.rates import Rate, read_rates
from stepdown.scoring.steps import ScoredStep, ScoredTrajectory
from stepdown.scoring.tally import COLUMNS, METRICS, Batch, metrics, outcomes, random_sums, sums
from tests.banks import TIERS

LOW, MID, MID_HIGH, HIGH = range(4)
NONE = -1
PAPER = read_rates(TIERS)


def batch(labels: Sequence[Sequence[int]], rates: Sequence[Rate] = PAPER, sizes: Sequence[int] = (4_000,)) -> Batch:
    """Trajectories with these labels; every step adds 200 tokens to its prompt and is answered by 500."""
    found: list[ScoredTrajectory] = []
    for tiers, size in zip(labels, itertools.cycle(sizes), strict=False):
        made = tuple(
            ScoredStep(str(n), label, size + 200 * n, size + 200 * (n - 1) if n else 0, 500, None)
            for n, label in enumerate(tiers)
        )
        found.append(ScoredTrajectory("b", str(len(found)), "g", "", made))
    steps = Steps.of(found)
    flat = np.array([label for tiers in labels for label in tiers], dtype=np.int64)
    return Batch.of(steps, flat, Prices(steps, rates), len(TIERS))


def scored(made: Batch, predicted: Sequence[int]) -> dict[str, float]:
    """METRICS of predictions over one workload."""
    total = sums(made, outcomes(made, np.array(predicted))).sum(axis=0)
    each, overall = metrics(total[None, :])
    assert np.array_equal(each[0], overall, equal_nan=True)
    return dict(zip(METRICS, overall.tolist(), strict=True))


def test_always_high_passes_everything_and_saves_nothing() -> None:
    made = batch([[LOW, HIGH], [MID], [HIGH, HIGH, LOW]])
    found = scored(made, [HIGH] * 6)
    assert (found["RowPass"], found["TrajPass"], found["CostSave E"]) == (100, 100, 0)
    assert found["RowExact"] == pytest.approx(100 * 3 / 6)
    assert found["Combined"] == pytest.approx((100 + 50 + 100 + 0) / 4)


def test_the_rule_based_routers_error_counts_give_its_row_exact() -> None:
    # 107 of 800 exact below high, 649 one tier up, 21 jumps to high, 23 below; of 170 labelled high 7 found.
    pairs = [
        *[(LOW, LOW)] * 107,
        *[(LOW, MID)] * 649,
        *[(LOW, HIGH)] * 21,
        *[(MID, LOW)] * 23,
        *[(HIGH, HIGH)] * 7,
        *[(HIGH, LOW)] * 163,
    ]
    found = scored(batch([[label] for label, _ in pairs]), [predicted for _, predicted in pairs])
    assert round(found["RowExact"], 2) == 11.75
    assert found["RowPass"] == pytest.approx(100 * (970 - 23 - 163) / 970)


def test_traj_pass_counts_rows_not_trajectories() -> None:
    found = scored(batch([[LOW, LOW, HIGH], [LOW]]), [LOW, LOW, LOW, LOW])
    assert (found["RowPass"], found["TrajPass"]) == (75, 25)


def test_a_row_without_a_prediction_fails_itself_and_its_trajectory_and_costs_what_high_costs() -> None:
    made = batch([[LOW, LOW], [LOW]])
    found, same = scored(made, [LOW, NONE, LOW]), outcomes(made, np.array([LOW, HIGH, LOW]))
    assert found["RowPass"] == pytest.approx(200 / 3)
    assert found["RowExact"] == pytest.approx(200 / 3)
    assert found["TrajPass"] == pytest.approx(100 / 3)
    assert outcomes(made, np.array([LOW, NONE, LOW])).cost.tolist() == same.cost.tolist()


def test_the_variants_worked_out_by_hand() -> None:
    # One step each, so all is cold: 1,000 tokens written and 0 for answers; a row costs 1, 2, 3 or 10 by tier.
    rates = tuple(Rate(input=0, cache_read=0, cache_write=price, output=1e-9) for price in (1e3, 2e3, 3e3, 1e4))
    made = batch([[LOW], [LOW], [MID], [HIGH], [HIGH, LOW]], rates, sizes=(1_000,))
    # The last trajectory's second step is 1,200 tokens long: 12 at high, 1.2 at low, cold (its label follows high).
    found = scored(made, [LOW, MID, LOW, HIGH, MID, MID])
    high_all = 10 + 10 + 10 + 10 + (10 + 2)  # all-high reads its second prompt's 1,000 tokens for nothing
    passing_below = (10 - 1) + (10 - 2) + (2 - 0.2 * 2)  # rows 1, 2 and 6: the last one is warm at mid
    assert found["CostSave A"] == pytest.approx(100 * passing_below / ((10 - 1) + (10 - 1) + (2 - 1.2)))
    whole = (10 - 1) + (10 - 2) - 1 + (10 - 10) - 2 - 0.4
    assert found["CostSave B"] == pytest.approx(100 * whole / ((10 - 1) + (10 - 1) + (10 - 2) + 0 + 0 + (2 - 1.2)))
    by_step_below = (10 - 1) + (10 - 2) - 1 + (2 - 0.4)
    assert found["CostSave C"] == pytest.approx(100 * by_step_below / (10 + 10 + 10 + 2))
    assert found["CostSave D"] == pytest.approx(100 * (by_step_below + 0 - 2) / high_all)
    assert found["CostSave E"] == pytest.approx(100 * whole / high_all)


def test_cost_save_is_weighted_by_each_workloads_rows() -> None:
    one, other = batch([[LOW]] * 3), batch([[HIGH]], sizes=(100_000,))
    table = np.stack(
        [
            sums(one, outcomes(one, np.array([LOW] * 3))).sum(axis=0),
            sums(other, outcomes(other, np.array([HIGH]))).sum(axis=0),
        ]
    )
    each, overall = metrics(table)
    place = METRICS.index("CostSave E")
    assert each[1][place] == 0
    assert overall[place] == pytest.approx(0.75 * each[0][place])


def test_a_workload_where_nothing_could_be_saved_has_no_weight_in_variants_a_to_c() -> None:
    made = batch([[HIGH]])
    found = scored(made, [HIGH])
    assert all(np.isnan(found[f"CostSave {variant}"]) for variant in "ABC")
    assert (found["CostSave D"], found["CostSave E"]) == (0, 0)


tiers = st.integers(LOW, HIGH)
corpora = st.lists(st.lists(tiers, min_size=1, max_size=5), min_size=1, max_size=6)


@given(corpora, st.data())
@settings(deadline=None)
def test_no_prediction_saves_more_than_all_or_passes_fewer_rows_than_whole_trajectories(
    labels: list[list[int]], data: st.DataObject
) -> None:
    count = sum(map(len, labels))
    predicted = data.draw(st.lists(st.integers(NONE, HIGH), min_size=count, max_size=count))
    found = scored(batch(labels), predicted)
    assert found["CostSave E"] <= 100
    assert found["RowExact"] <= found["RowPass"] + 1e-9
    assert found["TrajPass"] <= found["RowPass"] + 1e-9


@given(corpora)
@settings(deadline=None)
def test_the_labels_themselves_score_100_but_for_cost(labels: list[list[int]]) -> None:
    found = scored(batch(labels), [label for tiers in labels for label in tiers])
    assert (found["RowPass"], found["RowExact"], found["TrajPass"]) == (100, 100, 100)
    assert np.isnan(found["CostSave A"]) or found["CostSave A"] == pytest.approx(100)


@given(corpora)
@settings(deadline=None)
def test_always_high_saves_nothing_in_any_corpus(labels: list[list[int]]) -> None:
    flat = [label for tiers in labels for label in tiers]
    found = scored(batch(labels), [HIGH] * len(flat))
    assert (found["RowPass"], found["TrajPass"], found["CostSave E"]) == (100, 100, 0)
    assert found["RowExact"] == pytest.approx(100 * flat.count(HIGH) / len(flat))


@given(st.lists(st.lists(tiers, min_size=1, max_size=3), min_size=1, max_size=2))
@settings(deadline=None, max_examples=25)
def test_chance_is_the_mean_over_every_assignment(labels: list[list[int]]) -> None:
    made = batch(labels)
    every = itertools.product(range(len(TIERS)), repeat=sum(map(len, labels)))
    mean = np.mean([sums(made, outcomes(made, np.array(drawn))).sum(axis=0) for drawn in every], axis=0)
    assert random_sums(made).sum(axis=0) == pytest.approx(mean), COLUMNS
