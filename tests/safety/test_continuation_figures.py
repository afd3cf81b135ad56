"""The figures of continuations on planted cells: each against an independent calculation, with plain loops."""

from __future__ import annotations

import csv
import itertools
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepdown.builder.continuations.cells import Cell
from stepdown.builder.errors import BadInput
from stepdown.builder.records import OutcomeState
from stepdown.scoring.continuations.analysis import AnalysisSettings, analyse
from stepdown.scoring.continuations.pairs import FACTORS, STATES, matched
from stepdown.scoring.continuations.predicting import Features, predict
from stepdown.scoring.continuations.reading import masked_cells, read_cells, read_features
from stepdown.scoring.group_draws import Estimate, GroupDraws
from tests.conftest import stepdown

UNSAFE, COMPLETE, REFUSED, TECHNICAL, INCOMPLETE = STATES
RESAMPLES = 300


def planted(seed: int, parents: int = 5, missing: float = 0.1) -> list[Cell]:
    """A full design of two stages, conditions, contexts, feedbacks, models and draws, some of its cells missing."""
    stream = random.Random(seed)
    design = itertools.product(
        range(parents), ("mixed", "benign"), ("prepared", "committed"), ("kept", "neutral"), ("plain", "safety"),
        ("weak", "strong"), (0, 1),
    )  # fmt: skip
    return [
        Cell(
            f"p{parent}/{condition}/{stage}", f"p{parent}", stage, condition, context, feedback, model, draw,
            stream.choices(STATES, [4, 5, 1, 1, 2])[0], stream.choice(["", "", "decisions"]),
        )
        for parent, condition, stage, context, feedback, model, draw in design
        if stream.random() >= missing
    ]  # fmt: skip


def pairs_by_hand(cells: Sequence[Cell], factor: str, before: str, after: str) -> list[tuple[Cell, Cell]]:
    """Every two cells that differ in the factor alone, and in the name of their checkpoint where it is of that."""
    found = []
    for one, other in itertools.product(cells, cells):
        if (getattr(one, factor), getattr(other, factor)) != (before, after):
            continue
        same = replace(
            other,
            **{factor: before},  # type: ignore[arg-type]
            checkpoint=one.checkpoint if factor in ("stage", "condition") else other.checkpoint,
            state=one.state,
            limited=one.limited,
        )
        if same == one:
            found.append((one, other))
    return found


def by_hand(values: Sequence[tuple[str, float]], cells: Sequence[Cell]) -> Estimate:
    """The mean of values of parents, and its interval: each resample written out, a parent at a time."""
    if not values:
        return Estimate()
    names = sorted({cell.parent for cell in cells})
    times = np.random.default_rng(0).multinomial(len(names), [1 / len(names)] * len(names), RESAMPLES)
    drawn = []
    for row in times.tolist():
        sample = [value for name, count in zip(names, row, strict=True) for parent, value in values * count
                  if parent == name]  # fmt: skip
        if sample:
            drawn.append(sum(sample) / len(sample))
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Estimate(sum(value for _, value in values) / len(values), float(low), float(high))


def alike(one: Estimate, other: Estimate) -> bool:
    pairs = ((one.value, other.value), (one.low, other.low), (one.high, other.high))
    return all(a == b if a is None or b is None else a == pytest.approx(b, abs=1e-12) for a, b in pairs)


SETTINGS = AnalysisSettings(by=(), resamples=RESAMPLES)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), factor=st.sampled_from(FACTORS))
def test_cells_are_matched_with_those_that_differ_in_one_thing_alone(seed: int, factor: str) -> None:
    cells = planted(seed, parents=3)
    before, after = {
        "context": ("kept", "neutral"), "feedback": ("plain", "safety"), "model": ("weak", "strong"),
        "stage": ("prepared", "committed"), "condition": ("mixed", "benign"),
    }[factor]  # fmt: skip
    order = {id(cell): place for place, cell in enumerate(cells)}
    found = {(order[id(one)], order[id(other)]) for one, other in matched(cells, factor, before, after)}
    assert found == {(order[id(a)], order[id(b)]) for a, b in pairs_by_hand(cells, factor, before, after)}


def test_every_figure_of_a_transition_is_that_of_plain_loops() -> None:
    cells = planted(1)
    found = analyse(cells, SETTINGS)
    assert {(one.factor, one.before, one.after) for one in found.transitions} == {
        ("context", "kept", "neutral"), ("feedback", "plain", "safety"), ("model", "weak", "strong"),
        ("stage", "prepared", "committed"), ("condition", "mixed", "benign"),
    }  # fmt: skip
    for one in found.transitions[:3]:
        pairs = pairs_by_hand(cells, one.factor, one.before, one.after)
        assert one.pairs == len(pairs) == sum(map(sum, one.counts))
        settled = [(a, b) for a, b in pairs if a.state != TECHNICAL != b.state]
        assert one.settled == len(settled) < len(pairs)
        for row, before in enumerate(STATES):
            for column, after in enumerate(STATES):
                hits = [(a.parent, float(a.state == before and b.state == after)) for a, b in pairs]
                assert one.counts[row][column] == sum(hit for _, hit in hits)
                assert alike(one.shares[row][column], by_hand(hits, cells))
        assert set(one.changes) == {"unsafe", "complete", "refused", "incomplete"}
        for state, change in one.changes.items():
            grown = [(a.parent, float(b.state == state) - float(a.state == state)) for a, b in settled]
            assert alike(change, by_hand(grown, cells))


def test_every_figure_of_outcomes_and_routing_is_that_of_plain_loops() -> None:
    cells = planted(2)
    found = analyse(cells, SETTINGS)
    assert sum(sum(row.counts.values()) for row in found.outcomes) == len(cells) == found.cells
    for row in found.outcomes:
        part = [cell for cell in cells if all(getattr(cell, factor) == level for factor, level in row.levels.items())]
        assert row.counts == {state.value: sum(cell.state == state for cell in part) for state in STATES}
        assert row.limited == sum(cell.limited == "decisions" for cell in part)
        for state, share in row.shares.items():
            hits = [(cell.parent, float(cell.state == state)) for cell in part if cell.state != TECHNICAL]
            assert alike(share, by_hand(hits, cells))
    [one] = found.routing
    pairs = pairs_by_hand(cells, "model", "weak", "strong")
    settled = [(a.parent, a.state, b.state) for a, b in pairs if a.state != TECHNICAL != b.state]

    def count(is_kind: Callable[[OutcomeState, OutcomeState], bool]) -> int:
        return sum(is_kind(a, b) for _, a, b in settled)

    assert (one.base, one.other, one.technical) == ("weak", "strong", len(pairs) - len(settled))
    assert one.both_complete == count(lambda a, b: a == b == COMPLETE)
    assert one.rescued == count(lambda a, b: a in (UNSAFE, REFUSED, INCOMPLETE) and b == COMPLETE)
    assert one.rescued_from_unsafe == count(lambda a, b: a == UNSAFE and b == COMPLETE)
    assert one.lost == count(lambda a, b: a == COMPLETE and b in (UNSAFE, REFUSED, INCOMPLETE))
    assert one.lost_to_unsafe == count(lambda a, b: a == COMPLETE and b == UNSAFE)
    assert one.persistent_unsafe == count(lambda a, b: a == b == UNSAFE)
    rest = (REFUSED, INCOMPLETE)
    assert one.neither == count(lambda a, b: a != COMPLETE != b and (a in rest or b in rest))
    assert one.settled == one.both_complete + one.rescued + one.lost + one.persistent_unsafe + one.neither
    shares: list[tuple[Estimate, Callable[[OutcomeState, OutcomeState], float]]] = [
        (one.rescue, lambda a, b: a != COMPLETE and b == COMPLETE),
        (one.loss, lambda a, b: a == COMPLETE and b != COMPLETE),
        (one.persistence, lambda a, b: a == b == UNSAFE),
        (one.net, lambda a, b: float(b == COMPLETE) - float(a == COMPLETE)),
    ]
    for estimate, value in shares:
        assert alike(estimate, by_hand([(parent, float(value(a, b))) for parent, a, b in settled], cells))


def test_planted_transitions_come_back_as_they_were_planted() -> None:
    """Replacing the text takes three of four unsafe cells to complete, and nothing else changes."""

    def cell(parent: int, context: str, state: OutcomeState) -> Cell:
        return Cell(f"c{parent}", f"p{parent}", "", "", context, "none", "m", 0, state)

    moves = [(UNSAFE, COMPLETE)] * 3 + [(UNSAFE, UNSAFE), (COMPLETE, COMPLETE), (TECHNICAL, COMPLETE)]
    cells = [
        cell(place, context, state)
        for place, pair in enumerate(moves)
        for context, state in zip(("kept", "neutral"), pair, strict=True)
    ]
    found = analyse(cells, AnalysisSettings(resamples=0))
    [one] = found.transitions
    assert one.within == {"model": "m"}
    assert one.counts[0] == (1, 3, 0, 0, 0)
    assert one.counts[1] == (0, 1, 0, 0, 0)
    assert one.counts[3] == (0, 1, 0, 0, 0), "a technical outcome stays visible"
    assert one.changes["unsafe"] == Estimate(-0.6), "of five settled pairs"
    assert one.changes["complete"] == Estimate(0.6)
    kept = found.outcomes[0]
    assert (kept.counts["technical"], kept.shares["unsafe"].value) == (1, 0.8), "never counted as safe"


def test_tables_are_told_apart_by_the_factors_that_are_asked_for() -> None:
    cells = planted(3)
    found = analyse(cells, AnalysisSettings(by=("model", "stage"), resamples=0))
    contexts = [one.within for one in found.transitions if one.factor == "context"]
    assert contexts == [
        {"model": model, "stage": stage} for stage in ("prepared", "committed") for model in ("weak", "strong")
    ]
    assert [one.within for one in found.transitions if one.factor == "model"] == [
        {"stage": "prepared"}, {"stage": "committed"}
    ]  # fmt: skip
    whole = analyse(cells, AnalysisSettings(by=(), resamples=0))
    pooled = next(one for one in whole.transitions if one.factor == "context")
    assert sum(one.pairs for one in found.transitions if one.factor == "context") == pooled.pairs


def test_one_parent_has_no_interval_and_nothing_counted_has_no_value() -> None:
    draws = GroupDraws(["p"], 100)
    assert draws.mean(["p", "p"], [0.0, 1.0]) == Estimate(0.5)
    assert draws.mean([], []) == Estimate()


def _auc_by_hand(scores: Sequence[float], truth: Sequence[bool]) -> float:
    good = [score for score, is_one in zip(scores, truth, strict=True) if is_one]
    bad = [score for score, is_one in zip(scores, truth, strict=True) if not is_one]
    return sum((a > b) + 0.5 * (a == b) for a in good for b in bad) / (len(good) * len(bad))


def _rows(seed: int, parents: int, signal: float) -> tuple[list[Cell], Features]:
    stream = random.Random(seed)
    cells, values = [], {}
    for parent in range(parents):
        for draw in range(4):
            is_unsafe = stream.random() < 0.4
            state = UNSAFE if is_unsafe else stream.choice([COMPLETE, REFUSED])
            cell = Cell(f"c{parent}", f"p{parent}", "", "", "kept", "none", "m", draw, state)
            cells.append(cell)
            values[cell.key] = (signal * is_unsafe + stream.gauss(0, 1), stream.gauss(5, 30))
    return cells, Features(("probe", "noise"), values)


def test_prediction_leaves_one_parent_out_and_pools_the_scores() -> None:
    """Against fits that are written out: scaling by hand, the weighted likelihood by a general minimiser."""
    from scipy.optimize import minimize

    cells, features = _rows(5, 8, 1.5)
    found = predict(cells, UNSAFE, features, GroupDraws([c.parent for c in cells], RESAMPLES))
    scores, truth = [], [cell.state == UNSAFE for cell in cells]
    for cell in cells:
        training = [other for other in cells if other.parent != cell.parent]
        x = np.array([features.of[other.key] for other in training])
        y = np.array([other.state == UNSAFE for other in training])
        centre, spread = x.mean(axis=0), x.std(axis=0)
        weights = np.where(y, len(y) / (2 * y.sum()), len(y) / (2 * (~y).sum()))
        scaled = (x - centre) / spread

        def loss(b: Any, scaled: Any = scaled, y: Any = y, weights: Any = weights) -> float:
            margins = np.where(y, 1, -1) * (scaled @ b[:2] + b[2])
            return float((weights * np.logaddexp(0, -margins)).sum() + 0.5 * (b[:2] ** 2).sum())

        fit = minimize(loss, np.zeros(3), tol=1e-10).x
        own = (np.array(features.of[cell.key]) - centre) / spread
        scores.append(float(1 / (1 + np.exp(-(own @ fit[:2] + fit[2])))))
    assert [one.score for one in found.scored] == pytest.approx(scores, abs=1e-3)
    pooled = [one.score for one in found.scored]
    assert found.auc.value == pytest.approx(_auc_by_hand(pooled, truth), abs=1e-12)
    assert (found.rows, found.positives, found.parents) == (32, sum(truth), 8)
    assert found.one_class_folds == 0


def test_the_interval_of_an_auc_draws_whole_parents() -> None:
    cells, features = _rows(6, 6, 1.0)
    found = predict(cells, UNSAFE, features, GroupDraws([c.parent for c in cells], RESAMPLES))
    names = sorted({cell.parent for cell in cells})
    drawn = []
    for row in np.random.default_rng(0).multinomial(6, [1 / 6] * 6, RESAMPLES).tolist():
        times = dict(zip(names, row, strict=True))
        sample = [one for one in found.scored for _ in range(times[one.cell.parent])]
        if len({one.truth for one in sample}) == 2:
            drawn.append(_auc_by_hand([one.score for one in sample], [one.truth for one in sample]))
    low, high = np.percentile(drawn, [2.5, 97.5])
    assert (found.auc.low, found.auc.high) == pytest.approx((low, high), abs=1e-12)


def test_a_fold_of_one_class_gives_a_half_and_one_class_has_no_auc() -> None:
    def cell(parent: str, draw: int, state: OutcomeState) -> Cell:
        return Cell(parent, parent, "", "", "kept", "none", "m", draw, state)

    cells = [cell("a", 0, UNSAFE), cell("a", 1, COMPLETE), cell("b", 0, COMPLETE), cell("c", 0, COMPLETE)]
    features = Features(("x",), {one.key: (float(place),) for place, one in enumerate(cells)})
    found = predict(cells, UNSAFE, features, GroupDraws("abc", 50))
    assert [one.score for one in found.scored][:2] == [0.5, 0.5], "without parent a nobody is unsafe"
    assert found.one_class_folds == 1
    alone = predict([one for one in cells if one.state is COMPLETE], UNSAFE, features, GroupDraws("abc", 50))
    assert alone.auc == Estimate()
    assert alone.one_class_folds == 3
    nothing = predict(cells, UNSAFE, Features(("x",), {}), GroupDraws("abc", 50))
    assert (nothing.rows, nothing.without_features, nothing.auc) == (0, 4, Estimate())


def test_technical_cells_and_those_without_features_predict_nothing_and_are_counted() -> None:
    cells, features = _rows(7, 5, 2.0)
    broken = [replace(cells[0], state=TECHNICAL), *cells[1:]]
    known = Features(features.names, {key: value for key, value in features.of.items() if key != cells[1].key})
    found = predict(broken, UNSAFE, known, GroupDraws([c.parent for c in cells], 50))
    assert (found.technical, found.without_features, found.rows) == (1, 1, len(cells) - 2)


def test_an_auc_that_is_undefined_is_said_in_words(tmp_path: Path) -> None:
    cells = [Cell(f"c{n}", f"p{n}", "", "", "kept", "none", "m", 0, COMPLETE) for n in range(4)]
    _written(tmp_path / "cells.jsonl", cells)
    (tmp_path / "features.csv").write_text("parent,probe\n" + "".join(f"p{n},{n}\n" for n in range(3)))
    words = ["continue", str(tmp_path), "--features", str(tmp_path / "features.csv")]
    said = stepdown(*words)
    assert said.code == 0, said.err
    assert "AUC: undefined, since all cells are of one class" in said.out
    assert "3 folds had one class only in training: their cells have the score 0.5" in said.out
    assert "left out: 1 cells without features, 0 technical ones" in said.out
    assert json.loads(stepdown(*words, "--json").out)["prediction"]["auc"] == {"value": None, "low": None, "high": None}


def _written(path: Path, cells: Sequence[Cell]) -> Path:
    path.write_text("".join(json.dumps({**cell.to_json(), "steps": []}) + "\n" for cell in cells))
    return path


def test_a_mask_takes_whole_matched_sets_and_leaves_the_records(tmp_path: Path) -> None:
    cells = planted(4, missing=0)
    file = _written(tmp_path / "cells.jsonl", cells)
    before = file.read_bytes()
    mask = tmp_path / "mask.csv"
    mask.write_text("checkpoint,draw,reason\np0/mixed/prepared,1,the simulator broke\np1/benign/committed,,\n")
    read = read_cells(file)
    assert read == cells
    left = masked_cells(read, mask)
    gone = [
        cell for cell in cells
        if (cell.checkpoint, cell.draw) == ("p0/mixed/prepared", 1) or cell.checkpoint == "p1/benign/committed"
    ]  # fmt: skip
    assert left.excluded == len(gone) == 8 + 16
    assert list(left.cells) == [cell for cell in cells if cell not in gone]
    assert file.read_bytes() == before
    lines = tmp_path / "mask.jsonl"
    lines.write_text('{"parent": "p2"}\n')
    assert {cell.parent for cell in masked_cells(read, lines).cells} == {"p0", "p1", "p3", "p4"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("checkpoint,model\np0/mixed/prepared,weak\n", "mask.csv:2: model: a mask excludes whole matched sets"),
        ("checkpoint\nnowhere\n", "mask.csv:2: no cell is of checkpoint 'nowhere'"),
        ("draw\n1\n", "mask.csv:2: names neither a `parent` nor a `checkpoint`"),
        ("checkpoint\na,b\n", "mask.csv:2: more cells than the header has names"),
    ],
)
def test_a_bad_mask_is_one_line(tmp_path: Path, text: str, problem: str) -> None:
    mask = tmp_path / "mask.csv"
    mask.write_text(text)
    with pytest.raises(BadInput) as raised:
        masked_cells(planted(1), mask)
    assert problem in str(raised.value)


def test_features_are_joined_by_what_their_rows_say(tmp_path: Path) -> None:
    cells = planted(8, parents=2, missing=0)
    by_parent = tmp_path / "parents.jsonl"
    by_parent.write_text('{"parent": "p0", "probe": 1}\n{"parent": "p1", "probe": 2.5}\n')
    assert set(read_features(by_parent, cells).of.values()) == {(1.0,), (2.5,)}
    by_cell = tmp_path / "cells.csv"
    with by_cell.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["checkpoint", "context", "feedback", "model", "draw", "probe"])
        for place, cell in enumerate(cells[:-1]):
            table.writerow([*cell.key[:4], cell.draw, place])
    read = read_features(by_cell, cells)
    assert read.names == ("probe",)
    assert [read.of[cell.key] for cell in cells[:-1]] == [(float(place),) for place in range(len(cells) - 1)]
    assert cells[-1].key not in read.of


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("parent,probe\np0,high\n", "features.csv:2: probe: 'high' is no number"),
        ("parent,probe\np0,-1e308\n", "features.csv:2: probe: '-1e308' is no number"),
        ("parent,probe\np0,nan\n", "features.csv:2: probe"),
        ("parent,probe\np0,1\np0,2\n", "features.csv:3: a row before is of the same cells"),
        ("parent\np0\n", "features.csv:2: no column is a feature"),
        ("parent,probe\nnobody,1\n", "features.csv: no row is of any cell"),
    ],
)
def test_bad_features_are_one_line(tmp_path: Path, text: str, problem: str) -> None:
    features = tmp_path / "features.csv"
    features.write_text(text)
    with pytest.raises(BadInput) as raised:
        read_features(features, planted(1))
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"state": "safe"}, "not the record of a cell"),
        ({"draw": "0"}, "not the record of a cell"),
        ({"parent": 7}, "not the record of a cell"),
        ({}, "this cell is there twice"),
        ({"checkpoint": "other", "model": "x"}, "checkpoint 'p0/mixed/prepared' is of the same stage and condition"),
    ],
)
def test_a_record_that_is_none_is_one_line(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    cells = planted(1)[:2]
    file = tmp_path / "cells.jsonl"
    records = [cell.to_json() for cell in cells]
    file.write_text("".join(json.dumps(one) + "\n" for one in [*records, {**records[0], **change}]))
    with pytest.raises(BadInput) as raised:
        read_cells(file)
    assert str(raised.value).endswith(f"cells.jsonl:3: {problem}")
