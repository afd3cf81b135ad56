"""mtRAG: its formats, what is dropped and why, and what a model and a judge are shown."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.errors import BadInput
from stepdown.builder.records import FIRST, Instance, Response
from stepdown.harnesses.base import Harness
from stepdown.harnesses.mtrag import MTRAG
from tests.judged.judged_files import OWN, changed, named, own, upstream, written

FILE = str(OWN / "mtrag.jsonl")
NOT_RELEVANT = "no passage that people found relevant"


@pytest.fixture(scope="module")
def mtrag() -> MTRAG:
    return MTRAG()


def listed(harness: Harness, file: str, **source: Any) -> dict[str, str | None]:
    return {instance.id: instance.dropped for instance in harness.instances({"file": file, **source})}


def test_every_task_is_kept_or_dropped_for_one_reason(mtrag: MTRAG) -> None:
    assert listed(mtrag, FILE) == {
        "c1<::>1": None,
        "c1<::>2": None,
        "c1<::>3": "not answerable from its passages: partial",
        "c1<::>4": "not answerable from its passages: unanswerable",
        "c2<::>1": "not answerable from its passages: conversational",
        "c2<::>2": NOT_RELEVANT,
        "c2<::>3": "no passages",
        "c3<::>1": None,
    }


def test_votes_count_only_where_the_file_carries_them(mtrag: MTRAG, tmp_path: Path) -> None:
    unvoted = [
        {**task, "contexts": [{k: v for k, v in passage.items() if k != "feedback"} for passage in task["contexts"]]}
        for task in own("mtrag.jsonl")
    ]
    assert listed(mtrag, written(tmp_path, unvoted))["c2<::>2"] is None
    one = [*unvoted[:-1], own("mtrag.jsonl")[-1]]
    reasons = Counter(listed(mtrag, written(tmp_path, one)).values())
    assert (reasons[None], reasons[NOT_RELEVANT]) == (1, 3)


def test_a_passage_is_relevant_where_more_say_so_than_not(mtrag: MTRAG, tmp_path: Path) -> None:
    task = own("mtrag.jsonl")[0]
    for votes, kept in [("yes no", False), ("yes no yes", True), ("no", False), ("YES", True), ("maybe", False)]:
        relevant = {str(n): {"value": value} for n, value in enumerate(votes.split())}
        only = changed(task, "contexts", [{**task["contexts"][0], "feedback": {"relevant": relevant}}])
        assert (listed(mtrag, written(tmp_path, [only]))["c1<::>1"] is None) == kept


def test_a_conversation_is_a_group(mtrag: MTRAG) -> None:
    groups = {instance.id: instance.group for instance in mtrag.instances({"file": FILE})}
    assert groups["c1<::>1"] == groups["c1<::>4"] == "c1"
    assert groups["c2<::>1"] == "c2"


def test_without_a_conversations_id_the_task_tells_it(mtrag: MTRAG, tmp_path: Path) -> None:
    task = changed(own("mtrag.jsonl")[0], "conversation_id", ...)
    assert next(mtrag.instances({"file": written(tmp_path, [task])})).group == "c1"


def test_a_model_sees_the_passages_and_then_the_conversation(mtrag: MTRAG) -> None:
    with mtrag.open(named(mtrag, {"file": FILE}, "c1<::>2")) as episode:
        system, *turns = episode.prefix().messages
    assert [message["role"] for message in turns] == ["user", "assistant", "user"]
    assert turns[-1]["content"] == "What does a return trip cost for two adults?"
    assert system["content"].count("Passage ") == 2
    assert "Passage 2: Holm ferry fares\nA return ticket" in system["content"]


def test_a_judge_sees_the_same_and_the_target_as_a_reference(mtrag: MTRAG) -> None:
    with mtrag.open(named(mtrag, {"file": FILE}, "c1<::>2")) as episode:
        assert episode.case() is None, "nothing has been answered"
        episode.advance(Response("28 euros."))
        case = episode.case()
        shown = episode.prefix().messages[0]["content"]
    assert case is not None
    assert (case.kind, case.answer) == ("rag", "28 euros.")
    assert [turn.speaker for turn in case.turns] == ["user", "assistant", "user"]
    assert all(f"{piece.title}\n{piece.text}" in shown for piece in case.evidence)
    assert len(case.references) == 1
    assert case.references[0].startswith("Two return tickets")


def test_no_target_reaches_a_model(mtrag: MTRAG) -> None:
    for instance in mtrag.instances({"file": FILE}):
        if instance.dropped is None:
            with mtrag.open(instance) as episode:
                assert instance.task["reference"] not in str(episode.prefix().messages)


def test_the_reference_gives_the_target(mtrag: MTRAG) -> None:
    def answered(instance: Instance) -> Response | None:
        with mtrag.open(instance) as episode:
            return mtrag.answer("reference", instance, episode.prefix(), FIRST)

    assert answered(named(mtrag, {"file": FILE}, "c3<::>1")) == Response("On Sundays.")
    without = Instance("mtrag", "x", {"reference": None, "messages": [{"role": "user", "content": "?"}], "case": {}})
    assert answered(without) is None


def test_a_count_takes_the_first_tasks_dropped_ones_included(mtrag: MTRAG) -> None:
    assert list(listed(mtrag, FILE, take=3)) == ["c1<::>1", "c1<::>2", "c1<::>3"]
    assert list(listed(mtrag, FILE, take=["c3<::>1", "c1<::>1"])) == ["c1<::>1", "c3<::>1"]


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("task_id", ..., "task_id: Field required"),
        ("task_id", "", "task_id: '' is not 1 to 200 printable characters"),
        ("task_id", "a\u001bb", "task_id: 'a\\x1bb' is not 1 to 200 printable characters"),
        ("conversation_id", "a\nb", "conversation_id: 'a\\nb' is not 1 to 200 printable characters"),
        ("input", [], "input: Tuple should have at least 1 item"),
        ("input.0.speaker", "model", "input.0.speaker: Input should be 'user' or 'agent'"),
        ("input.0.speaker", "agent", "input.0.speaker: the last turn must be the user's"),
        ("input.0.text", " ", "input.0.text: a turn without words"),
        ("contexts.0.text", None, "contexts.0.text: Input should be a valid string"),
        ("contexts.0.feedback", {"relevant": {"ann": "yes"}}, "contexts.0.feedback.relevant.ann: "),
        ("Answerability", ..., "answerability: Field required"),
        ("Answerability", [], "Answerability: Tuple should have at least 1 item"),
    ],
)
def test_a_wrong_task_is_one_line_that_names_file_line_and_field(
    mtrag: MTRAG, tmp_path: Path, path: str, value: Any, problem: str
) -> None:
    good = own("mtrag.jsonl")
    file = written(tmp_path, [good[1], changed(good[0], path, value)])
    with pytest.raises(BadInput) as caught:
        list(mtrag.instances({"file": file}))
    assert str(caught.value).startswith(f"{file}:2: {problem}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], ": there is no task in it"),
        (["{"], ":1: not JSON: "),
        (["[" * 100_000], ":1: not JSON: "),
        (["3"], ":1: "),
    ],
)
def test_a_file_that_is_none_says_so(mtrag: MTRAG, tmp_path: Path, lines: list[str], problem: str) -> None:
    file = written(tmp_path, lines)
    with pytest.raises(BadInput) as caught:
        list(mtrag.instances({"file": file}))
    assert str(caught.value).startswith(f"{file}{problem}")


def test_a_task_that_is_there_twice_names_both_lines(mtrag: MTRAG, tmp_path: Path) -> None:
    task = own("mtrag.jsonl")[0]
    with pytest.raises(BadInput, match=r":2: task_id: line 1 has 'c1<::>1' already"):
        list(mtrag.instances({"file": written(tmp_path, [task, task])}))


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({}, "source.file: Field required"),
        ({"file": FILE, "take": 9}, "source.take: there are only 8"),
        ({"file": FILE, "take": ["c9"]}, "source.take: no such id: 'c9'"),
        ({"file": FILE, "limit": 2}, "source.limit: unknown key"),
    ],
)
def test_a_wrong_source_names_its_field(mtrag: MTRAG, source: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInput) as caught:
        list(mtrag.instances(source))
    assert str(caught.value) == problem


def test_it_takes_no_option() -> None:
    with pytest.raises(BadInput, match=r"^options\.judge: unknown key$"):
        MTRAG(judge="x")


def test_upstreams_reference_tasks_are_read_as_they_are(mtrag: MTRAG) -> None:
    reasons = Counter(listed(mtrag, upstream("mtrag_un_40.jsonl")).values())
    assert reasons == {
        None: 29,
        "not answerable from its passages: partial": 7,
        "not answerable from its passages: unanswerable": 4,
    }
