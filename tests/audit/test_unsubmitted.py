"""Answers of other tools: only what was submitted counts, and an annotation that is not one verdict is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.audit.reviewing import above_lowest, said
from tests.conftest import Result, stepdown

ANN, BO = "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"


def exported(run: Path, file: Path, kind: str) -> list[dict[str, Any]]:
    assert stepdown("audit", "export", str(run), "-o", str(file), "--format", kind, "--reviewer", "eve").code == 0
    records: list[dict[str, Any]] = json.loads(file.read_text())
    return records


def imported(run: Path, file: Path, kind: str, records: list[dict[str, Any]]) -> Result:
    file.write_text(json.dumps(records))
    return stepdown("audit", "import", str(run), str(file), "--format", kind)


def answer(user: str = ANN, value: str = "tight", **status: str) -> dict[str, Any]:
    return {"value": value, "user_id": user, **status}


UNSUBMITTED: dict[str, tuple[str | None, list[dict[str, Any]], str]] = {
    "no status, in a record that is pending": ("pending", [answer()], "record pending"),
    "no status anywhere": (None, [answer()], "record without status"),
    "no status, of two people": ("completed", [answer(), answer(BO)], "no status in a record of 2 people"),
    "a draft in a completed record": ("completed", [answer(status="draft")], "draft"),
    "discarded": ("pending", [answer(status="discarded")], "discarded"),
}


@pytest.mark.parametrize("name", UNSUBMITTED)
def test_what_was_not_submitted_in_argilla_is_counted_and_named_and_not_taken(
    name: str, sampled: Path, tmp_path: Path
) -> None:
    status, answers, why = UNSUBMITTED[name]
    records = exported(sampled, tmp_path / "ar.json", "argilla")
    records[1] |= {"responses": {"verdict": answers}} | ({"status": status} if status else {})
    result = imported(sampled, tmp_path / "ar.json", "argilla", records)
    assert (result.code, said(sampled)) == (0, {}), result.err
    assert (
        f"not submitted, and not taken: {len(answers)} answer{'s' * (len(answers) > 1)}: item 2 of {ANN} ({why})"
        in result.err
    )


@pytest.mark.parametrize(
    ("status", "given"), [("completed", {}), ("pending", {"status": "submitted"}), (None, {"status": "submitted"})]
)
def test_what_was_submitted_in_argilla_is_taken(
    status: str | None, given: dict[str, str], sampled: Path, tmp_path: Path
) -> None:
    records = exported(sampled, tmp_path / "ar.json", "argilla")
    responses = {"verdict": [answer(**given)], "notes": [answer(value="seen", **given)]}
    records[0] |= {"responses": responses} | ({"status": status} if status else {})
    result = imported(sampled, tmp_path / "ar.json", "argilla", records)
    assert (result.code, result.err) == (0, "reviewers that the audit did not know: eve\n")
    assert said(sampled) == {("eve", above_lowest(sampled)[0].id): ("tight", "seen")}


def test_a_draft_beside_a_submitted_answer_takes_nothing_from_it(sampled: Path, tmp_path: Path) -> None:
    records = exported(sampled, tmp_path / "ar.json", "argilla")
    records[0]["responses"] = {"verdict": [answer(status="submitted"), answer(BO, "uncertain", status="draft")]}
    result = imported(sampled, tmp_path / "ar.json", "argilla", records)
    assert (result.code, f"1 answer: item 1 of {BO} (draft)" in result.err) == (0, True)
    assert set(said(sampled).values()) == {("tight", "")}


def test_two_answers_of_one_user_of_argilla_are_not_chosen_from(sampled: Path, tmp_path: Path) -> None:
    records = exported(sampled, tmp_path / "ar.json", "argilla")
    records[0]["responses"] = {"verdict": [answer(status="submitted"), answer(value="uncertain", status="submitted")]}
    result = imported(sampled, tmp_path / "ar.json", "argilla", records)
    assert (result.code, said(sampled)) == (2, {})
    assert "item 1: two answers of one user to 'verdict'" in result.err


def verdict_of(choices: Any) -> dict[str, Any]:
    return {"from_name": "verdict", "to_name": "prefix", "type": "choices", "value": {"choices": choices}}


NOT_ONE_VERDICT: dict[str, tuple[list[Any], str]] = {
    "two choices": ([verdict_of(["tight", "uncertain"])], "verdict: 2 choices in one annotation"),
    "the same choice twice": ([verdict_of(["tight", "tight"])], "verdict: 2 choices in one annotation"),
    "a plain string": ([verdict_of("tight")], "verdict: `choices` is not a list"),
    "a mapping": ([verdict_of({"tight": True})], "verdict: `choices` is not a list"),
    "two verdicts": ([verdict_of(["tight"]), verdict_of(["uncertain"])], "verdict: two verdicts in one annotation"),
    "a number as a verdict": ([verdict_of([1])], "verdict: '1' is no verdict"),
    "a result that is text": (["tight"], "an annotation is not as Label Studio writes one"),
    "no choices": ([{"from_name": "verdict", "value": "tight"}], "an annotation is not as Label Studio writes one"),
}


@pytest.mark.parametrize("name", NOT_ONE_VERDICT)
def test_an_annotation_that_is_not_one_verdict_is_named_and_refused(name: str, sampled: Path, tmp_path: Path) -> None:
    result, words = NOT_ONE_VERDICT[name]
    tasks = exported(sampled, tmp_path / "ls.json", "label-studio")
    tasks[0]["annotations"] = [{"result": [verdict_of(["tight"])]}]
    tasks[2]["annotations"] = [{"completed_by": 1, "result": result}]
    told = imported(sampled, tmp_path / "ls.json", "label-studio", tasks)
    assert (told.code, said(sampled)) == (2, {})
    problem, end = told.err.splitlines()
    assert f"item 3: {words}" in problem
    assert "1 problems: nothing of" in end


def test_drafts_and_cancelled_annotations_of_label_studio_are_counted_and_named(sampled: Path, tmp_path: Path) -> None:
    tasks = exported(sampled, tmp_path / "ls.json", "label-studio")
    tasks[0]["annotations"] = [{"completed_by": 7, "was_cancelled": True, "result": [verdict_of(["tight"])]}]
    tasks[1] |= {"annotations": [], "drafts": [{"user": "bo@b.c", "result": [verdict_of(["tight"])]}]}
    result = imported(sampled, tmp_path / "ls.json", "label-studio", tasks)
    assert (result.code, said(sampled)) == (0, {})
    assert "not taken: 2 answers: item 1 of 7 (cancelled), item 2 of bo@b.c (draft)" in result.err
