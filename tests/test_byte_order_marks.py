"""A byte order mark, which some editors put before a text, does no harm in any file that people write."""

from __future__ import annotations

from pathlib import Path

from stepdown.builder.config.validation import read_jsonl, read_yaml
from stepdown.rows import read_rows
from tests.banks import Life, write_bank
from tests.conftest import Shop, stepdown
from tests.test_bad_input import refused
from tests.workshop import config

MARK = "\ufeff"


def test_rows_are_read_behind_one(tmp_path: Path) -> None:
    file = write_bank(tmp_path / "bank", [Life([0, 3])]) / "question_bank.jsonl"
    plain = list(read_rows(file))
    file.write_text(MARK + file.read_text())
    assert list(read_rows(file)) == plain


def test_tasks_hints_and_configs_are_read_behind_one(tmp_path: Path) -> None:
    lines, settings = tmp_path / "lines.jsonl", tmp_path / "config.yaml"
    lines.write_text(f'{MARK}{{"id": "a"}}\n{{"id": "b"}}\n')
    settings.write_text(f"{MARK}protocol: {{}}\n")
    assert list(read_jsonl(lines)) == [(1, {"id": "a"}), (2, {"id": "b"})]
    assert read_yaml(settings) == {"protocol": {}}


def test_a_mistake_behind_one_is_named_at_its_line(shop: Shop) -> None:
    (shop.folder / "hints.jsonl").write_text(f'{MARK}{{"id": "workshop/job-0/1", "tier": "huge"}}\n')
    settings = config("http://127.0.0.1:9", [[0]], protocol={"hints": {"source": "file", "file": "hints.jsonl"}})
    refused(stepdown("build", str(shop.write(settings)), "--run", str(shop.run)), "hints.jsonl:1: tier", "huge")
