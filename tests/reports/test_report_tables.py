"""What `stepdown report` prints of a run and of a release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import workshop
from tests.banks import Life, write_bank
from tests.conftest import Shop, stepdown
from tests.provider import Provider

Rows = dict[str, list[list[str]]]


def tables(folder: Path, *options: str) -> Rows:
    """The rows of every table by its title."""
    result = stepdown("report", str(folder), "--json", *options)
    assert result.code == 0, result.err
    sections: dict[str, list[dict[str, Any]]] = json.loads(result.out)["sections"]
    return {table["title"]: table["rows"] for found in sections.values() for table in found}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run: two models in the low tier, of which the second can do more; one seed that no model can make."""
    shop = Shop(tmp_path_factory.mktemp("report"))
    models = {"low": ["novice", "hand"], "high": ["master"]}
    with Provider(workshop.ABILITIES) as provider:
        needs = [[0, 1, 9], [1], [0, 0], [99]]
        assert shop.build(workshop.config(provider.url, needs, models=models)).code == 0
    return shop.run


def test_labels_stand_by_workload_position_and_role(run: Path) -> None:
    found = tables(run)
    assert found["labels by workload and tier"] == [["workshop", "6", "5", "1", "16.7%"]]
    assert found["labels by step position"] == [
        ["1", "2", "2", "0", "0.0%"],
        ["2", "2", "2", "0", "0.0%"],
        ["3", "1", "0", "1", "100.0%"],
        ["all", "5", "4", "1", "20.0%"],
    ]
    # All steps have a role, the last ones too: a run's ledger has their responses.
    assert found["labels by step role"] == [["summarize_answer", "6", "5", "1", "16.7%"]]


def test_locks_stand_by_model_and_the_cascade_beside_its_first_model(run: Path) -> None:
    found = tables(run)
    assert found["locks by model"] == [
        ["novice", "low", "3", "50.0%", "3"],
        ["hand", "low", "2", "33.3%", "2"],
        ["master", "high", "1", "16.7%", "1"],
    ]
    title = "labels below the strong tier that the first model alone would have found"
    assert found[title] == [["workshop", "5", "3", "60.0%", "2", "1", "50.0%"]]
    assert found["labels by the accepted model's place in the cascade"] == [["low", "3", "2"]]


def test_what_has_no_rows_stands_with_its_reason(run: Path) -> None:
    (row,) = tables(run)["instances without rows"]
    manifest = json.loads((run / "manifest.json").read_text())
    (reason,) = manifest["dropped"]["workshop"]
    assert row == ["workshop", "dropped", reason, "1"]


def test_the_cost_of_the_build_is_what_the_run_paid(run: Path) -> None:
    spend = json.loads((run / "spend.json").read_text())
    amounts = dict(tables(run)["the build"])
    assert amounts["calls paid by this run"] == str(spend["calls"] + spend["unbooked"]["calls"])
    assert amounts["paid, at list price"] == f"${spend['usd']:.4f}"


def test_a_run_without_a_judge_or_an_audit_has_no_such_tables(run: Path) -> None:
    assert not {"judged answers", "human audit"} & tables(run).keys()


def test_the_terminal_shows_the_same_rows(run: Path, tmp_path: Path) -> None:
    out = stepdown("report", str(run), "--tables-only").out
    for title, rows in tables(run).items():
        assert title in out
        for row in rows:
            assert row in [line.split() for line in out.splitlines()] or any(" " in cell or not cell for cell in row)


# Of a release


def test_a_release_has_no_response_to_a_last_step_and_says_so(tmp_path: Path) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    life = Life([0, 3], answers=[{"content": "", "tool_calls": [call]}])
    found = tables(write_bank(tmp_path, [life]))
    assert found["labels by step role"] == [
        ["explore_search", "1", "1", "0", "0", "0", "0.0%"],
        ["not known", "1", "0", "0", "0", "1", "100.0%"],
        ["all", "2", "1", "0", "0", "1", "50.0%"],
    ]
    assert not {"locks by model", "the build"} & found.keys()


def test_savings_are_those_of_the_accounting(tmp_path: Path) -> None:
    # A step of 4,000 tokens (a message's JSON is 16,000 characters) and an answer of which nothing is known: 500.
    text = "x" * (16_000 - len(json.dumps({"role": "user", "content": ""}, separators=(",", ":"))))
    lives = [Life([label], f"i{label}", start=[{"role": "user", "content": text}]) for label in range(4)]
    found = tables(write_bank(tmp_path, lives))
    by_instance = {row[0]: row for row in found["the longest trajectories"]}
    for label, cents in enumerate((3.621, 3.530, 3.467, 0)):
        *_, strong, by_label, saved = by_instance[f"work/i{label}"]
        assert (strong, by_label) == ("0.0375", f"{0.0375 - cents / 100:.4f}")
        assert float(saved.rstrip("%")) == pytest.approx(100 * cents / 3.75, abs=0.06)


def test_a_trajectory_that_routing_makes_dearer_is_said_to_cost_more(tmp_path: Path) -> None:
    # The strong tier reads a long prefix cheaply; going down and up again writes it anew.
    start = [{"role": "user", "content": "x" * 400_000}]
    bank = write_bank(tmp_path, [Life([3, 0, 3], start=start), Life([0], "short")])
    found = tables(bank)
    assert found["cost by label and at the strong tier"][0][-1] == "1"
    (row,) = [row for row in found["the longest trajectories"] if row[0] == "work/i"]
    assert row[-1].startswith("-")
    assert [step[2:5:2] for step in found["the case, step by step"]] == [["high", "0"], ["low", "0"], ["high", "0"]]


def test_tiers_without_rates_have_no_savings_until_a_card_names_them(tmp_path: Path) -> None:
    tiers = [{"name": "small", "id": 0}, {"name": "big", "id": 1}]
    renamed = {1: {"target_tier": "small", "target_tier_id": 0}}
    bank = write_bank(tmp_path / "bank", [Life([0], changes=renamed)], {"pool": {"version": "p", "tiers": tiers}})
    out = stepdown("report", str(bank), "--tables-only").out
    assert "has no rates for tier 'small'; name a card of your own by --rates" in out
    card = tmp_path / "card.yaml"
    rate = "{input: 1, cache_read: 1, cache_write: 1, output: 1}"
    card.write_text(f"small: {rate}\nbig: {rate}\n")
    assert "cost by label and at the strong tier" in tables(bank, "--rates", str(card))


def test_long_trajectories_are_gathered_into_ranges(tmp_path: Path) -> None:
    found = tables(write_bank(tmp_path, [Life([0] * 40)]))["labels by step position"]
    steps = {row[0]: row[1] for row in found}
    assert steps["10"] == "1"
    assert (steps["11 to 15"], steps["16 to 20"], steps["21 to 30"], steps["31 to 40"]) == ("5", "5", "10", "10")
    assert steps["all"] == "40"


def test_the_audit_of_a_manifest_is_shown(tmp_path: Path) -> None:
    slices = [{"workload": "work", "steps": 336, "sampled": 34, "downgradeable": 1, "tight": 33, "uncertain": 0}]
    audit = {"workloads": slices, "lowered": 1, "reviewers": 2, "held_back": {"uncertain": 3}}
    found = tables(write_bank(tmp_path, [Life([0])], {"audit": audit}))
    assert found["human audit"] == [["work", "336", "34", "10.1%", "1", "0", "33", "97.1%", "-"]]
    assert ["", "held back by the audit", "uncertain", "3"] in found["instances without rows"]


@pytest.mark.parametrize(
    "manifest",
    [
        {"audit": [1]},
        {"audit": {"workloads": [1, {"sampled": "x"}]}},
        {"dropped": {"work": 3}},
        {"dropped": []},
        {"runs": [3, {"dropped": {"work": {"x": None}}}]},
        {"needed": 3},
    ],
)
def test_a_manifest_of_anybodys_making_is_read_as_far_as_it_goes(tmp_path: Path, manifest: dict[str, Any]) -> None:
    assert "labels by workload and tier" in tables(write_bank(tmp_path, [Life([0])], manifest))


# Of a judge


def test_flips_and_splits_of_a_judge_are_counted(run: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    path = copy / "evidence.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]

    def opinion(verdict: str, said: str) -> dict[str, Any]:
        reasons = [["unsupported claim", "42"]] if verdict == "fail" else []
        return {"verdict": verdict, "report": {"verdict": said}, "reasons": reasons, "refused": []}

    graded = [trial for line in lines for trial in line["trials"]][:4]
    opinions: tuple[list[dict[str, Any]], ...] = (
        [opinion("fail", "passed")],  # a flip
        [opinion("pass", "passed"), opinion("fail", "failed")],  # a split
        [opinion("pass", "passed")],
        [],  # failed for figures that are in no source, before any judge was asked
    )
    for trial, said in zip(graded, opinions, strict=True):
        trial["grading"] = {"judge": {"items": [], "opinions": said}}
    graded[0]["verdict"] = graded[3]["verdict"] = "fail"
    graded[1]["verdict"] = graded[2]["verdict"] = "pass"
    lines[-1]["trials"][-1]["grading"] = {"report": "of tests"}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = tables(copy)
    assert found["judged answers"] == [["workshop", "4", "2", "1", "25.0%", "1", "0"]]
    assert found["answers by the rules that failed them"] == [
        ["too many figures and names without a source", "1"],
        ["unsupported claim", "2"],
    ]


# Wrong input


def test_what_cannot_be_reported_on_is_named(tmp_path: Path, run: Path) -> None:
    assert "no such folder" in stepdown("report", str(tmp_path / "nowhere")).err
    assert "neither a release nor a finished run" in stepdown("report", str(tmp_path)).err
    assert "no labelled rows" in stepdown("report", str(write_bank(tmp_path / "empty", []))).err
    bank = write_bank(tmp_path / "bank", [Life([0])])
    assert "no tokenizer 'x'" in stepdown("report", str(bank), "--tokenizer", "x").err
    assert "card.yaml" in stepdown("report", str(bank), "--rates", str(tmp_path / "card.yaml")).err
    assert stepdown("report", str(bank), "--out", str(tmp_path / "no" / "such.html")).code == 2


def test_evidence_of_other_rows_is_refused(run: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    path = copy / "evidence.jsonl"
    first, second, *others = path.read_text().splitlines(keepends=True)
    path.write_text("".join([second, first, *others]))
    assert "evidence.jsonl:1: id: must be the evidence of" in stepdown("report", str(copy)).err
    path.write_text(first)
    assert "is missing" in stepdown("report", str(copy)).err
    path.write_text('{"id": "workshop/job-0/1"}\n')
    assert "evidence.jsonl:1: no evidence of a step" in stepdown("report", str(copy)).err
