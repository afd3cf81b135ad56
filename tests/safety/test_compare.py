"""Comparators on planted grids: every figure against an independent calculation."""

from __future__ import annotations

import csv
import itertools
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from stepdown.builder.cli.main import main
from stepdown.builder.errors import BadInput
from stepdown.scoring.comparators.compare import CompareSettings, Comparison, compare
from stepdown.scoring.comparators.fixed import mean_selection, pools, select
from stepdown.scoring.comparators.folds import GROUPED, RANDOM, grouped_folds, random_folds
from stepdown.scoring.comparators.frontier import frontier, oracle_value
from stepdown.scoring.comparators.grid import Grid, read_grid
from stepdown.scoring.comparators.routing import LAMBDAS, auroc, predict, route
from stepdown.scoring.comparators.signal import signal_curve

Outcomes = NDArray[Any]


def grid_of(
    outcomes: Outcomes, groups: Sequence[str] | None = None, texts: Sequence[str] | None = None, costs: Any = None
) -> Grid:
    items = tuple(f"i{n}" for n in range(len(outcomes)))
    models = tuple(f"m{n}" for n in range(outcomes.shape[1]))
    return Grid(items, models, tuple(groups or items), outcomes, costs, tuple(texts) if texts else None, 0)


def planted() -> tuple[Outcomes, list[str]]:
    """Five groups of ten items. The first model passes 7 in each; the second all in three groups and none in two.

    With a failing group held out the second looks better (30 of 40) and loses 7 of 10 there; else the first does. So
    whoever holds out groups pays 2/5 x 0.7, and whoever does not pays nothing.
    """
    first = [float(n % 10 < 7) for n in range(50)]
    second = [float(n // 10 < 3) for n in range(50)]
    return np.column_stack([first, second]), [f"g{n // 10}" for n in range(50)]


def lively(groups: int, size: int) -> tuple[Outcomes, list[str]]:
    """As many models as groups, each perfect in one group and right on 60% elsewhere."""
    outcomes = (np.random.default_rng(1).random((groups * size, groups)) < 0.6).astype(float)
    for group in range(groups):
        outcomes[group * size : (group + 1) * size, group] = 1.0
    return outcomes, [f"g{n // size}" for n in range(groups * size)]


def by_hand(outcomes: Outcomes, folds: Sequence[int]) -> tuple[float, float]:
    """Honest and hindsight values, with plain loops."""
    models = range(outcomes.shape[1])
    total = [sum(outcomes[:, m]) for m in models]
    best = total.index(max(total))
    honest = 0.0
    for fold in sorted(set(folds)):
        seen = [[outcomes[i, m] for i in range(len(folds)) if folds[i] != fold] for m in models]
        means = [sum(column) / len(column) for column in seen]
        honest += sum(outcomes[i, means.index(max(means))] for i in range(len(folds)) if folds[i] == fold)
    return honest / len(folds), total[best] / len(folds)


grids = st.integers(0, 10_000).map(lambda seed: np.random.default_rng(seed).integers(0, 2, (30, 4)).astype(float))


@settings(max_examples=40, deadline=None)
@given(outcomes=grids, seed=st.integers(0, 100))
def test_selection_is_that_of_plain_loops_and_its_cost_the_product_of_how_often_and_how_far(
    outcomes: Outcomes, seed: int
) -> None:
    folds = random_folds(30, seed)
    found = select(outcomes, folds)
    assert (found.honest, found.hindsight) == pytest.approx(by_hand(outcomes, folds.tolist()))
    assert found.cost == pytest.approx(found.moved * found.distance, abs=1e-12)
    assert found.cost >= -1e-12, "nobody beats the best of all items"


@settings(max_examples=8, deadline=None)
@given(outcomes=grids, seed=st.integers(0, 100), words=st.integers(0, 100))
def test_the_deficit_is_deferral_times_lost_edge_in_every_fold(outcomes: Outcomes, seed: int, words: int) -> None:
    stream = random.Random(words)
    texts = [" ".join(stream.choices(["red", "blue", "green", "old", "new"], k=4)) for _ in range(30)]
    folds = random_folds(30, seed)
    predicted = predict(outcomes, folds, texts, ())
    for shrinkage in LAMBDAS:
        result = route(outcomes, folds, predicted, shrinkage)
        for fold in result.folds:
            assert abs(fold.deficit - fold.deferral * -fold.edge) <= 1e-12
        assert abs(result.deficit - result.deferral * -result.edge) <= 1e-12
    assert result.deferral == 0.0, "shrunken to the shares it is the fixed model"


def test_identical_models_cost_nothing_to_choose_from_and_planted_ones_what_was_planted() -> None:
    column = np.random.default_rng(3).integers(0, 2, (60, 1)).astype(float)
    same = compare(grid_of(np.repeat(column, 4, axis=1)), CompareSettings(resamples=50))
    assert all((cost.selection.cost, cost.low, cost.high) == (0, 0, 0) for cost in same.under[0].costs)
    outcomes, names = planted()
    found = compare(grid_of(outcomes, names), CompareSettings(resamples=60))
    random_cost, grouped = (under.costs[0] for under in found.under)
    assert [under.kind for under in found.under] == [RANDOM, GROUPED]
    assert grouped.selection.cost == pytest.approx(0.28)
    assert (grouped.selection.moved, grouped.selection.distance) == pytest.approx((0.4, 0.7))
    assert random_cost.selection.cost == 0
    assert grouped.null is not None
    assert grouped.null < 0.1
    assert grouped.p is not None
    assert grouped.p < 0.05, "dealt by lot, groups cost nothing"


def test_alike_models_cost_nothing_within_the_interval_under_random_folds() -> None:
    outcomes = (np.random.default_rng(8).random((400, 3)) < 0.5).astype(float)
    [under] = compare(grid_of(outcomes), CompareSettings((3,), resamples=100)).under
    assert under.costs[0].low is not None
    assert under.costs[0].low <= 0.03
    assert under.costs[0].selection.cost < 0.05


def test_pools_are_all_there_are_or_a_sample_without_repeats() -> None:
    assert pools(5, 2, 0) == list(itertools.combinations(range(5), 2))
    drawn = pools(28, 5, 0)
    assert len(drawn) == len(set(drawn)) == 500
    assert drawn == pools(28, 5, 0) != pools(28, 5, 1)


def test_the_mean_over_pools_is_that_of_each() -> None:
    outcomes, names = lively(6, 20)
    folds = grouped_folds(names, 0)
    assert folds is not None
    chosen = pools(6, 3, 0)
    each = [by_hand(outcomes[:, list(pool)], folds.tolist()) for pool in chosen]
    found = mean_selection(outcomes, folds, chosen)
    assert found.honest == pytest.approx(sum(one[0] for one in each) / len(each))
    assert found.cost == pytest.approx(sum(one[1] - one[0] for one in each) / len(each))
    assert found.cost == pytest.approx(found.moved * found.distance, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(names=st.lists(st.sampled_from("abcdefghij"), min_size=2, max_size=60), seed=st.integers(0, 50))
def test_a_group_is_in_one_fold(names: list[str], seed: int) -> None:
    folds = grouped_folds(names, seed)
    if len(set(names)) < 2:
        assert folds is None
        return
    assert folds is not None
    assert len({(name, fold) for name, fold in zip(names, folds.tolist(), strict=True)}) == len(set(names))
    assert len(set(folds.tolist())) == min(5, len(set(names)))


def test_a_router_learns_what_texts_say_and_shrinking_takes_it_back() -> None:
    stream = random.Random(2)
    texts = [f"{stream.choice(['algebra', 'poem'])} {stream.choice(['a', 'b', 'c'])} task {n % 7}" for n in range(200)]
    outcomes = np.array([[float("algebra" in text), float("poem" in text)] for text in texts])
    found = compare(grid_of(outcomes, texts=texts), CompareSettings(resamples=20))
    [under] = found.under
    assert under.auroc == (1.0, 1.0)
    assert under.routers[0].value == 1.0 == found.oracle
    assert under.routers[0].deficit < -0.3
    assert under.routers[-1].deficit == 0.0


@pytest.mark.parametrize("texts", [None, ["odd" if n % 2 else "even" for n in range(80)]])
def test_outcomes_between_0_and_1_are_weighed_as_they_are(texts: list[str] | None) -> None:
    steady = np.full(80, 0.6)  # never a failure, and worth less than one that fails at times
    bold = np.array([float(n % 5 > 0) for n in range(80)])
    grid = grid_of(np.column_stack([steady, bold]), texts=texts)
    [under] = compare(grid, CompareSettings(resamples=0)).under
    shrunken = under.routers[-1]
    assert shrunken.fixed == pytest.approx(0.8)
    assert (shrunken.deferral, shrunken.deficit) == (0.0, 0.0)
    if texts is None:
        assert all(router.deferral == 0.0 for router in under.routers)


def test_auroc_is_that_of_all_pairs_and_a_one_class_fold_has_none() -> None:
    stream = np.random.default_rng(4)
    scores, truth = stream.integers(0, 5, 40).astype(float), stream.random(40) < 0.4
    pairs = [(good > bad) + 0.5 * (good == bad) for good in scores[truth] for bad in scores[~truth]]
    assert auroc(scores, truth) == pytest.approx(float(np.mean(pairs)))
    outcomes = np.ones((20, 2))
    outcomes[:4, 1] = 0
    texts = [f"word {n % 3}" for n in range(20)]
    predicted = predict(outcomes, random_folds(20, 0), texts, ())
    assert predicted.auroc[0] is None
    assert (predicted.values[:, 0] == 1.0).all(), "the training mean"


def test_the_signal_curve_is_the_theorys_for_two_opposite_models() -> None:
    """Where one of two models succeeds on each item, a router is right as often as its signal orders two items."""
    outcomes = np.array([[float(n % 2), float(1 - n % 2)] for n in range(2000)])
    curve = signal_curve(outcomes, random_folds(2000, 0), 0.5, seed=1)
    for wanted, value in curve.points:
        assert value == pytest.approx(wanted, abs=0.02)
    assert curve.break_even == pytest.approx(0.5, abs=0.02)
    hopeless = signal_curve(np.column_stack([np.ones(50), np.zeros(50)]), random_folds(50, 0), 1.0, seed=1)
    assert hopeless.break_even is None or hopeless.break_even <= 0.99


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), budget=st.floats(0.2, 3.0))
def test_the_oracle_at_a_budget_is_the_linear_programs(seed: int, budget: float) -> None:
    stream = np.random.default_rng(seed)
    outcomes, costs = stream.integers(0, 2, (8, 3)).astype(float), stream.random((8, 3)) * 3
    floor = costs.min(axis=1).mean()
    solved = linprog(
        -outcomes.ravel(),
        A_ub=costs.ravel()[None],
        b_ub=[max(budget, floor) * 8],
        A_eq=np.kron(np.eye(8), np.ones(3)),
        b_eq=np.ones(8),
        bounds=(0, 1),
    )
    assert oracle_value(outcomes, costs, max(budget, floor)) == pytest.approx(-solved.fun / 8, abs=1e-7)


def test_the_honest_frontier_chooses_in_training_what_the_budget_allows() -> None:
    outcomes = np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]] * 20)
    costs = np.tile([1.0, 2.0, 10.0], (40, 1))
    points = frontier(outcomes, costs, random_folds(40, 0))
    assert [(point.budget, point.honest, point.honest_cost) for point in points] == [
        (1.0, 0.0, 1.0),
        (2.0, 0.5, 2.0),
        (10.0, 1.0, 10.0),
    ]
    assert [point.oracle for point in points] == pytest.approx([0.0, 0.5 + 0.5 / 9, 1.0], abs=0.06)
    assert all(point.oracle >= point.honest for point in points)


def _long(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def _rows(items: int = 12) -> list[dict[str, Any]]:
    return [
        {"item": f"i{n}", "model": model, "outcome": int((n + k) % 3 > 0), "group": f"g{n // 4}", "cost": 1 + k}
        for n in range(items)
        for k, model in enumerate(("a", "b", "perfect"))
        for _ in [0]
    ]


def test_long_wide_and_parquet_tables_say_the_same(tmp_path: Path) -> None:
    import pandas as pd

    rows = _rows()
    long = read_grid(_long(tmp_path / "long.csv", rows))
    wide = [{"item": f"i{n}", "group": f"g{n // 4}"} for n in range(12)]
    for row in rows:
        wide[int(row["item"][1:])][row["model"]] = row["outcome"]
    pd.DataFrame(rows).to_parquet(tmp_path / "long.parquet")
    for other in (read_grid(_long(tmp_path / "wide.csv", wide)), read_grid(tmp_path / "long.parquet")):
        assert (other.items, other.models, other.groups) == (long.items, long.models, long.groups)
        assert (other.outcomes == long.outcomes).all()
    assert long.costs is not None


def test_an_item_that_lacks_an_outcome_is_left_out_and_counted(tmp_path: Path) -> None:
    rows = _rows()
    rows[4]["outcome"] = ""
    grid = read_grid(_long(tmp_path / "grid.csv", rows))
    assert (len(grid.items), grid.left_out) == (11, 1)


def test_a_row_whose_verdict_is_technical_is_missing_whatever_its_outcome_says(tmp_path: Path) -> None:
    rows = [{**row, "verdict": "pass"} for row in _rows()]
    rows[4] |= {"verdict": "technical", "outcome": 0}
    rows.append({**rows[7], "verdict": "technical", "outcome": ""})  # one that another try has settled
    grid = read_grid(_long(tmp_path / "grid.csv", rows))
    assert (len(grid.items), grid.left_out) == (11, 1)
    assert [(one.model, one.items, one.technical) for one in grid.missing] == [("b", 1, 1)]


def test_a_model_that_the_first_item_lacks_is_a_model_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "wide.jsonl"
    rows = [{"item": n, "a": n % 2, "b": 1, **({"c": 1} if n else {})} for n in range(6)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    grid = read_grid(path)
    assert (grid.models, grid.left_out) == (("a", "b", "c"), 1)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("item,a,b,cost\n1,1,0,0.5\n2,1,0,0.5\n", "grid.csv: cost: is of one cell"),
        ("item,a,b,a\n1,1,0,1\n2,1,0,1\n", "grid.csv:1: two columns are named 'a'"),
        ("item,a,b\n1,1,0,1\n2,1,0\n", "grid.csv:2: more cells than the header"),
        ("item,model,outcome,text\n1,a,1,so, it goes\n", "grid.csv:2: more cells than the header"),
    ],
)
def test_columns_that_would_give_wrong_figures_are_refused(tmp_path: Path, table: str, problem: str) -> None:
    path = tmp_path / "grid.csv"
    path.write_text(table)
    with pytest.raises(BadInput) as raised:
        read_grid(path)
    assert problem in str(raised.value)


def test_a_column_without_a_name_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "grid.csv"
    path.write_text(",item,a,b\n" + "".join(f"{n},i{n},1,0\n" for n in range(4)))
    assert read_grid(path).models == ("a", "b")


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e308", "1e999"])
def test_a_number_that_can_not_be_added_up_is_one_line(tmp_path: Path, number: str) -> None:
    path = tmp_path / "grid.jsonl"
    for field in ("outcome", "cost"):
        row = {"item": "i", "model": "a", "outcome": 1, "cost": 1} | {field: 0}
        path.write_text(json.dumps(row).replace(f'"{field}": 0', f'"{field}": {number}') + "\n")
        with pytest.raises(BadInput) as raised:
            read_grid(path)
        assert f"grid.jsonl:1: {field}: " in str(raised.value)


def test_groups_are_told_apart_to_their_last_character_and_long_ones_cost_no_memory() -> None:
    names = [("g" * 300_000 if n % 2 else "g") + "\0" * (n % 4 > 1) for n in range(20_000)]
    folds = grouped_folds(names, 0)
    assert folds is not None
    assert len(set(folds.tolist())) == 4 == len(set(names))


@pytest.mark.filterwarnings("error")
def test_a_resample_that_falls_into_one_fold_says_so_without_a_warning() -> None:
    found = compare(grid_of(np.array([[0.0, 1.0], [0.0, 1.0]])), CompareSettings(resamples=50))
    assert found.under[0].costs[0].selection.cost == 0.0


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"outcome": "maybe"}, "grid.csv:2: outcome: 'maybe' is no number"),
        ({"outcome": "1.5"}, "grid.csv:2: outcome: 1.5 is above 1"),
        ({"outcome": "nan"}, "grid.csv:2: outcome"),
        ({"cost": "-1"}, "grid.csv:2: cost"),
        ({"item": ""}, "grid.csv:2: item: is empty"),
        ({"item": "i1", "group": "g0"}, "has two outcomes of 'a'"),
        ({"group": "other"}, "is in two groups"),
    ],
)
def test_a_bad_cell_is_one_line(tmp_path: Path, change: dict[str, str], problem: str) -> None:
    rows = _rows()
    rows[0] |= change
    with pytest.raises(BadInput) as raised:
        read_grid(_long(tmp_path / "grid.csv", rows))
    assert problem in str(raised.value)


@pytest.mark.parametrize("content", [b"", b"item,model,outcome\n", b"\xff\xfe", b"item\x00,model"])
def test_what_is_no_grid_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "grid.csv").write_bytes(content)
    done = CliRunner().invoke(main, ["compare", str(tmp_path / "grid.csv")])
    assert done.exit_code == 2, done.output
    assert len(done.output.strip().splitlines()) == 1


def test_the_command_prints_tables_json_and_a_picture(tmp_path: Path) -> None:
    outcomes, names = lively(4, 10)
    rows = [
        {"item": f"i{i}", "model": f"m{m}", "outcome": outcomes[i, m], "group": names[i], "cost": 1 + m}
        for i in range(40)
        for m in range(4)
    ]
    grid = _long(tmp_path / "grid.csv", [*rows, *({**row, "model": "sure", "outcome": 1} for row in rows[::4])])
    arguments = ["compare", str(grid), "--resamples", "20", "--plot", str(tmp_path / "curves.png")]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert "without a single failure, so that no router can gain on it: sure" in done.output
    assert (tmp_path / "curves.png").read_bytes()[:4] == b"\x89PNG"
    found = json.loads(CliRunner().invoke(main, [*arguments[:4], "--json"]).stdout)
    assert found["flawless"] == ["sure"]
    assert {one["kind"] for one in found["under"]} == {"random", "group held out"}


def test_without_resamples_there_are_no_intervals_and_the_json_is_json(tmp_path: Path) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    command = ["compare", str(_long(tmp_path / "grid.csv", _rows())), "--resamples", "0"]
    found = json.loads(CliRunner().invoke(main, [*command, "--json"]).stdout, parse_constant=refuse)
    assert {cost["low"] for under in found["under"] for cost in under["costs"]} == {None}
    assert "nan" not in CliRunner().invoke(main, command).stdout


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--plot", "curves.gif"), "must be a .png or .svg file"),
        (("--plot", "not-there/curves.svg"), "not-there: --plot: there is no such folder"),
        (("--pools", "2,9"), "no pool of 9: there are 3 models"),
    ],
)
def test_what_can_not_be_given_is_told_before_anything_is_compared(
    tmp_path: Path, options: Sequence[str], problem: str
) -> None:
    done = CliRunner().invoke(main, ["compare", str(_long(tmp_path / "grid.csv", _rows())), *options])
    assert (done.exit_code, done.stdout) == (2, "")
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_same_seed_says_the_same(tmp_path: Path) -> None:
    outcomes, names = lively(4, 10)

    def run() -> Comparison:
        return compare(grid_of(outcomes, names), CompareSettings(resamples=20))

    assert run() == run()
