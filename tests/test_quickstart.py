"""The quickstart, on fewer tasks: real BFCL tasks, real local models, BFCL's own checkers, real kills."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml

from tests.conftest import ROOT, Shop, started

pytestmark = pytest.mark.local

CATEGORIES = {"simple_python": 4, "multiple": 1, "multi_turn_base": ["multi_turn_base_50"]}
ROW = {"id", "benchmark", "instance_id", "step_index", "total_steps", "messages", "target_tier", "target_tier_id"}


def settings(workers: int) -> dict[str, Any]:
    """The quickstart's config with fewer tasks."""
    found: dict[str, Any] = yaml.safe_load((ROOT / "configs/quickstart.yaml").read_text())
    found["protocol"]["pool"] = yaml.safe_load((ROOT / "configs/pools/quickstart.yaml").read_text())
    found["protocol"]["workloads"][0]["source"] = {"categories": CATEGORIES}
    found["protocol"]["audit"] = {"rate": 1.0}
    found["operation"] = {"workers": workers}
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    shop = Shop(tmp_path_factory.mktemp("quickstart"))
    assert shop.build(settings(workers=1)).code == 0
    return shop


def test_every_instance_is_labelled_in_rows_of_just_the_published_fields(undisturbed: Shop) -> None:
    rows = undisturbed.read("question_bank.jsonl")
    steps: dict[str, list[int]] = {}
    for row in rows:
        assert set(row) == ROW | {"tools"}
        steps.setdefault(row["instance_id"], []).append(row["step_index"])
        assert row["total_steps"] >= row["step_index"]
    assert all(found == list(range(1, len(found) + 1)) for found in steps.values())
    assert len(steps) == 6


def test_more_than_one_tier_occurs(undisturbed: Shop) -> None:
    assert len({row["target_tier"] for row in undisturbed.read("question_bank.jsonl")}) > 1


def test_no_model_of_the_pool_is_named_in_rows_or_queue(undisturbed: Shop) -> None:
    for name in ("question_bank.jsonl", "audit_queue.jsonl"):
        text = (undisturbed.run / name).read_text().lower()
        for model in ("smollm", "gemma", "llama", "workload/"):
            assert model not in text


def test_hugging_faces_datasets_reads_real_rows(undisturbed: Shop, tmp_path: Path) -> None:
    file = str(undisturbed.run / "question_bank.jsonl")
    loaded = datasets.load_dataset("json", data_files=file, cache_dir=str(tmp_path))["train"]
    assert list(loaded["id"]) == [row["id"] for row in undisturbed.read("question_bank.jsonl")]


def test_killed_at_any_moment_with_any_number_of_workers_the_bytes_are_the_same(shop: Shop, undisturbed: Shop) -> None:
    path = shop.write(settings(workers=8))
    for seconds in (6, 9):
        process = started("build", str(path), "--run", str(shop.run))
        time.sleep(seconds)
        process.kill()
        process.communicate()
    assert shop.build(settings(workers=8)).code == 0
    assert shop.files() == undisturbed.files()
