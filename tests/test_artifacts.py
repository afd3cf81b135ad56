"""What a run leaves: rows of just the published fields, evidence, an audit queue without model names, a manifest."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import datasets
import pytest

from stepdown.builder.artifacts.sampling import is_sampled
from tests import workshop
from tests.banks import Life, write_bank
from tests.conftest import Shop
from tests.documented import programs
from tests.provider import Provider

FIELDS = {
    "id",
    "benchmark",
    "instance_id",
    "step_index",
    "total_steps",
    "messages",
    "target_tier",
    "target_tier_id",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A finished run in which every step is sampled for the audit."""
    made = Shop(tmp_path_factory.mktemp("release"))
    with Provider(workshop.ABILITIES) as provider:
        settings = workshop.config(provider.url, [[0, 1, 2], [1], [0, 0]], protocol={"audit": {"rate": 1.0}})
        assert made.build(settings).code == 0
    return made


def test_rows_have_exactly_the_published_fields_and_run_from_1_to_total_steps(shop: Shop) -> None:
    rows = shop.read("question_bank.jsonl")
    steps: dict[str, list[int]] = {}
    for row in rows:
        assert set(row) == FIELDS
        assert row["id"] == f"{row['benchmark']}/{row['instance_id']}/{row['step_index']}"
        assert row["target_tier_id"] == {"low": 0, "mid": 1, "high": 2}[row["target_tier"]]
        steps.setdefault(row["instance_id"], []).append(row["step_index"])
    assert steps == {"job-0": [1, 2, 3], "job-1": [1], "job-2": [1, 2]}
    assert all(row["total_steps"] == len(steps[row["instance_id"]]) for row in rows)


def names_in(value: Any) -> str:
    """All keys and texts of a JSON value, but for what models themselves wrote."""
    if isinstance(value, dict):
        return " ".join(f"{key} {names_in(item)}" for key, item in value.items())
    if isinstance(value, list):
        return " ".join(names_in(item) for item in value)
    return str(value)


@pytest.mark.parametrize("name", ["question_bank.jsonl", "audit_queue.jsonl"])
def test_no_model_of_the_pool_is_named(shop: Shop, name: str) -> None:
    for record in shop.read(name):
        for model in ("novice", "hand", "master", "openai", "loopback"):
            assert model not in names_in(record)


def as_readme_loads(folder: Path) -> datasets.Dataset:
    """The dataset that README's lines make of the rows in a folder."""
    (lines,) = [one.text for one in programs() if "from_list" in one.text]
    names: dict[str, Any] = {}
    exec(lines.replace("runs/quickstart", str(folder)), names)
    loaded: datasets.Dataset = names["rows"]
    return loaded


def test_hugging_faces_datasets_reads_the_rows_as_readme_says(shop: Shop) -> None:
    loaded, rows = as_readme_loads(shop.run), shop.read("question_bank.jsonl")
    assert list(loaded["id"]) == [row["id"] for row in rows]
    assert list(loaded["target_tier"]) == [row["target_tier"] for row in rows]
    assert [json.loads(messages) for messages in loaded["messages"]] == [row["messages"] for row in rows]


def test_rows_with_tools_and_fields_that_come_after_10_megabytes_are_read_as_readme_says(tmp_path: Path) -> None:
    plain = [{"role": "user", "content": "long " * 100_000}]
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    late: list[dict[str, Any]] = [
        {"role": "user", "content": "42"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    lives = [Life([0], f"job-{number}", start=plain) for number in range(24)]
    bank = write_bank(tmp_path / "bank", [*lives, Life([3], "late", start=late, tools=tools)])
    assert (bank / "question_bank.jsonl").stat().st_size > 11_000_000
    loaded = as_readme_loads(bank)
    assert (len(loaded), set(loaded["tools"][:24])) == (25, {"[]"})
    last = loaded[24]
    assert (json.loads(last["messages"]), json.loads(last["tools"])) == (late, tools)
    assert (last["target_tier"], last["target_tier_id"]) == ("high", 3)


def test_the_queue_shows_the_locked_answer_and_what_one_tier_lower_did(shop: Shop) -> None:
    queue = {entry["id"]: entry for entry in shop.read("audit_queue.jsonl")}
    # A label of the lowest tier settles itself: nobody is asked about it.
    assert set(queue) == {row["id"] for row in shop.read("question_bank.jsonl") if row["target_tier"] != "low"}
    mid = queue["workshop/job-0/2"]
    assert mid["response"]["content"].startswith("made 1 with skill 1")
    (lower,) = mid["lower"]
    assert lower["verdict"] == "fail"
    assert lower["reason"] == "a piece is spoilt"
    assert lower["response"]["content"].startswith("spoilt with skill 0")
    # Of a high label: the tier just below it, not the one below that.
    assert [trial["response"]["content"][:19] for trial in queue["workshop/job-0/3"]["lower"]] == [
        "spoilt with skill 1"
    ]


def test_the_manifest_names_and_counts_all_there_is(shop: Shop) -> None:
    manifest = shop.manifest()
    assert manifest["labels"] == {"workshop": {"low": 3, "mid": 2, "high": 1}}
    assert manifest["rows"] == 6
    assert manifest["instances"] == {"workshop": 3}
    assert manifest["pool"]["version"] == "workshop-1"
    assert manifest["seeds"]["models"] == {"workshop": {"master": 3}}
    for name, said in manifest["files"].items():
        data = (shop.run / name).read_bytes()
        assert said == {
            "sha256": hashlib.sha256(data).hexdigest(),
            "lines": data.count(b"\n"),
            "bytes": len(data),
        }


def test_nothing_in_the_files_tells_the_machine_or_the_address(shop: Shop) -> None:
    for data in shop.files().values():
        assert b"127.0.0.1" not in data
        assert str(shop.folder).encode() not in data


def test_about_the_given_share_is_sampled_and_a_larger_sample_holds_the_smaller() -> None:
    ids = [f"bfcl/x/{n}" for n in range(20_000)]
    small = {row for row in ids if is_sampled(7, row, 0.1)}
    assert 1_850 < len(small) < 2_150
    assert small < {row for row in ids if is_sampled(7, row, 0.2)}
    assert small != {row for row in ids if is_sampled(8, row, 0.1)}
