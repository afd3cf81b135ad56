"""A run whose reviewers lowered a label is reported and scored as they left it, and so is its release."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepdown.harnesses.planted.setup import planted_config
from tests.audit.reviewing import only, read_steps, review
from tests.banks import ids, write_predictions
from tests.conftest import Shop, stepdown
from tests.reports.test_report_tables import tables

LOW, MID, HIGH = 0, 1, 3


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every step was sampled; one label of the mid tier was found to be too high, one instance was held back."""
    shop = Shop(tmp_path_factory.mktemp("audited"))
    source = {"tiers": [[LOW, MID, HIGH], [LOW, LOW], [HIGH]]}
    assert shop.build(planted_config(source, protocol={"audit": {"rate": 1.0}})).code == 0
    assert stepdown("audit", "sample", str(shop.run)).code == 0
    lowered = next(step for step in read_steps(shop.run) if step.tier == "mid")
    last = next(step for step in read_steps(shop.run) if step.tier == "high" and step.step_index == 1)
    verdict = only("further-downgradeable", lowered)
    review(shop.run, "ann", lambda step: "uncertain" if step.id == last.id else verdict(step))
    assert stepdown("audit", "apply", str(shop.run)).code == 0
    return shop.run


def test_lowered_labels_are_reported_beside_the_locks_they_had(run: Path) -> None:
    found = tables(run)
    assert found["labels by workload and tier"] == [["planted", "5", "4", "0", "0", "1", "20.0%"]]
    assert [row[1:3] for row in found["locks by model"]] == [["low", "3"], ["mid", "1"], ["high", "1"]]
    assert (
        "1 label lowered by the audit below the tier of the lock" in stepdown("report", str(run), "--tables-only").out
    )
    assert found["human audit"] == [["planted", "6", "6", "100.0%", "1", "1", "4", "66.7%", "33.3%"]]
    assert ["held back by the audit", "1"] in [[row[1], row[3]] for row in found["instances without rows"]]


def test_predictions_are_held_against_the_lowered_labels(run: Path, tmp_path: Path) -> None:
    executed = {name: tier for name, tier in ids(run).items() if not name.startswith("planted/3/")}
    before = json.loads(
        stepdown("score", str(run), str(write_predictions(tmp_path / "p.jsonl", executed)), "--json").out
    )
    assert before["overall"]["rows"] == 5
    assert before["overall"]["patterns"]["one up"] == 1
    assert before["overall"]["metrics"]["RowPass"]["value"] == 100


def test_a_release_of_it_says_the_same(run: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    published = stepdown("publish", str(run), "--out", str(release))
    assert published.code == 0, published.out
    of_run, of_release = tables(run), tables(release)
    for title in ("labels by workload and tier", "labels by step position"):
        assert of_run[title] == of_release[title]
    assert of_run["human audit"] == of_release["human audit"]
    score = stepdown("score", str(release), str(write_predictions(tmp_path / "p.jsonl", ids(release))), "--json")
    assert json.loads(score.out)["overall"]["metrics"]["RowExact"]["value"] == 100
