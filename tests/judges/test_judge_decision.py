"""The rule: which observations fail an answer, and which reports are not believed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepdown.builder.config.pool import Model
from stepdown.builder.config.protocol import JudgeConfig, Thresholds
from stepdown.builder.errors import Technical
from stepdown.builder.records import Response, Stop, ToolCall, Verdict
from stepdown.judges.case import EvidencePassage, JudgeCase, Turn
from stepdown.judges.checking import QuoteChecker
from stepdown.judges.decision import failure_reasons, report_problems
from stepdown.judges.guards import unsourced_items
from stepdown.judges.panel import judge_case
from stepdown.judges.report import MalformedReport, Report, report_of
from stepdown.judges.text import Tokens, sentences, words
from stepdown.judges.voting import panel_verdict

CASE = JudgeCase(
    kind="rag",
    turns=(Turn(speaker="user", text="When was the mill built and who owns it?"),),
    evidence=(
        EvidencePassage(
            title="The mill", text="The mill was built in 1790. It belongs to the Marsh family. It has two wheels."
        ),
    ),
    answer="It was built in 1790. The Marsh family owns it. Happy to help with more!",
)
CHECKER = QuoteChecker(CASE, unsourced_items(CASE))
FINE: dict[str, Any] = {
    "parts": [
        {"part": "when", "status": "given", "answer_quote": "It was built in 1790."},
        {"part": "who", "status": "given", "answer_quote": "The Marsh family owns it"},
    ],
    "stance": "answers",
    "resolution": {"status": "completely", "reason": "both"},
    "claims": [
        {
            "answer_quote": "It was built in 1790.",
            "kind": "date",
            "crucial": True,
            "status": "supported",
            "evidence_quotes": ["The mill was built in 1790"],
        },
        {
            "answer_quote": "The Marsh family owns it.",
            "kind": "other",
            "crucial": True,
            "status": "supported",
            "evidence_quotes": ["it belongs to the “Marsh” family"],
        },
        {"answer_quote": "Happy to help with more", "kind": "no_claim", "crucial": False, "status": "supported"},
    ],
    **{n: {"reason": "r", "rating": 5} for n in ("faithfulness", "appropriateness", "completeness")},
    "verdict": "failed",
}


def report(*path: Any, **change: Any) -> Report:
    """The fine report with the record at a path changed."""
    data = json.loads(json.dumps(FINE))
    part = data
    for step in path:
        part = part[step]
    part.update(change)
    return Report.model_validate_json(json.dumps(data), strict=True)


def rules(one: Report, **thresholds: int) -> list[str]:
    return [reason.rule for reason in failure_reasons(one, CHECKER, Thresholds(**thresholds))]


def test_an_answer_without_fault_passes_whatever_word_the_judge_has_for_it() -> None:
    assert report_problems(report(), CHECKER, Thresholds()) == []
    assert rules(report()) == rules(report(verdict="passed")) == []


@pytest.mark.parametrize(
    ("path", "change", "rule"),
    [
        (("resolution",), {"status": "partly"}, "unresolved"),
        (("resolution",), {"status": "uncertain"}, "unresolved"),
        ((), {"stance": "declines"}, "declined"),
        ((), {"stance": "uncertain"}, "declined"),
        (("parts", 1), {"status": "missing"}, "missing part"),
        (("parts", 1), {"status": "uncertain"}, "missing part"),
        (("claims", 0), {"status": "contradicted"}, "contradiction"),
        (("claims", 1), {"status": "uncertain", "crucial": False}, "uncertain claim"),
        (("claims", 1), {"status": "unsupported"}, "unsupported claim"),
        (("claims", 0), {"status": "unsupported", "crucial": False}, "unsupported claim"),
        (("claims", 1), {"status": "unsupported", "crucial": False}, "missing part"),
        (("faithfulness",), {"rating": 3, "grounds": ["unsupported"]}, "low faithfulness"),
        (("appropriateness",), {"rating": 3, "grounds": ["wording", "off_topic"]}, "low appropriateness"),
        (("completeness",), {"rating": 3}, "low completeness"),
        (("completeness",), {"rating": 1, "grounds": ["none"]}, "low completeness"),
        (("faithfulness",), {"rating": 5, "grounds": ["contradicted"]}, "contradiction"),
    ],
)
def test_each_observation_fails_by_its_rule(path: tuple[Any, ...], change: dict[str, Any], rule: str) -> None:
    assert rule in rules(report(*path, **change, **({} if path else {"verdict": "passed"})))


@pytest.mark.parametrize("quotes", [[], ["It has two wheels."]])
@pytest.mark.parametrize(
    "answer", ["It once had two wheels.", "Its two wheels date from 1790.", "It ran for 7 months."]
)
def test_a_figure_in_a_claim_without_support_fails_whatever_else_has_it(answer: str, quotes: list[str]) -> None:
    """That the evidence has the figure of something else, or that it is settled as an item, supports no claim."""
    case = CASE.model_copy(update={"answer": f"{CASE.answer} {answer}"})
    checker = QuoteChecker(case, unsourced_items(case))
    made_up = {"answer_quote": answer, "kind": "other", "crucial": False, "status": "unsupported"}
    items = [{"item": 1, "status": "derived", "evidence_quotes": ["built in 1790"]}] * len(checker.items)
    one = report(claims=[*FINE["claims"], {**made_up, "evidence_quotes": quotes}], items=items)
    assert "unsupported claim" in [reason.rule for reason in failure_reasons(one, checker, Thresholds())]


def test_one_word_is_a_quote_where_the_evidence_is_one_word() -> None:
    checker = QuoteChecker(
        CASE.model_copy(update={"evidence": (EvidencePassage(text="Lisbon."), EvidencePassage(text="No, Porto"))}), ()
    )
    assert [checker.passages.fault(quote) is None for quote in ("Lisbon", "Porto", "no Porto")] == [True, False, True]


@pytest.mark.parametrize(
    ("said", "believed"),
    [("As passages 1 and 2 say, it", True), ("As said (passage 2), it", True), ("In 2 words, it", False)],
)
def test_the_number_of_a_source_need_not_be_quoted(said: str, believed: bool) -> None:
    case = CASE.model_copy(update={"answer": CASE.answer.replace("It", said)})
    checker = QuoteChecker(case, ())
    claim = {**FINE["claims"][0], "answer_quote": "was built in 1790."}
    parts = [{**FINE["parts"][0], "answer_quote": "built in 1790"}, FINE["parts"][1]]
    one = report(claims=[claim, *FINE["claims"][1:]], parts=parts)
    assert (report_problems(one, checker, Thresholds()) == []) is believed


def test_what_nobody_supports_fails_though_nobody_relies_on_it() -> None:
    case = CASE.model_copy(update={"answer": "Monks of the abbey built it in 1790. The Marsh family owns it."})
    supported = {**FINE["claims"][0], "answer_quote": "built it in 1790"}
    made_up = {"answer_quote": "Monks of the abbey", "kind": "other", "crucial": False, "status": "unsupported"}
    parts = [{**FINE["parts"][0], "answer_quote": "built it in 1790"}, FINE["parts"][1]]
    one = report(claims=[supported, FINE["claims"][1], made_up], parts=parts)
    reasons = failure_reasons(one, QuoteChecker(case, ()), Thresholds())
    assert [reason.rule for reason in reasons] == ["unsupported claim"]


def test_a_harmless_name_does_not_free_a_claim_about_it() -> None:
    case = CASE.model_copy(update={"answer": f"{CASE.answer} It was painted by Ole Brandt."})
    checker = QuoteChecker(case, unsourced_items(case))
    made_up = {"answer_quote": "It was painted by Ole Brandt", "kind": "name", "crucial": False}
    one = report(
        claims=[*FINE["claims"], {**made_up, "status": "unsupported"}], items=[{"item": 1, "status": "harmless"}]
    )
    rules = [reason.rule for reason in failure_reasons(one, checker, Thresholds())]
    assert rules == ["unsupported claim", "unsupported name"]


def test_the_label_of_a_passage_supports_nothing() -> None:
    passages = (EvidencePassage(label="Passage 7", title="Mills of 1790", text="It has wheels."),)
    case = CASE.model_copy(update={"evidence": passages, "answer": "Passage 7, of 1790, tells of 7 wheels."})
    checker = QuoteChecker(case, unsourced_items(case))
    assert [item.text for item in checker.items] == ["7"]
    assert "7 wheels" in checker.items[0].context
    assert [checker.passages.fault(quote) is None for quote in ("Passage 7", "Mills of 1790")] == [False, True]


def test_how_it_is_said_lowers_no_verdict() -> None:
    assert rules(report("appropriateness", rating=1, grounds=["wording", "length", "format"])) == []


def test_thresholds_are_the_config_s() -> None:
    low = report("completeness", rating=3, grounds=["missing"])
    assert rules(low) == ["low completeness"]
    assert rules(low, completeness=3) == []


@pytest.mark.parametrize(
    ("path", "change", "problem"),
    [
        (("claims", 0), {"evidence_quotes": ["The mill dates from 1790"]}, "claims.0.evidence_quotes"),
        (("claims", 0), {"evidence_quotes": []}, "claims.0 is supported and quotes no evidence"),
        (("claims", 0), {"evidence_quotes": ["mill"]}, "claims.0.evidence_quotes"),
        (("claims", 0), {"evidence_quotes": ["It has two wheels."]}, "its quotes do not hold its figures"),
        (("claims", 1), {"status": "contradicted", "evidence_quotes": ["The mill is gone"]}, "claims.1.evidence"),
        (("claims", 1), {"status": "unsupported", "evidence_quotes": ["No word of it"]}, "claims.1.evidence"),
        (("claims", 0), {"answer_quote": "It was built in 1890."}, "claims.0.answer_quote"),
        (("parts", 0), {"answer_quote": "In 1890"}, "parts.0.answer_quote"),
        (("parts", 0), {"answer_quote": ""}, "parts.0.answer_quote"),
        (("claims", 1), {"answer_quote": "It was built"}, "parts.1: no claim quotes what gives it"),
        (("claims", 2), {"answer_quote": "It was built"}, "claims.2 is no_claim"),
        (("claims", 0), {"answer_quote": "It was built in"}, "no claim quotes a figure of sentence 1"),
        ((), {"items": [{"item": 1, "status": "harmless"}]}, "each of the 0 listed items"),
        (("completeness",), {"rating": 5, "grounds": ["missing"]}, "completeness is 5, and its grounds name"),
        (("claims", 0), {"answer_quote": "It was built in 1790 ... by monks"}, "claims.0.answer_quote"),
    ],
)
def test_a_report_that_can_not_be_true_is_not_believed(
    path: tuple[Any, ...], change: dict[str, Any], problem: str
) -> None:
    found = report_problems(report(*path, **change), CHECKER, Thresholds())
    assert any(problem in one for one in found), found


@pytest.mark.parametrize(
    ("quotes", "believed"),
    [
        (["It has two wheels.", "The mill was built in 1790."], True),
        (["It has two wheels."], False),
        (["It belongs to the Marsh family.", "It has two wheels."], False),
        (["It belongs to the Marsh family."], False),
        (["It has three wheels.", "The mill was built in 1790."], False),
    ],
)
def test_what_is_derived_must_come_out_when_code_reckons_it(quotes: list[str], believed: bool) -> None:
    one = report("claims", 0, status="derived", evidence_quotes=quotes)
    assert (report_problems(one, CHECKER, Thresholds()) == []) == believed


def test_a_quote_that_is_not_there_supports_nothing_even_if_nobody_asks_again() -> None:
    assert "unsupported claim" in rules(report("claims", 1, evidence_quotes=["it is owned by the Marsh family"]))


@pytest.mark.parametrize(
    ("status", "quotes", "believed", "failed"),
    [
        ("derived", ["built in 1790 and burned down 200 years later"], True, []),
        ("supported", ["built in 1790 and burned down 200 years later"], True, []),
        ("unsupported", [], True, ["unsupported number"]),
        ("uncertain", [], True, ["unsupported number"]),
        ("harmless", [], False, ["unsupported number"]),
        ("given", [], False, ["unsupported number"]),
        ("derived", ["The mill was built in 1790"], False, ["unsupported number"]),
        ("derived", ["The mill has stood for long"], False, ["unsupported number"]),
        ("derived", [], False, ["unsupported number"]),
    ],
)
def test_a_listed_figure_is_settled_by_evidence_or_fails(
    status: str, quotes: list[str], believed: bool, failed: list[str]
) -> None:
    told = EvidencePassage(text="The mill was built in 1790 and burned down 200 years later. The Marsh family owns it.")
    answer = "It was built in 1790 and burned down in 1990. The Marsh family owns it."
    case = CASE.model_copy(update={"answer": answer, "evidence": (told,)})
    checker = QuoteChecker(case, unsourced_items(case))
    assert [item.text for item in checker.items] == ["1990"]
    claims = [
        {
            **FINE["claims"][0],
            "answer_quote": "It was built in 1790 and burned down in 1990.",
            "evidence_quotes": ["The mill was built in 1790 and burned down 200 years later."],
        },
        {**FINE["claims"][1], "evidence_quotes": ["The Marsh family owns it."]},
    ]
    entry = {"item": 1, "status": status, "evidence_quotes": quotes}
    parts = [{**FINE["parts"][0], "answer_quote": "built in 1790"}, FINE["parts"][1]]
    one = report(claims=claims, parts=parts, items=[entry])
    assert (report_problems(one, checker, Thresholds()) == []) == believed
    assert [reason.rule for reason in failure_reasons(one, checker, Thresholds())] == failed


def called(arguments: str, name: str = "report", **rest: Any) -> Response:
    return Response(tool_calls=(ToolCall(name, arguments),), **rest)


DEEP = "[" * 5000 + "]" * 5000


@pytest.mark.parametrize(
    "response",
    [
        Response("passed"),
        Response('{"verdict": "passed"}'),
        Response("report(...)", malformed=True),
        called("{}"),
        called("not json"),
        called(DEEP),
        called(json.dumps(FINE), name="verdict"),
        Response(tool_calls=(ToolCall("report", json.dumps(FINE)), ToolCall("report", json.dumps(FINE, indent=1)))),
        Response(f"Here it is:\n{json.dumps(FINE)}"),
        Response(f"It says:\n```json\n{json.dumps(FINE)}\n```"),
        called(json.dumps({**FINE, "claims": []})),
        called(json.dumps({**FINE, "stance": "great"})),
        called(json.dumps({**FINE, "faithfulness": {"reason": "r", "rating": "five"}})),
        called(json.dumps({**FINE, "faithfulness": {"reason": "r", "rating": 6}})),
        called(json.dumps({**FINE, "claims": FINE["claims"] * 200})),
        Response(stop=Stop.REFUSED),
        Response(stop=Stop.OVERFLOW),
        Response("", stop=Stop.LENGTH),
    ],
)
def test_a_response_without_a_report_is_malformed_and_not_quoted(response: Response) -> None:
    with pytest.raises(MalformedReport) as caught:
        report_of(response)
    assert len(str(caught.value)) < 120
    assert "great" not in str(caught.value)


def test_what_a_judge_s_own_keys_are_called_is_not_repeated() -> None:
    with pytest.raises(MalformedReport) as caught:
        report_of(called(json.dumps({"say passed": 1})))
    assert "say passed" not in str(caught.value)


class Nobody:
    def fetch(self, question: Any) -> Any:
        raise AssertionError("no judge is needed")

    def note_failed(self, attempts: Sequence[str]) -> None:
        raise AssertionError


def panel(models: int, samples: int, rule: str) -> JudgeConfig:
    members = tuple(Model(name=f"j{number}", model=f"p/j{number}") for number in range(models))
    return JudgeConfig(models=members, samples=samples, rule=rule)


class Unreachable:
    """A judge that is down: how often it was asked."""

    asked = 0

    def fetch(self, question: Any) -> Any:
        self.asked += 1
        raise Technical("down")

    def note_failed(self, attempts: Sequence[str]) -> None:
        pass


def test_an_answer_of_nothing_but_strange_figures_is_for_the_judge_too() -> None:
    """An honest table of a hundred sums has as many: no count of them is a verdict."""
    case = CASE.model_copy(update={"answer": " and ".join(str(5000 + n) for n in range(100))})
    judge = Unreachable()
    finding = judge_case(case, panel(1, 1, "unanimous"), judge, "s")
    assert (finding.verdict, len(finding.items), judge.asked) == (Verdict.TECHNICAL, 100, 1)


@pytest.mark.parametrize("answer", ["!!!", "\u200b\x00", "👍"])
def test_an_answer_without_words_needs_no_judge(answer: str) -> None:
    finding = judge_case(CASE.model_copy(update={"answer": answer}), panel(1, 1, "unanimous"), Nobody(), "s")
    assert (finding.verdict, finding.opinions) == (Verdict.FAIL, ())


def test_one_fault_is_enough_and_the_rest_need_not_have_been_looked_at() -> None:
    lazy = report(claims=[{**FINE["claims"][0], "status": "contradicted"}], parts=FINE["parts"][:1])
    assert report_problems(lazy, CHECKER, Thresholds()) == []
    assert "contradiction" in rules(lazy)


VERDICTS = st.sampled_from([Verdict.PASS, Verdict.FAIL, Verdict.TECHNICAL])


@settings(max_examples=200)
@given(st.integers(1, 4), st.integers(1, 3), st.sampled_from(["unanimous", "majority"]), st.data())
def test_a_panel_s_verdict_is_given_only_when_nothing_can_change_it(
    models: int, samples: int, rule: str, data: st.DataObject
) -> None:
    seats = models * samples
    found = data.draw(st.lists(VERDICTS, min_size=0, max_size=seats))
    board = panel(models, samples, rule)
    needed = seats if rule == "unanimous" else seats // 2 + 1
    verdict = panel_verdict(found, board)
    # What is open: seats to come, and those that were technical and may be asked again.
    settled = [one for one in found if one is not Verdict.TECHNICAL]
    open_seats = seats - len(settled)
    outcomes = {settled.count(Verdict.PASS) + passing >= needed for passing in ({0, open_seats} if open_seats else {0})}
    assert verdict is (None if len(outcomes) == 2 else Verdict.PASS if outcomes == {True} else Verdict.FAIL)


def test_majority_and_unanimous_differ_where_they_should() -> None:
    for found in product([Verdict.PASS, Verdict.FAIL], repeat=3):
        unanimous, majority = (
            panel_verdict(found, panel(3, 1, "unanimous")),
            panel_verdict(found, panel(3, 1, "majority")),
        )
        assert (unanimous is Verdict.PASS) == (found.count(Verdict.PASS) == 3)
        assert (majority is Verdict.PASS) == (found.count(Verdict.PASS) >= 2)


@pytest.mark.parametrize(
    ("text", "quote", "there"),
    [
        ("The “Café” — on 5th Street", 'the "cafe" - on', False),
        ("The “Café” — on 5th Street", 'THE "CAFÉ" -  on 5th', True),
        ("It took 1,000 days.", "took 1000 days", True),
        ("It took 1,000 days.", "took 100", False),
        ("He did not sign it.", "He did sign it", False),
        ("First this. Then, later, that.", "First this ... that", True),
        ("First this. Then, later, that.", "that … First", False),
        ("in-\nformed", "in formed", True),
        ("zero\u200bwidth", "zerowidth", True),
        ("ﬁne", "fine", True),
        ("It is red [1, 2] and round [3].", "red and round [7]", True),
        ("something", "some", False),
        ("anything", "…", False),
    ],
)
def test_quotes_are_compared_by_their_words(text: str, quote: str, there: bool) -> None:
    assert Tokens.of(text).holds(quote) == there
    assert bool(Tokens.of(text).places(quote)) == (there or quote == "that … First")


@settings(max_examples=200)
@given(st.text(max_size=200))
def test_sentences_hold_all_words_of_a_text_but_list_markers(text: str) -> None:
    joined = [word for sentence in sentences(text) for word in words(sentence)]
    everything = iter(words(text))
    assert all(word in everything for word in joined)
    if not any(letter.isdigit() for letter in text):
        assert joined == words(text)
