"""`stepdown score` as its user meets it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.banks import TIERS, Life, ids, write_bank, write_predictions
from tests.conftest import stepdown


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    lives = [
        Life([0, 3, 1], "a", group="g", split="train"),
        Life([0], "b", group="h", split="train"),
        Life([2, 0], "c", "talk", group="h", split="test"),
    ]
    return write_bank(tmp_path / "bank", lives)


@pytest.fixture
def labels(bank: Path, tmp_path: Path) -> Path:
    return write_predictions(tmp_path / "labels.jsonl", ids(bank))


def test_the_score_is_printed_by_workload_and_over_all(bank: Path, labels: Path) -> None:
    result = stepdown("score", str(bank), str(labels))
    assert result.code == 0, result.err
    lines = [line.split() for line in result.out.splitlines()]
    assert ["talk", "2", "100.00", "100.00", "100.00"] in [line[:5] for line in lines]
    assert ["all", "3", "0", "1", "1"] in lines  # trajectories, failed ones, rows labelled high, found ones


def test_json_holds_what_is_printed(bank: Path, labels: Path) -> None:
    found = json.loads(stepdown("score", str(bank), str(labels), "--json").out)
    assert [part["name"] for part in found["workloads"]] == ["talk", "work"]
    assert found["overall"]["metrics"]["RowExact"]["value"] == 100
    assert found["overall"]["confusion"] == [[3, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0]]
    assert found["settings"]["tokenizer"] == "characters"


def test_tiers_may_be_named_or_numbered_in_jsonl_and_csv(bank: Path, tmp_path: Path) -> None:
    numbered = ids(bank)
    named: dict[str, Any] = {name: TIERS[tier] for name, tier in numbered.items()}
    both: tuple[Mapping[str, Any], ...] = (numbered, named)
    scores = []
    for place, tiers in enumerate(both):
        path = write_predictions(tmp_path / f"p{place}.jsonl", tiers)
        table = tmp_path / f"p{place}.csv"
        table.write_text("\ufeffnote,tier,id\n" + "".join(f"x,{tier},{name}\n" for name, tier in tiers.items()))
        scores += [json.loads(stepdown("score", str(bank), str(file), "--json").out) for file in (path, table)]
    assert all(one["overall"] == scores[0]["overall"] for one in scores)
    assert scores[0]["overall"]["metrics"]["RowExact"]["value"] == 100


def test_missing_and_broken_predictions_fail_and_are_counted_apart(bank: Path, tmp_path: Path) -> None:
    tiers = {**ids(bank), "work/a/1": "huge", "work/b/1": None, "talk/c/1": [0]}
    del tiers["work/a/2"]
    path = write_predictions(tmp_path / "p.jsonl", tiers)
    found = json.loads(stepdown("score", str(bank), str(path), "--json").out)
    assert (found["missing"], found["broken"]) == (1, 3)
    assert found["overall"]["metrics"]["RowPass"]["value"] == pytest.approx(100 * 2 / 6)
    assert found["overall"]["metrics"]["TrajPass"]["value"] == 0
    assert found["overall"]["patterns"]["none"] == 3
    assert [row[-1] for row in found["overall"]["confusion"]] == [2, 0, 1, 1]


def test_every_error_pattern_is_told_apart(bank: Path, tmp_path: Path) -> None:
    tiers = {"work/a/1": 1, "work/a/2": 0, "work/a/3": 0, "work/b/1": 2, "talk/c/1": 3, "talk/c/2": 0}
    path = write_predictions(tmp_path / "p.jsonl", tiers)
    overall = json.loads(stepdown("score", str(bank), str(path), "--json").out)["overall"]
    assert overall["patterns"] == {
        "exact": 1,
        "one up": 1,
        "further up": 1,
        "jump to top": 1,
        "below": 1,
        "none": 0,
    }


def test_a_split_is_scored_alone_and_predictions_for_the_other_are_no_error(bank: Path, labels: Path) -> None:
    found = json.loads(stepdown("score", str(bank), str(labels), "--split", "test", "--json").out)
    assert found["overall"]["rows"] == 2
    refused = stepdown("score", str(bank), str(labels), "--split", "tset")
    assert refused.code == 2
    assert "no row is of the split 'tset'" in refused.err


def test_outcomes_of_every_row_are_written_with_their_groups(bank: Path, labels: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    assert stepdown("score", str(bank), str(labels), "--rows", str(rows)).code == 0
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    assert [row["id"] for row in found] == list(ids(bank))
    assert {row["group"] for row in found} == {"g", "h"}
    assert all(row["passed"] and row["exact"] and row["trajectory_passed"] for row in found)
    assert all(row["usd_predicted"] == row["usd_label"] for row in found)


def test_a_failed_score_leaves_no_outcomes(bank: Path, tmp_path: Path) -> None:
    path = write_predictions(tmp_path / "p.jsonl", {**ids(bank), "nobody/1": 0})
    assert stepdown("score", str(bank), str(path), "--rows", str(tmp_path / "rows.jsonl")).code == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bank", "p.jsonl"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"id": "work/a/1", "tier": 0}', '{"id": "x", "tier": 0}'], "p.jsonl:2: id: no row has the id 'x'"),
        (
            ['{"id": "work/a/1", "tier": 0}', '{"id": "work/a/1", "tier": 0}'],
            "p.jsonl:2: id: 'work/a/1' is predicted twice, first at line 1",
        ),
        (['{"id": "work/a/1", "tier": 0'], "p.jsonl:1: not JSON"),
        (["[1]"], "p.jsonl:1: must be an object"),
        (['{"id": "work/a/1", "prediction": 0}'], "p.jsonl:1: tier: is missing"),
        (['{"id": 3, "tier": 0}'], "p.jsonl:1: id: must be the text of a row's id"),
        (["[" * 100_000], "p.jsonl:1: not JSON"),
    ],
)
def test_a_line_that_predicts_nothing_is_named(bank: Path, tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(lines))
    result = stepdown("score", str(bank), str(path))
    assert result.code == 2
    assert message in result.err
    assert len(result.err.splitlines()) == 1


def test_a_csv_without_its_columns_is_refused(bank: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("id,label\nwork/a/1,0\n")
    assert "p.csv:1: tier: the header must name this column" in stepdown("score", str(bank), str(path)).err


def edited(line: int, **changes: object) -> Callable[[list[str]], list[str]]:
    def edit(lines: list[str]) -> list[str]:
        row = json.loads(lines[line]) | changes
        return [*lines[:line], json.dumps(row), *lines[line + 1 :]]

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (edited(1, target_tier="huge"), "question_bank.jsonl:2: target_tier: the manifest names no tier 'huge'"),
        (edited(1, target_tier_id=2), "question_bank.jsonl:2: target_tier_id: tier 'high' has the id 3"),
        (edited(1, messages="x"), "question_bank.jsonl:2: messages: must be a list"),
        (edited(1, messages=[1]), "question_bank.jsonl:2: messages.0: must be an object"),
        (edited(1, id="work/a/9"), "question_bank.jsonl:2: id: must be benchmark/instance_id/step_index"),
        (edited(1, group="other"), "question_bank.jsonl:2: group: differs within one instance"),
        (lambda lines: [*lines[:1], *lines[2:]], "question_bank.jsonl:2: step_index: must be step 2"),
        (lambda lines: lines[:2], "question_bank.jsonl:2: step 3 of 'work/a/1' is missing"),
        (lambda lines: [*lines, lines[3]], "question_bank.jsonl:7: id: the instance's rows stand at two places"),
        (lambda lines: [*lines[:2], "{"], "question_bank.jsonl:3: not JSON"),
        (lambda lines: [], "there are no rows to score"),
    ],
)
def test_rows_that_are_none_are_named(
    bank: Path, tmp_path: Path, edit: Callable[[list[str]], list[str]], message: str
) -> None:
    rows = bank / "question_bank.jsonl"
    rows.write_text("".join(f"{line}\n" for line in edit(rows.read_text().splitlines())))
    (tmp_path / "p.jsonl").write_text("")
    result = stepdown("score", str(bank), str(tmp_path / "p.jsonl"))
    assert result.code == 2
    assert message in result.err


def test_a_folder_that_holds_no_rows_is_named(tmp_path: Path, labels: Path) -> None:
    assert "no such folder" in stepdown("score", str(tmp_path / "nowhere"), str(labels)).err
    (tmp_path / "empty").mkdir()
    assert "neither a release nor a finished run" in stepdown("score", str(tmp_path / "empty"), str(labels)).err


def test_a_tokenizer_of_ones_own_counts(bank: Path, labels: Path) -> None:
    ours = json.loads(stepdown("score", str(bank), str(labels), "--json", "--tokenizer", "builtins:len").out)
    usual = json.loads(stepdown("score", str(bank), str(labels), "--json").out)
    assert ours["overall"]["metrics"]["RowPass"] == usual["overall"]["metrics"]["RowPass"]
    assert ours["overall"]["metrics"]["CostSave E"] != usual["overall"]["metrics"]["CostSave E"]


def test_a_tokenizer_may_lie_in_the_folder_one_works_in(
    bank: Path, labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_counter.py").write_text("def count(text: str) -> int:\n    return 2 * len(text)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    assert stepdown("score", str(bank), str(labels), "--tokenizer", "own_counter:count").code == 0


def test_encodings_count_without_a_network(bank: Path, labels: Path) -> None:
    from stepdown.scoring.tokenizers import load_tokenizer

    assert [load_tokenizer(name)("hello <|endoftext|>") > 2 for name in ("cl100k_base", "o200k_base")] == [True, True]
    assert stepdown("score", str(bank), str(labels), "--tokenizer", "cl100k_base").code == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpt", "no tokenizer 'gpt': characters, cl100k_base, o200k_base, or module:callable"),
        ("nowhere:count", "No module named 'nowhere'"),
        ("math:pi", "can not be called"),
        ("builtins:str", "not a number of tokens"),
    ],
)
def test_a_tokenizer_that_is_none_is_named(bank: Path, labels: Path, name: str, message: str) -> None:
    result = stepdown("score", str(bank), str(labels), "--tokenizer", name)
    assert result.code == 2
    assert message in result.err


def test_outcomes_never_replace_what_they_are_made_from(bank: Path, labels: Path, tmp_path: Path) -> None:
    rows = bank / "question_bank.jsonl"
    for target in (rows, labels):
        before = target.read_bytes()
        refused = stepdown("score", str(bank), str(labels), "--rows", str(target))
        assert refused.code == 2
        assert "--rows: is one of the files that the score is made from" in refused.err
        assert target.read_bytes() == before
    assert (
        "its folder is not there" in stepdown("score", str(bank), str(labels), "--rows", str(tmp_path / "a" / "b")).err
    )


def test_an_id_of_a_tier_may_be_text(bank: Path, tmp_path: Path) -> None:
    for written in (str, lambda number: f" {number} "):
        path = write_predictions(tmp_path / "p.jsonl", {name: written(label) for name, label in ids(bank).items()})
        found = json.loads(stepdown("score", str(bank), str(path), "--json").out)
        assert (found["broken"], found["overall"]["metrics"]["RowExact"]["value"]) == (0, 100)


@pytest.mark.parametrize(
    ("module", "said"), [("1 / 0", "division by zero"), ("def count(text):\n    1 / 0", "ZeroDiv")]
)
def test_a_tokenizer_of_ones_own_that_fails_is_named(
    module: str, said: str, bank: Path, labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"failing_{len(module)}"
    (tmp_path / f"{name}.py").write_text(module)
    monkeypatch.syspath_prepend(str(tmp_path))
    result = stepdown("score", str(bank), str(labels), "--tokenizer", f"{name}:count")
    assert (result.code, result.err.count("\n")) == (2, 1), result
    assert "--tokenizer" in result.err
    assert said in result.err


def test_nothing_is_written_among_the_files_of_a_release(bank: Path, labels: Path) -> None:
    (bank / "SHA256SUMS").write_text("")
    for command in (
        ["score", str(bank), str(labels), "--rows", str(bank / "rows.jsonl")],
        ["report", str(bank), "--out", str(bank / "report.html")],
    ):
        result = stepdown(*command)
        assert (result.code, "as a file that it does not list" in result.err) == (2, True), result


FORMS_OF_ZERO = ["0", "0.0", "0.", "0,0", "0.000", " 0.0 "]


@pytest.mark.parametrize("zero", FORMS_OF_ZERO)
@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_a_tier_is_read_as_spreadsheets_write_it(bank: Path, tmp_path: Path, zero: str, delimiter: str) -> None:
    written = {0: zero, **{tier: zero.replace("0", str(tier), 1) for tier in (1, 2, 3)}}
    lines = [f'"{name}"{delimiter}"{written[tier]}"\r\n' for name, tier in ids(bank).items()]
    for start in ("", "\ufeff", f"sep={delimiter}\r\n"):
        table = tmp_path / "p.CSV"
        table.write_text(f'{start}"id"{delimiter} tier\r\n' + "".join(lines), newline="")
        assert row_exact(bank, table) == 100


def test_a_tier_is_read_with_a_decimal_point_between_commas_too(bank: Path, tmp_path: Path) -> None:
    table = tmp_path / "p.tsv"
    table.write_text("id,tier\n" + "".join(f"{name},{tier}.0\n" for name, tier in ids(bank).items()))
    assert row_exact(bank, table) == 100


def test_a_tier_is_read_where_a_table_with_gaps_made_it_a_float(bank: Path, tmp_path: Path) -> None:
    tiers: dict[str, Any] = {name: float(tier) for name, tier in ids(bank).items()}
    lines = [json.dumps({"id": name, "tier": tier}) + "\n" for name, tier in tiers.items()]
    path = tmp_path / "p.jsonl"
    path.write_text("\ufeff" + "".join(lines))
    assert row_exact(bank, path) == 100
    tiers |= {"work/a/1": 0.5, "work/a/2": float("nan"), "work/a/3": "1.5"}
    found = json.loads(stepdown("score", str(bank), str(write_predictions(path, tiers)), "--json").out)
    assert found["broken"] == 3


@pytest.mark.parametrize(("name", "tier", "shown"), [("p.csv", "cheap", '"cheap"'), ("p.jsonl", 0.7, "0.7")])
def test_a_column_that_names_no_tier_at_all_is_refused(
    bank: Path, tmp_path: Path, name: str, tier: Any, shown: str
) -> None:
    path = tmp_path / name
    if path.suffix == ".csv":
        path.write_text("id,tier\n" + "".join(f"{row},{tier}\n" for row in ids(bank)))
    else:
        write_predictions(path, dict.fromkeys(ids(bank), tier))
    result = stepdown("score", str(bank), str(path))
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert f"{path}:{2 if path.suffix == '.csv' else 1}: tier: {shown} names no tier" in result.err
    assert "low (0), mid (1), mid_high (2), high (3)" in result.err


def row_exact(bank: Path, predictions: Path) -> float:
    result = stepdown("score", str(bank), str(predictions), "--json")
    assert result.code == 0, result.err
    value: float = json.loads(result.out)["overall"]["metrics"]["RowExact"]["value"]
    return value
