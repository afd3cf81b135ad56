"""Intervals come from whole trajectories or groups; a fixed tier is never chosen on the rows it is scored on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepdown.scoring.bank import open_bank
from stepdown.scoring.baselines import FOLDS
from stepdown.scoring.bootstrap import whole_groups
from stepdown.scoring.predictions import Predictions
from stepdown.scoring.rates import read_rates
from stepdown.scoring.result import Score
from stepdown.scoring.score import ScoreSettings, score
from stepdown.scoring.tokenizers import load_tokenizer
from tests.banks import TIERS, Life, ids, write_bank, write_predictions

LOW, MID, MID_HIGH, HIGH = range(4)


def scored(tmp_path: Path, lives: list[Life], predicted: int | None = None, **changed: object) -> Score:
    """The score of one tier for every row, or of the labels."""
    bank = write_bank(tmp_path / "bank", lives)
    tiers = {name: label if predicted is None else predicted for name, label in ids(bank).items()}
    opened = open_bank(bank)
    given = Predictions(write_predictions(tmp_path / "p.jsonl", tiers), opened.tiers)
    return score(opened, given, ScoreSettings(read_rates(TIERS), load_tokenizer(), **changed))  # type: ignore[arg-type]


def corpus(count: int = 40) -> list[Life]:
    return [Life([HIGH if k % 3 == 0 else LOW, LOW], f"i{k}", group=f"g{k // 8}") for k in range(count)]


def test_the_same_seed_gives_the_same_interval_and_it_holds_the_score(tmp_path: Path) -> None:
    first, again = (scored(tmp_path, corpus(), LOW, seed=7, resamples=200) for _ in range(2))
    assert first == again
    other = scored(tmp_path, corpus(), LOW, seed=8, resamples=200)
    assert other.overall.metrics["CostSave E"] != first.overall.metrics["CostSave E"]
    for metric in first.overall.metrics.values():
        assert metric.value is not None
        assert metric.low is not None
        assert metric.high is not None
        assert metric.low <= metric.value + 1e-9
        assert metric.value <= metric.high + 1e-9


def test_steps_of_a_trajectory_are_drawn_together(tmp_path: Path) -> None:
    # One trajectory of 30 rows fails, one of 30 passes: by rows the interval would be narrow, so it is all.
    lives = [Life([HIGH] * 30, "a"), Life([LOW] * 30, "b")]
    found = scored(tmp_path, lives, LOW, resamples=200).overall.metrics["RowPass"]
    assert (found.low, found.value, found.high) == (0, 50, 100)


def test_what_belongs_to_one_group_is_drawn_together_where_asked_for(tmp_path: Path) -> None:
    lives = [Life([HIGH if k < 20 else LOW], f"i{k}", group="hard" if k < 20 else "easy") for k in range(40)]
    by_group = scored(tmp_path, lives, LOW, by_group=True, resamples=200).overall
    assert by_group.units == 2
    assert (by_group.metrics["RowPass"].low, by_group.metrics["RowPass"].high) == (0, 100)
    alone = scored(tmp_path, lives, LOW, resamples=200).overall
    assert alone.units == 40
    assert alone.metrics["RowPass"].low is not None
    assert alone.metrics["RowPass"].low > 20


def test_sums_of_a_group_are_those_of_its_trajectories() -> None:
    table = np.arange(12.0).reshape(4, 3)
    found = whole_groups(table, np.array([9, 1, 9, 1], dtype=np.uint64))
    assert found.tolist() == [[12, 14, 16], [6, 8, 10]]


def test_a_single_trajectory_has_no_interval(tmp_path: Path) -> None:
    found = scored(tmp_path, [Life([LOW, LOW])])
    assert found.overall.metrics["RowPass"].value == 100
    assert found.overall.metrics["RowPass"].low is None


def test_without_resamples_there_are_no_intervals(tmp_path: Path) -> None:
    assert scored(tmp_path, corpus(), resamples=0).overall.metrics["RowPass"].low is None


def test_every_fixed_tier_and_chance_stand_beside_the_score(tmp_path: Path) -> None:
    found = scored(tmp_path, corpus(), LOW, resamples=0)
    assert list(found.baselines) == [*(f"always {tier}" for tier in TIERS), "random, expected", "random, one draw"]
    high = found.baselines["always high"]
    assert (high["RowPass"], high["TrajPass"], high["CostSave E"]) == (100, 100, 0)
    low = {name: metric.value for name, metric in found.overall.metrics.items()}
    assert found.baselines["always low"] == pytest.approx(low)
    assert found.baselines["random, expected"]["RowExact"] == pytest.approx(25)


def test_the_best_fixed_tier_is_chosen_on_other_groups_and_hindsight_never_does_worse(tmp_path: Path) -> None:
    # Two groups that want opposite tiers: whichever is held out, the other one's choice is wrong for it.
    names = ("left", "right")  # a group's fold is a hash of its name: these two are not held out together
    lives = [Life([HIGH if k % 2 else LOW], f"i{k}", group=names[k % 2]) for k in range(40)]
    found = scored(tmp_path, lives, resamples=0)
    (best,) = [one for one in found.best_fixed if "folds" in one.basis]
    assert {(fold.chosen, fold.hindsight) for fold in best.folds} == {("low", "high"), ("high", "low")}
    assert best.difference > 0
    assert sum(fold.rows for fold in best.folds) == 40


def test_rows_of_a_group_are_never_on_both_sides(tmp_path: Path) -> None:
    found = scored(tmp_path, [Life([LOW], f"i{k}", group="one") for k in range(50)], resamples=0)
    assert found.best_fixed == ()  # a single group: nothing is left to choose on


def test_declared_splits_are_used_as_declared(tmp_path: Path) -> None:
    lives = [Life([LOW], f"i{k}", group=f"g{k}", split="train") for k in range(30)]
    lives += [Life([HIGH], f"j{k}", group=f"h{k}", split="test") for k in range(10)]
    declared = next(one for one in scored(tmp_path, lives, resamples=0).best_fixed if "test" in one.basis)
    assert [(fold.rows, fold.chosen, fold.hindsight) for fold in declared.folds] == [(10, "low", "high")]


def test_on_the_test_split_alone_the_fixed_tier_is_still_chosen_on_train(tmp_path: Path) -> None:
    lives = [Life([MID], "a", "only in train", group="a", split="train")]
    lives += [Life([LOW], f"i{k}", group=f"g{k}", split="train") for k in range(30)]
    lives += [Life([HIGH], f"j{k}", group=f"h{k}", split="test") for k in range(10)]
    found = scored(tmp_path, lives, resamples=0, split="test")
    declared = next(one for one in found.best_fixed if one.basis == "train to test")
    assert [(fold.rows, fold.chosen, fold.hindsight) for fold in declared.folds] == [(10, "low", "high")]
    folds = next(one for one in found.best_fixed if "folds" in one.basis)
    assert (sum(fold.rows for fold in folds.folds), {fold.chosen for fold in folds.folds}) == (10, {"high"})
    assert (found.overall.rows, found.baselines["always high"]["RowPass"]) == (10, 100)
    assert found.baselines["always low"]["RowPass"] == 0
    assert [part.name for part in found.workloads] == ["work"]


def test_on_the_train_split_alone_nothing_is_said_of_test(tmp_path: Path) -> None:
    lives = [Life([LOW], f"i{k}", group=f"g{k}", split="train" if k else "test") for k in range(30)]
    assert "train to test" not in [one.basis for one in scored(tmp_path, lives, resamples=0, split="train").best_fixed]


def test_a_corpus_of_many_groups_uses_every_fold(tmp_path: Path) -> None:
    lives = [Life([LOW], f"i{k}", group=f"g{k}") for k in range(100)]
    (best,) = scored(tmp_path, lives, resamples=0).best_fixed
    assert len(best.folds) == FOLDS
    assert best.difference == 0


def test_a_corpus_where_nothing_could_be_saved_is_scored_without_those_variants(tmp_path: Path) -> None:
    lives = [Life([HIGH], f"i{k}", group=f"g{k}") for k in range(30)]
    found = scored(tmp_path, lives, resamples=50)
    assert [found.overall.metrics[f"CostSave {variant}"].value for variant in "ABCDE"] == [None, None, None, 0, 0]
    (best,) = found.best_fixed
    assert best.chosen["CostSave A"] is None
    assert best.chosen["Combined"] == 75
