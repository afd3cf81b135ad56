"""Metadata that routers see: found where outcomes depend on it, fitted on training items, blind to what came after."""

from __future__ import annotations

import csv
import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from stepdown.builder.artifacts.names import PROBES, ROWS
from stepdown.builder.artifacts.rows import read_rows
from stepdown.builder.errors import BadInput
from stepdown.scoring.comparators.features import Feature, Kind, columns
from stepdown.scoring.comparators.folds import grouped_folds, random_folds
from stepdown.scoring.comparators.grid import Grid, read_grid
from stepdown.scoring.comparators.of_run import read_run_grid
from stepdown.scoring.comparators.routing import predict
from tests.conftest import stepdown
from tests.test_planted import PlantedRun

ITEMS = 240


def planted(seed: int = 5) -> list[dict[str, Any]]:
    """Wide rows. The small model passes in two of four domains, the large one where there are few turns, whatever the
    text says; the third, by lot.
    """
    stream = random.Random(seed)
    rows = []
    for number in range(ITEMS):
        domain, turns = stream.choice(["law", "code", "math", "chat"]), stream.randint(0, 20)
        rows.append(
            {
                "item": f"i{number}",
                "group": f"g{number % 24}",
                "text": " ".join(stream.choices(["red", "blue", "green", "old", "new"], k=6)),
                "feature:domain": domain,
                "feature:turns": turns,
                "small": int(domain in ("law", "chat")),
                "large": int(turns <= 10),
                "lot": stream.randint(0, 1),
            }
        )
    return rows


def written(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path
    if path.suffix == ".parquet":
        import pandas as pd

        pd.DataFrame(rows).to_parquet(path)
        return path
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writeheader()
        writer.writerows(rows)
    return path


def long(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with a row for each item and model; only the first of an item has its metadata."""
    found = []
    for row in rows:
        for place, model in enumerate(("small", "large", "lot")):
            beside = {name: row[name] if ":" not in name or place == 0 else None for name in list(row)[:5]}
            found.append({**beside, "model": model, "outcome": row[model]})
    return found


def compared(path: Path, *arguments: str) -> dict[str, Any]:
    done = stepdown("compare", str(path), "--resamples", "0", "--json", *arguments)
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def seen(found: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(one["name"], one["kind"], one["values"], one["missing"]) for one in found["features"]]


# Found or not


def test_what_depends_on_metadata_alone_is_found_with_them_and_not_without(tmp_path: Path) -> None:
    grid = written(tmp_path / "grid.csv", planted())
    with_all, metadata, text = (compared(grid, "--features", sight) for sight in ("all", "metadata", "text"))
    for number, under in enumerate(with_all["under"]):
        assert min(under["auroc"][:2]) > 0.99, "both kinds of metadata, under either folds"
        assert 0.35 < under["auroc"][2] < 0.65, "a lot can not be told"
        assert min(metadata["under"][number]["auroc"][:2]) > 0.99
        assert max(text["under"][number]["auroc"]) < 0.65
        best, blind = under["routers"][0], text["under"][number]["routers"][0]
        assert best["value"] > best["fixed"] + 0.15 > blind["value"] + 0.05
    names = [("domain", "category", 4, 0), ("turns", "number", 21, 0)]
    texts = len({row["text"] for row in planted()})
    assert seen(with_all) == [("text", "text", texts, 0), *names]
    assert (seen(metadata), seen(text)) == (names, [("text", "text", texts, 0)])


def test_without_its_columns_a_table_says_what_it_said_before(tmp_path: Path) -> None:
    rows = planted()
    bare = [{name: cell for name, cell in row.items() if ":" not in name} for row in rows]
    plain = compared(written(tmp_path / "bare.csv", bare))
    assert plain == compared(written(tmp_path / "grid.csv", rows), "--features", "text")
    assert plain["models"] == ["small", "large", "lot"]


@pytest.mark.parametrize("shape", ["wide", "long"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_metadata_are_the_same_in_every_form_of_table(tmp_path: Path, suffix: str, shape: str) -> None:
    rows = planted()
    grid = read_grid(written(tmp_path / f"grid{suffix}", rows if shape == "wide" else long(rows)))
    assert grid.models == ("small", "large", "lot")
    assert grid.features == (
        Feature("domain", tuple(row["feature:domain"] for row in rows)),
        Feature("turns", tuple(float(row["feature:turns"]) for row in rows)),
    )


# The figures


def lacking(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Some values are missing, and one category stands in one group alone."""
    stream = random.Random(3)
    changed = []
    for row in rows:
        domain = "rare" if row["group"] == "g7" else row["feature:domain"]
        cells = {"feature:domain": domain, "feature:turns": row["feature:turns"]}
        changed.append({**row, **{name: "" if stream.random() < 0.15 else cell for name, cell in cells.items()}})
    return changed


def by_pipeline(rows: Sequence[dict[str, Any]], model: str, held: NDArray[Any]) -> NDArray[Any]:
    """Chances of success on held-out items, by scikit-learn's own parts."""
    import pandas as pd

    table = pd.DataFrame(rows)
    table["feature:turns"] = pd.to_numeric(table["feature:turns"])
    table["length"] = np.log1p(table["text"].str.len())
    seen_as = ColumnTransformer(
        [
            ("words", TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2), "text"),
            ("length", StandardScaler(), ["length"]),
            ("categories", OneHotEncoder(handle_unknown="ignore"), ["feature:domain"]),
            ("numbers", make_pipeline(StandardScaler(), SimpleImputer()), ["feature:turns"]),
            ("lacking", make_pipeline(MissingIndicator(), FunctionTransformer(np.float64)), ["feature:turns"]),
        ]
    )
    made = make_pipeline(seen_as, LogisticRegression(max_iter=2000))
    return np.asarray(made.fit(table[~held], table[model][~held]).predict_proba(table[held])[:, 1])


@pytest.mark.parametrize("kind", ["random", "grouped"])
def test_chances_are_those_of_a_pipeline_that_is_fitted_on_each_fold(tmp_path: Path, kind: str) -> None:
    rows = lacking(planted())
    grid = read_grid(written(tmp_path / "grid.csv", rows))
    folds = random_folds(ITEMS, 0) if kind == "random" else grouped_folds(grid.groups, 0)
    assert folds is not None
    found = predict(grid.outcomes, folds, grid.texts, grid.features)
    for place, model in enumerate(grid.models):
        aurocs = []
        for fold in range(5):
            held = folds == fold
            chances = by_pipeline(rows, model, held)
            assert found.values[held, place] == pytest.approx(chances, abs=1e-9)
            aurocs.append(roc_auc_score(grid.outcomes[held, place], chances))
        assert found.auroc[place] == pytest.approx(np.mean(aurocs), abs=1e-12)


values = st.one_of(
    st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=8, max_size=8),
    st.lists(st.sampled_from([math.nan, -1e100, -1.0, 0.0, 1e-300, 2.5, 1e100]), min_size=8, max_size=8),
)


@settings(max_examples=80, deadline=None)
@given(first=values, other=values, held=st.sets(st.integers(0, 7), min_size=1, max_size=6))
def test_nothing_of_a_held_out_item_is_in_what_a_router_learns_from(
    first: list[Any], other: list[Any], held: set[int]
) -> None:
    training = np.array([place not in held for place in range(8)])
    mixed = [other[place] if place in held else first[place] for place in range(8)]
    if type(first[0]) is not type(other[0]):
        return
    learned = [columns(None, [Feature("x", tuple(one))], training).toarray()[training] for one in (first, mixed)]
    assert all(np.isfinite(one).all() for one in learned)
    # A column that marks what is missing stands where any item lacks one; in training it then marks nothing.
    width = min(one.shape[1] for one in learned)
    assert (learned[0][:, :width] == learned[1][:, :width]).all()
    assert not any(one[:, width:].any() for one in learned)


# What is read


def features_of(tmp_path: Path, cells: Sequence[Any]) -> tuple[Feature, ...]:
    rows = [{"item": n, "a": n % 2, "b": 1, "feature:x": cell} for n, cell in enumerate(cells)]
    return read_grid(written(tmp_path / "grid.jsonl", rows)).features


@pytest.mark.parametrize(
    ("cells", "kind", "read"),
    [
        ([1, "2", " 3.5 ", -4], Kind.NUMBER, [1.0, 2.0, 3.5, -4.0]),
        ([True, False, None, True], Kind.CATEGORY, ["true", "false", "", "true"]),
        ([1, 2, "many", None], Kind.CATEGORY, ["1", "2", "many", ""]),
        (["1_0", "2_0", "1_0", ""], Kind.CATEGORY, ["1_0", "2_0", "1_0", ""]),
    ],
)
def test_a_column_is_numbers_where_all_of_it_are(tmp_path: Path, cells: list[Any], kind: Kind, read: list[Any]) -> None:
    [found] = features_of(tmp_path, cells)
    assert (found.kind, list(found.values)) == (kind, read)


def test_missing_numbers_are_told_and_a_constant_is_no_feature(tmp_path: Path) -> None:
    [found] = features_of(tmp_path, [1, None, "", "NaN"])
    assert [math.isnan(float(value)) for value in found.values] == [False, True, True, True]
    assert features_of(tmp_path, [7, 7, 7.0, 7]) == ()
    assert features_of(tmp_path, [None, None, None, None]) == ()


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ([1], "grid.jsonl:2: feature:x: must be a number or a word"),
        ({"a": 1}, "grid.jsonl:2: feature:x: must be a number or a word"),
        ("-inf", "grid.jsonl:2: feature:x: '-inf' is no number from -1e100 to 1e100"),
        ("1e101", "grid.jsonl:2: feature:x: '1e101' is no number from"),
        (int("9" * 400), "grid.jsonl:2: feature:x: '9999"),
    ],
)
def test_a_bad_value_is_one_line(tmp_path: Path, cell: Any, problem: str) -> None:
    with pytest.raises(BadInput) as raised:
        features_of(tmp_path, [1, cell, 2, 3])
    assert problem in str(raised.value)


def test_a_feature_that_differs_by_model_or_has_no_name_is_refused(tmp_path: Path) -> None:
    rows = long(planted())
    rows[1]["feature:turns"] = 99
    done = stepdown("compare", str(written(tmp_path / "grid.csv", rows)))
    assert (done.code, len(done.err.strip().splitlines())) == (2, 1), done.err
    assert "grid.csv:3: feature:turns: 'i0' has" in done.err
    assert "the same whichever model is asked" in done.err
    nameless = [{"item": n, "a": 1, "b": 0, "feature:": n} for n in range(4)]
    done = stepdown("compare", str(written(tmp_path / "nameless.csv", nameless)))
    assert done.code == 2
    assert "nameless.csv:2: feature:: write the feature's name behind 'feature:'" in done.err


def test_the_output_names_what_routers_saw(tmp_path: Path) -> None:
    grid = written(tmp_path / "grid.csv", lacking(planted()))
    out = stepdown("compare", str(grid), "--resamples", "0").out
    lost = sum(row["feature:turns"] == "" for row in lacking(planted()))
    without = sum(row["feature:domain"] == "" for row in lacking(planted()))
    assert (
        f"routers saw TF-IDF and length of the text; numbers: turns ({lost} missing); "
        f"categories: domain (5 values, {without} missing)\n" in out
    )
    bare = [{name: row[name] for name in ("item", "small", "large")} for row in planted()]
    out = stepdown("compare", str(written(tmp_path / "bare.csv", bare)), "--resamples", "0").out
    assert "routers saw nothing of an item, so they are the fixed model\n" in out


# The steps of a run


def seen_bytes(grid: Grid) -> bytes:
    return json.dumps([grid.items, grid.texts, [[one.name, *one.values] for one in grid.features]]).encode()


def test_a_run_shows_what_a_policy_sees_and_nothing_of_what_came_of_it(tmp_path: Path) -> None:
    planted_run = PlantedRun(tmp_path)
    assert planted_run.build(
        planted_run.write({"instances": 12, "steps": 3}, {"early_verdicts": True}, {"probe": "all"})
    )
    run = planted_run.run
    before = read_run_grid(run)
    steps = [row for _, row in read_rows(run / ROWS)]
    named = {one.name: one for one in before.features}
    assert named["step"].values == tuple(math.log1p(row.step_index) for row in steps)
    assert named["messages"].values == tuple(math.log1p(len(row.messages)) for row in steps)
    assert not {"total_steps", "label", "tier", "calls", "reason", "steps"} & set(named)

    stream = random.Random(1)
    cells = [json.loads(line) for line in (run / PROBES).read_text().splitlines()]
    outcomes = [stream.randint(0, 1) for _ in cells]
    shuffled = [
        {**cell, "outcome": outcome, "label": "high", "steps": 99, "reason": "other", "calls": 7, "cost": 1.0}
        for cell, outcome in zip(cells, outcomes, strict=True)
    ]
    written(run / PROBES, [{**cell, "model": f"other {cell['model']}"} for cell in shuffled]).touch()
    labelled = [json.loads(line) for line in (run / ROWS).read_text().splitlines()]
    written(run / ROWS, [{**row, "target_tier": "high", "target_tier_id": 3, "total_steps": 99} for row in labelled])
    after = read_run_grid(run)
    assert not np.array_equal(after.outcomes, before.outcomes)
    assert seen_bytes(after) == seen_bytes(before)
    found = compared(run, "--features", "metadata")
    assert [name for name, *_ in seen(found)] == list(named)
