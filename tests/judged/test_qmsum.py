"""QMSum: its format, which transcripts are too long, and what a model and a judge are shown."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.common import tokens
from stepdown.builder.errors import BadInput
from stepdown.builder.records import FIRST, Instance, Response
from stepdown.harnesses.base import Harness
from stepdown.harnesses.qmsum import QMSum
from stepdown.judges.case import JudgeCase
from tests.judged.judged_files import OWN, changed, named, own, upstream, written

FILE = str(OWN / "qmsum.jsonl")
GARDEN, ROOF = (instance.group for instance in QMSum().instances({"file": FILE, "queries": ["general"]}))


def listed(harness: Harness, file: str = FILE, **source: Any) -> dict[str, str | None]:
    return {instance.id: instance.dropped for instance in harness.instances({"file": file, **source})}


def shown(harness: Harness, name: str) -> tuple[str, JudgeCase]:
    """The query with its transcript as a model sees it, and the case of an answer."""
    with harness.open(named(harness, {"file": FILE}, name)) as episode:
        messages = episode.prefix().messages
        episode.advance(Response("An answer."))
        case = episode.case()
    assert case is not None
    return messages[-1]["content"], case


def test_an_instance_is_a_query_of_a_meeting() -> None:
    assert list(listed(QMSum())) == [
        f"{GARDEN}.general.1",
        f"{GARDEN}.specific.1",
        f"{GARDEN}.specific.2",
        f"{ROOF}.general.1",
        f"{ROOF}.specific.1",
        f"{ROOF}.specific.2",
        f"{ROOF}.specific.3",
    ]


def test_ids_do_not_depend_on_what_else_a_file_holds(tmp_path: Path) -> None:
    both, turned = own("qmsum.jsonl"), written(tmp_path, reversed(own("qmsum.jsonl")))
    assert set(listed(QMSum(), turned)) == set(listed(QMSum()))
    alone = tmp_path / "meeting.json"
    alone.write_text(json.dumps(both[1], indent=2))
    assert list(listed(QMSum(), str(alone))) == [name for name in listed(QMSum()) if name.startswith(ROOF)]
    alone.write_text(json.dumps(both, indent=2))
    assert listed(QMSum(), str(alone)) == listed(QMSum())


def test_a_meeting_may_have_a_name_of_its_own(tmp_path: Path) -> None:
    file = written(tmp_path, [{**own("qmsum.jsonl")[0], "meeting_id": "garden"}])
    assert next(iter(listed(QMSum(), file))) == "garden.general.1"


def test_one_kind_of_query_can_be_chosen() -> None:
    assert all(".general." in name for name in listed(QMSum(), queries=["general"]))
    assert len(listed(QMSum(), queries=["specific"], take=2)) == 2


def test_a_model_sees_the_words_without_the_transcribers_marks() -> None:
    text, _ = shown(QMSum(), f"{GARDEN}.specific.1")
    assert text.startswith("Transcript:\nChair: Good morning .")
    assert text.endswith("\n\nQuery: What was decided on the fence and why?")
    assert "{" not in text
    assert text.count("Omar: ") == 4, "a turn without words is left out"


def test_the_evidence_is_the_spans_and_the_transcript_that_was_shown() -> None:
    text, case = shown(QMSum(), f"{GARDEN}.specific.2")
    assert [piece.label for piece in case.evidence] == ["turns 9 to 11", "the whole transcript"]
    assert case.evidence[0].text.startswith("Omar: I propose the 14th of June")
    assert all(piece.text in text for piece in case.evidence)
    assert [turn.text for turn in case.turns] == ["What did Nora think of hiring the band?"]


def test_of_a_general_query_the_evidence_is_the_transcript() -> None:
    _, case = shown(QMSum(), f"{GARDEN}.general.1")
    assert [piece.label for piece in case.evidence] == ["the whole transcript"]


def test_a_transcript_over_the_context_drops_its_queries_and_says_why() -> None:
    reasons = listed(QMSum(context=600))
    assert {name for name, reason in reasons.items() if reason is None} == {
        name for name in reasons if name.startswith(GARDEN)
    }
    assert Counter(reasons.values())["the transcript does not fit into the context of 600 tokens"] == 4


def test_long_transcripts_may_be_cut_to_what_is_relevant() -> None:
    harness = QMSum(context=600, long="spans")
    reasons = listed(harness)
    assert reasons[f"{ROOF}.general.1"] == "the transcript does not fit into the context of 600 tokens"
    assert reasons[f"{ROOF}.specific.1"] is None
    assert reasons[f"{ROOF}.specific.2"] == "what is relevant does not fit into the context of 600 tokens"
    assert reasons[f"{ROOF}.specific.3"] == "the transcript does not fit into the context of 600 tokens"
    text, case = shown(harness, f"{ROOF}.specific.1")
    assert "item 7" not in text
    assert [piece.label for piece in case.evidence] == ["turns 2 to 3"]
    whole, _ = shown(harness, f"{GARDEN}.specific.1")
    assert whole == shown(QMSum(), f"{GARDEN}.specific.1")[0], "what fits is not cut"


def test_what_is_kept_fits_by_the_estimate() -> None:
    for context in (300, 600, 5000):
        for instance in QMSum(context=context, long="spans").instances({"file": FILE}):
            if instance.dropped is None:
                assert tokens.of_request(instance.task["messages"]) <= context


def test_another_context_is_another_version() -> None:
    versions = {QMSum(context=context, long=long).version for context in (600, 5000) for long in ("drop", "spans")}
    assert len(versions) == 4
    assert QMSum().version == QMSum(long="drop").version


@pytest.mark.parametrize("span", [["5", "99"], ["7", "5"], ["-1", "3"]])
def test_a_span_that_is_not_in_the_transcript_drops_its_query(tmp_path: Path, span: list[str]) -> None:
    meeting = changed(own("qmsum.jsonl")[0], "specific_query_list.0.relevant_text_span", [span])
    reasons = listed(QMSum(), written(tmp_path, [meeting]))
    assert list(reasons.values()) == [None, "its relevant spans are not in the transcript", None]


def test_the_reference_gives_the_accepted_answer() -> None:
    harness = QMSum()
    instance = named(harness, {"file": FILE}, f"{ROOF}.specific.3")
    with harness.open(instance) as episode:
        assert harness.answer("reference", instance, episode.prefix(), FIRST) == Response("The clerk.")
    nameless = Instance("qmsum", "x", {"reference": None})
    assert harness.answer("reference", nameless, episode.prefix(), FIRST) is None


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("meeting_transcripts", ..., "meeting_transcripts: Field required"),
        ("meeting_transcripts", [], "meeting_transcripts: Tuple should have at least 1 item"),
        ("meeting_transcripts", [{"speaker": "A", "content": "{gap}"}], "meeting_transcripts: no turn has any words"),
        ("meeting_transcripts.0.content", 3, "meeting_transcripts.0.content: Input should be a valid string"),
        ("specific_query_list.0.query", "", "specific_query_list.0.query: "),
        ("specific_query_list.0.answer", ..., "specific_query_list.0.answer: Field required"),
        ("specific_query_list.0.relevant_text_span", [["a", "3"]], "specific_query_list.0.relevant_text_span.0.0: "),
        ("specific_query_list.0.relevant_text_span", [["3"]], "specific_query_list.0.relevant_text_span.0.1: "),
    ],
)
def test_a_wrong_meeting_is_one_line_that_names_file_line_and_field(
    tmp_path: Path, path: str, value: Any, problem: str
) -> None:
    good = own("qmsum.jsonl")
    file = written(tmp_path, [good[1], changed(good[0], path, value)])
    with pytest.raises(BadInput) as caught:
        list(QMSum().instances({"file": file}))
    assert str(caught.value).startswith(f"{file}:2: {problem}")
    assert "\n" not in str(caught.value)


def test_a_meeting_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    meeting = own("qmsum.jsonl")[0]
    with pytest.raises(BadInput, match=r":2: meeting_id: line 1 has '[0-9a-f]{12}' already"):
        list(QMSum().instances({"file": written(tmp_path, [meeting, meeting])}))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"context": 0}, "options.context: Input should be greater than or equal to 1"),
        ({"long": "cut"}, "options.long: Input should be 'drop' or 'spans'"),
        ({"contxt": 1}, "options.contxt: unknown key: did you mean `context`?"),
    ],
)
def test_a_wrong_option_names_its_field(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInput) as caught:
        QMSum(**options)
    assert str(caught.value) == problem


def test_an_unknown_kind_of_query_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^source\.queries\.0: "):
        list(QMSum().instances({"file": FILE, "queries": ["vague"]}))


def test_upstreams_meetings_are_read_as_they_are() -> None:
    file = upstream("qmsum_val_6.jsonl")
    assert Counter(listed(QMSum(), file).values()) == {None: 44}
    assert Counter(listed(QMSum(context=6000), file).values()) == {
        None: 8,
        "the transcript does not fit into the context of 6000 tokens": 36,
    }
    assert Counter(listed(QMSum(context=1500, long="spans"), file).values()) == {
        None: 29,
        "what is relevant does not fit into the context of 1500 tokens": 9,
        "the transcript does not fit into the context of 1500 tokens": 6,
    }
