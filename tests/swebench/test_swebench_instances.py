"""Instances in the format of swebench 5: from files, checked, selected."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.errors import BadInput
from stepdown.harnesses.swebench.instances import Task, select
from tests.swebench.conftest import read, written
from tests.swebench.repository import PROBLEM, SOLUTION, instance

ROW = instance("spans:1")
OTHER = instance("spans:2", "spans__spans-2")


def refused(source: Mapping[str, Any]) -> str:
    with pytest.raises(BadInput) as caught:
        list(select(source))
    return str(caught.value)


def test_a_row_is_read_alike_from_every_kind_of_file(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    (tmp_path / "rows.json").write_text(json.dumps([ROW, OTHER]))
    written(tmp_path / "rows.jsonl", ROW, OTHER)
    rows = [{**row, "image_assets": None} for row in (ROW, OTHER)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    found = [list(select({"file": str(tmp_path / f"rows.{kind}")})) for kind in ("json", "jsonl", "parquet")]
    assert found[0] == found[1] == found[2]
    assert [(one.benchmark, one.id, one.group) for one in found[0]] == [
        ("swebench", "spans__spans-1", "spans/spans"),
        ("swebench", "spans__spans-2", "spans/spans"),
    ]


def test_the_grader_takes_a_task_as_its_own(tmp_path: Path) -> None:
    from swebench.harness.utils import make_test_spec

    [one] = read(tmp_path, ROW)
    assert make_test_spec(dict(one.task)) == make_test_spec(ROW)
    assert Task.of(one).problem_statement == PROBLEM
    assert SOLUTION not in json.dumps(one.task), "no episode can show the solution"


def test_ids_and_a_limit_select_in_the_file_s_order(tmp_path: Path) -> None:
    path = str(written(tmp_path / "rows.jsonl", ROW, OTHER))
    assert [one.id for one in select({"file": path, "limit": 1})] == ["spans__spans-1"]
    assert [one.id for one in select({"file": path, "ids": ["spans__spans-2"]})] == ["spans__spans-2"]
    assert refused({"file": path, "ids": ["spans__spans-3"]}) == "source.ids: no such id: 'spans__spans-3'"


@pytest.mark.parametrize("packed", [True, False])
def test_an_instance_whose_assets_the_host_would_fetch_is_dropped(tmp_path: Path, packed: bool) -> None:
    assets: Any = {"test_patch": [{"path": "expected.png", "url": "http://127.0.0.1:9/expected.png"}]}
    [one] = read(tmp_path, {**ROW, "image_assets": json.dumps(assets) if packed else assets})
    assert one.dropped == "its tests need files that the grader would fetch from the network (image_assets)"
    [other] = read(tmp_path, {**ROW, "image_assets": "{}" if packed else {"patch": []}})
    assert other.dropped is None


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"image": ""}, "image: String should match"),
        ({"image": "--privileged"}, "image: String should match"),
        ({"instance_id": "../x"}, "instance_id: String should match"),
        ({"log_parser": "parse_log_of_mine"}, "log_parser: swebench has no log parser 'parse_log_of_mine'"),
        ({"log_parser": 3}, "log_parser: Input should be a valid string"),
        ({"eval_type": "maybe"}, "eval_type: Input should be 'pass_and_fail' or 'fail_only'"),
        ({"FAIL_TO_PASS": []}, "FAIL_TO_PASS: Tuple should have at least 1 item"),
        ({"FAIL_TO_PASS": "[1]"}, "FAIL_TO_PASS.0: Input should be a valid string"),
        ({"PASS_TO_PASS": "[1"}, "PASS_TO_PASS: "),
        ({"problem_statement": None}, "problem_statement: Input should be a valid string"),
        ({"image_assets": "[]"}, "image_assets: Input should be a valid dictionary"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(tmp_path: Path, changes: Mapping[str, Any], problem: str) -> None:
    path = written(tmp_path / "rows.jsonl", OTHER, {**ROW, **changes})
    assert refused({"file": str(path)}).startswith(f"{path}:2: {problem}")


def test_a_row_of_the_older_format_is_told_so(tmp_path: Path) -> None:
    old = {name: ROW[name] for name in ("instance_id", "repo", "version", "problem_statement", "FAIL_TO_PASS")}
    path = written(tmp_path / "rows.jsonl", old)
    assert "is older than swebench 5" in refused({"file": str(path)})


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("rows.jsonl", "{\n", "rows.jsonl:1: not JSON"),
        ("rows.jsonl", "3\n", "rows.jsonl:1: must be a mapping"),
        ("rows.jsonl", "", "source.file: holds no instance"),
        ("rows.json", "{}", "rows.json: must be a list of instances"),
        ("rows.json", "[", "rows.json: not JSON"),
        ("rows.json", "[{}]", "rows.json instance 1: instance_id: Field required"),
        ("rows.parquet", "PAR", "rows.parquet: not a readable Parquet file"),
        ("rows.csv", "", "source.file: "),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (tmp_path / name).write_text(text)
    assert problem in refused({"file": str(tmp_path / name)})


def test_a_source_that_is_no_source_is_refused(tmp_path: Path) -> None:
    assert refused({}) == "source: one of `file` and `dataset` is needed"
    assert refused({"file": "a.json", "dataset": "b"}) == "source: one of `file` and `dataset` is needed"
    assert refused({"file": "a.json", "limit": 0}).startswith("source.limit: ")
    assert refused({"file": "a.json", "ids": ["a", "a"]}) == "source: an id is given twice"
    assert refused({"file": str(tmp_path / "a.json")}).endswith("a.json: No such file or directory")


def test_a_data_set_that_cannot_be_loaded_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without data stands for a name that the Hub does not give out."""
    (tmp_path / "nothing").mkdir()
    problem = refused({"dataset": str(tmp_path / "nothing")})
    assert problem.startswith("source.dataset: ")
    assert "name a local copy as `file`" in problem


def test_a_data_set_is_read_as_files_are(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    written(folder / "test.jsonl", {**ROW, "PASS_TO_PASS": json.dumps(ROW["PASS_TO_PASS"])})
    assert list(select({"dataset": str(folder)})) == read(tmp_path, ROW)
