"""Task files of one's own: what a line may hold, and what is wrong with one that may not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.errors import BadInput, Technical
from stepdown.builder.records import FIRST, Instance, Response, Ruling, Verdict
from stepdown.harnesses.qa import QA
from tests.conftest import ROOT
from tests.judged.judged_files import verdict, written

ROW = {"id": "a", "question": "What is 2 + 2?", "answers": ["4"]}
EXACT = {"by": "exact"}
JUDGE = {"by": "judge", "note": "One sentence."}


def only(folder: Path, row: dict[str, Any], **options: Any) -> tuple[QA, Instance]:
    harness = QA(**{"grading": EXACT, **options})
    return harness, next(harness.instances({"file": written(folder, [row])}))


def test_a_question_is_asked_after_an_instruction_and_its_context(tmp_path: Path) -> None:
    harness, instance = only(tmp_path, {**ROW, "context": ["Two is even.", "Four is even."]})
    with harness.open(instance) as episode:
        system, user = episode.prefix().messages
    assert system == {
        "role": "system",
        "content": "Answer the question. Give the answer alone, without an explanation.",
    }
    assert user["content"] == "Two is even.\n\nFour is even.\n\nWhat is 2 + 2?"


def test_the_instruction_may_be_another_or_none(tmp_path: Path) -> None:
    for given, first in (("Be brief.", "Be brief."), ("", "What is 2 + 2?")):
        harness, instance = only(tmp_path, ROW, instruction=given)
        with harness.open(instance) as episode:
            assert episode.prefix().messages[0]["content"] == first


def test_messages_are_the_prefix_as_they_are(tmp_path: Path) -> None:
    chat = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "Hi!"},
        {"role": "user", "content": "?"},
    ]
    row = {"id": "a", "messages": chat, "answers": "4", "context": "only for a judge"}
    harness, instance = only(tmp_path, row)
    with harness.open(instance) as episode:
        assert list(episode.prefix().messages) == chat


def test_a_row_may_be_graded_by_rules_of_its_own(tmp_path: Path) -> None:
    row = {**ROW, "answers": [4], "grading": {"by": "numeric", "absolute": 0.5}}
    harness, instance = only(tmp_path, row)
    assert verdict(harness, instance, "4.5")[0] is Verdict.PASS
    assert verdict(harness, instance, "4.6") == (Verdict.FAIL, "not within the tolerance of an accepted number")


def test_evidence_says_what_was_seen(tmp_path: Path) -> None:
    harness, instance = only(tmp_path, {**ROW, "answers": [4]}, grading={"by": "numeric"})
    with harness.open(instance) as episode:
        episode.advance(Response("4 or 5"))
        seen = {"by": "numeric", "numbers": ["4", "5"]}
        assert episode.verdict() == Ruling(Verdict.FAIL, "several numbers in the answer", seen)


def test_a_group_is_the_rows_own_or_the_row(tmp_path: Path) -> None:
    assert only(tmp_path, ROW)[1].group == "a"
    assert only(tmp_path, {**ROW, "group": "sums"})[1].group == "sums"


@pytest.mark.parametrize(
    ("row", "answered"),
    [
        (ROW, "4"),
        ({**ROW, "answers": [4], "grading": {"by": "numeric"}}, "4"),
        ({**ROW, "answers": ["2", "4"], "grading": {"by": "contains", "need": "all"}}, "2 4"),
        ({**ROW, "answers": ["four", "4"], "reference": "4"}, "4"),
        ({**ROW, "answers": ["[0-9]"], "grading": {"by": "regex"}}, None),
        ({**ROW, "answers": ["[0-9]"], "grading": {"by": "regex"}, "reference": "4"}, "4"),
    ],
)
def test_the_reference_answers_what_passes(tmp_path: Path, row: dict[str, Any], answered: str | None) -> None:
    harness, instance = only(tmp_path, row)
    with harness.open(instance) as episode:
        response = harness.answer("reference", instance, episode.prefix(), FIRST)
    assert response == (Response(answered) if answered else None)
    if response:
        assert verdict(harness, instance, response)[0] is Verdict.PASS


# What a judge is to say


def test_a_judge_is_called_for_by_the_option_alone() -> None:
    assert not QA().needs_judge
    assert QA(grading=JUDGE).needs_judge
    assert not QA(grading=EXACT).needs_judge


def test_a_judged_rows_evidence_is_its_context(tmp_path: Path) -> None:
    harness, instance = only(tmp_path, {**ROW, "context": "Two and two make four."}, grading=JUDGE)
    with harness.open(instance) as episode:
        episode.advance(Response("Four."))
        case = episode.case()
        with pytest.raises(Technical, match="needs a judge"):
            episode.verdict()
    assert case is not None
    assert (case.kind, case.answer, case.references, case.note) == ("question", "Four.", ("4",), "One sentence.")
    assert [piece.text for piece in case.evidence] == ["Two and two make four."]
    assert [turn.text for turn in case.turns] == ["What is 2 + 2?"]


def test_without_context_the_accepted_answers_are_the_evidence(tmp_path: Path) -> None:
    harness, instance = only(tmp_path, {**ROW, "answers": ["4", "four"]}, grading=JUDGE)
    with harness.open(instance) as episode:
        episode.advance(Response("Four."))
        case = episode.case()
    assert case is not None
    assert [piece.text for piece in case.evidence] == ["4", "four"]


def test_beside_a_judge_rows_may_have_rules_of_their_own(tmp_path: Path) -> None:
    harness, instance = only(tmp_path, {**ROW, "grading": EXACT}, grading=JUDGE)
    assert verdict(harness, instance, "4") == (Verdict.PASS, "")
    with harness.open(instance) as episode:
        assert episode.case() is None


# Wrong rows


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": ...}, "id: Field required"),
        ({"id": 7}, "id: Input should be a valid string"),
        ({"id": "x" * 201}, "id: 'xxx"),
        ({"question": ...}, "one of `question` and `messages` is needed"),
        ({"messages": [{"role": "user", "content": "?"}]}, "one of `question` and `messages` is needed"),
        ({"question": " "}, "question: must not be blank"),
        ({"question": ..., "messages": [{"role": "assistant", "content": "?"}]}, "messages: the last one must be the"),
        ({"question": ..., "messages": [{"role": "tool", "content": "?"}]}, "messages.0.role: Input should be"),
        ({"question": ..., "messages": []}, "messages: Tuple should have at least 1 item"),
        ({"answers": ...}, "answers: grading by exact needs at least one"),
        ({"answers": []}, "answers: grading by exact needs at least one"),
        ({"answers": [""]}, "answers: must be text, not ''"),
        ({"answers": [4]}, "answers: must be text, not 4"),
        ({"answers": ["!"], "grading": {"by": "exact", "ignore": ["punctuation"]}}, "answers: nothing is left"),
        ({"answers": [True]}, "answers.0"),
        ({"answers": ["("], "grading": {"by": "regex"}}, "answers: no regular expression: missing )"),
        ({"answers": ["four"], "grading": {"by": "numeric"}}, "answers: 'four' is not a number"),
        ({"grading": {"by": "rules"}}, "grading: Input tag 'rules'"),
        ({"grading": {}}, "grading: Unable to extract tag"),
        ({"grading": {"by": "exact", "ignore": ["tone"]}}, "grading.exact.ignore.0: Input should be 'case'"),
        ({"grading": {"by": "numeric", "absolute": -1}}, "grading.numeric.absolute: Input should be greater"),
        ({"grading": JUDGE}, "grading: only the option `grading` can call for the judge"),
        ({"reference": "5"}, "reference: what should be a right answer does not pass: not an accepted answer"),
        ({"group": "\u202e"}, "group: '\\u202e' is not 1 to 200 printable characters"),
        ({"group": ""}, "group: '' is not 1 to 200 printable characters"),
        ({"answer": "4"}, "answer: unknown key"),
    ],
)
def test_a_wrong_row_is_one_line_that_names_file_line_and_field(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    wrong = {key: value for key, value in {**ROW, "id": "b", **change}.items() if value is not ...}
    file = written(tmp_path, [ROW, wrong])
    with pytest.raises(BadInput) as caught:
        list(QA(grading=EXACT).instances({"file": file}))
    assert str(caught.value).startswith(f"{file}:2: {problem}")
    assert "\n" not in str(caught.value)


def test_nan_and_infinity_are_no_numbers(tmp_path: Path) -> None:
    for word in ("NaN", "Infinity", "-Infinity", "1e999"):
        file = written(
            tmp_path, [f'{{"id": "a", "question": "?", "answers": [{word}], "grading": {{"by": "numeric"}}}}']
        )
        with pytest.raises(BadInput, match=r"tasks\.jsonl:1: answers\.0"):
            list(QA().instances({"file": file}))


def test_without_any_grading_the_row_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"tasks\.jsonl:1: grading: there is none, here or in the workload's options"):
        list(QA().instances({"file": written(tmp_path, [ROW])}))


def test_a_judge_without_any_evidence_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"tasks\.jsonl:1: context: a judge needs evidence"):
        list(QA(grading=JUDGE).instances({"file": written(tmp_path, [{"id": "a", "question": "?"}])}))


def test_a_pattern_that_takes_for_ever_on_its_own_reference_is_refused(tmp_path: Path) -> None:
    row = {"id": "a", "question": "?", "answers": "^(a|aa)+$", "reference": "a" * 5_000 + "b"}
    with pytest.raises(BadInput, match=r"tasks\.jsonl:1: answers: a: a pattern takes more than 2 s"):
        list(QA(grading={"by": "regex"}).instances({"file": written(tmp_path, [row])}))


def test_an_id_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"tasks\.jsonl:2: id: line 1 has 'a' already"):
        list(QA(grading=EXACT).instances({"file": written(tmp_path, [ROW, ROW])}))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"grading": {"by": "exakt"}}, "options.grading: Input tag 'exakt'"),
        ({"grading": "exact"}, "options.grading: "),
        ({"instruction": 3}, "options.instruction: Input should be a valid string"),
        ({"judge": "x"}, "options.judge: unknown key"),
    ],
)
def test_a_wrong_option_names_its_field(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInput) as caught:
        QA(**options)
    assert str(caught.value).startswith(problem)


def test_without_the_regex_package_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "regex", None)
    assert verdict(*only(tmp_path, ROW), "4")[0] is Verdict.PASS
    with pytest.raises(BadInput, match=r"pip install 'stepdown\[judge\]'"):
        only(tmp_path, ROW, grading={"by": "regex"})


def test_the_version_tells_gradings_and_instructions_apart() -> None:
    made = [QA(), QA(grading=EXACT), QA(grading={"by": "exact", "ignore": []}), QA(instruction="Be brief.")]
    assert len({harness.version for harness in made}) == 4
    assert QA(grading=EXACT).version == QA(grading={"by": "exact", "ignore": ["space"]}).version


def test_the_projects_own_questions_are_sound() -> None:
    harness = QA(grading={"by": "contains", "ignore": ["case", "space"]})
    found = list(harness.instances({"file": str(ROOT / "data" / "questions.jsonl")}))
    assert len(found) == 16
    for instance in found:
        reference = instance.task["reference"]
        assert verdict(harness, instance, reference)[0] is Verdict.PASS
        assert verdict(harness, instance, "I do not know.")[0] is Verdict.FAIL
