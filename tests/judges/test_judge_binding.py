"""Quotes that bind: which real words of the evidence support a claim, and which arithmetic is repeated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stepdown.builder.config.protocol import Thresholds
from stepdown.judges.arithmetic import is_reckoned
from stepdown.judges.case import EvidencePassage, JudgeCase, Turn
from stepdown.judges.checking import QuoteChecker
from stepdown.judges.decision import report_problems
from stepdown.judges.guards import unsourced_items
from stepdown.judges.passages import Passages, QuoteFault
from stepdown.judges.report import RATINGS, Claim, Report
from stepdown.judges.smalltalk import says_nothing

TEXT = (
    "The old ferry to Lund never ran on Sundays after the war. It carried 40 cars and was painted grey. No, it was not "
    "sold in 1961. The harbour master, Ida Holm, kept its bell, which weighs 12 kg, in the customs house. Whoever "
    "wants to see the bell asks at the desk."
)
LONG = " ".join(f"Clause {number} binds the harbour and the ferry." for number in range(20))


def case(answer: str, question: str = "What became of the ferry?", text: str = TEXT) -> JudgeCase:
    passages = (EvidencePassage(title="The Lund ferry", text=text), EvidencePassage(text=LONG))
    return JudgeCase(kind="rag", turns=(Turn(speaker="user", text=question),), evidence=passages, answer=answer)


@pytest.mark.parametrize(
    ("quote", "fault"),
    [
        ("It carried 40 cars and was painted grey.", None),
        ("It carried ... painted grey", None),
        ("kept its bell ... in the customs house", None),
        ("The old ferry to Lund ... ran on Sundays", QuoteFault.GAP),
        ("It carried 40 cars ... was not sold", QuoteFault.GAP),
        ("after the war ... 40 cars", QuoteFault.GAP),
        ("ran on Sundays after the war", QuoteFault.CUT),
        ("sold in 1961", QuoteFault.CUT),
        ("it was not sold in 1961", None),
        ("to see the bell asks", None),
        ("at the", QuoteFault.EMPTY),
        ("ferry", QuoteFault.ABSENT),
        ("It carried forty cars", QuoteFault.ABSENT),
        (" ".join(f"Clause {number} binds the harbour and the ferry." for number in range(9)), QuoteFault.LONG),
    ],
)
def test_a_quote_is_whole_short_and_says_something(quote: str, fault: QuoteFault | None) -> None:
    assert Passages(case("x")).fault(quote) == fault


def problem(answer: str, *quotes: str, status: str = "supported", question: str = "What became of the ferry?") -> str:
    """What is wrong with a claim that is the whole answer; "" where nothing is."""
    one = case(answer, question)
    checker = QuoteChecker(one, unsourced_items(one))
    fields: dict[str, Any] = {"answer_quote": answer, "kind": "other", "crucial": True, "status": status}
    claim = Claim.model_validate_json(json.dumps({**fields, "evidence_quotes": quotes}))
    return checker.claim_problem(claim) or ""


def test_a_quote_is_about_what_the_claim_says() -> None:
    assert (
        problem("Ida Holm took the bell into the customs house.", "kept its bell, which weighs 12 kg, in the customs")
        == ""
    )
    for irrelevant in ("It carried 40 cars and was painted grey.", "Clause 3 binds the harbour and the ferry."):
        assert "too few words in common" in problem("The bell hangs in the customs house.", irrelevant)


def test_each_sentence_of_a_claim_is_bound() -> None:
    both = "The bell is in the customs house. The captain was a woman from Malmo."
    assert "too few words" in problem(both, "kept its bell, which weighs 12 kg, in the customs house")


def test_a_figure_stands_where_the_claim_is_spoken_of() -> None:
    """Twelve is in the evidence: of the bell, in kilograms, and not of cars."""
    assert problem("The ferry carried 40 grey painted cars.", "It carried 40 cars and was painted grey.") == ""
    assert "do not hold its figures" in problem(
        "The ferry carried 12 cars.", "It carried 40 cars and was painted grey."
    )


def test_quotes_without_end_bind_nothing() -> None:
    quotes = [
        f"Clause {n} binds the harbour and the ferry. Clause {n + 1} binds the harbour and the ferry."
        for n in range(18)
    ]
    assert "more than 200 words" in problem("The ferry is bound to the harbour.", *quotes)


def test_what_the_user_said_of_themselves_is_given_and_a_premise_is_not() -> None:
    question = "We are 17 guests with two dogs. Why was the ferry sold in 1970?"
    assert problem("You are 17 guests.", status="given", question=question) == ""
    assert problem("The ferry was sold in 1970.", status="given", question=question)
    assert problem("You are 18 guests.", status="given", question=question)


@pytest.mark.parametrize(
    ("sentence", "silent"),
    [
        ("I hope this helps!", True),
        ("Here is what the passages say about the ferry:", True),
        ("Opening hours:", True),
        ("Let me know if you have further questions.", True),
        ("Gern helfe ich weiter!", True),
        ("It is free.", False),
        ("Yes.", False),
        ("It is not.", False),
        ("The ferry is good.", False),
        ("Thanks to Ida Holm.", False),
        ("I can tell you 3 things.", False),
        ("Entry is free of charge.", False),
    ],
)
def test_only_what_says_nothing_of_the_subject_is_no_claim(sentence: str, silent: bool) -> None:
    assert says_nothing(sentence, "What became of the ferry?") is silent


@pytest.mark.parametrize(
    ("figure", "quotes", "sentence", "follows"),
    [
        ("52", ["40 cars", "12 vans"], "It took 52 vehicles.", True),
        ("28", ["40 cars", "12 vans"], "28 more cars than vans", True),
        ("53", ["40 cars", "12 vans"], "It took 53 vehicles.", False),
        ("30%", ["12 of the 40 cars"], "30% of them", True),
        ("31%", ["12 of the 40 cars"], "31% of them", False),
        ("33.3%", ["40 of 120"], "33.3% of them", True),
        ("doubled", ["from 20 to 40"], "It doubled.", True),
        ("doubled", ["from 20 to 45"], "It doubled.", False),
        ("26.5", ["12 kg"], "It weighs 26.5 pounds.", True),
        ("50", ["10 degrees Celsius"], "It was 50 degrees Fahrenheit.", True),
        ("60", ["10 degrees Celsius"], "It was 60 degrees Fahrenheit.", False),
        ("three times an hour", ["every 20 minutes"], "It runs three times an hour.", True),
        ("four times an hour", ["every 20 minutes"], "It runs four times an hour.", False),
        ("3", ["red, green and blue"], "It comes in 3 colours.", True),
        ("two", ["red wheels", "green wheels"], "Two wheels are painted.", True),
        ("two", ["red wheels", "an open door"], "Two wheels are painted.", False),
        ("45", ["from 9:15 to 10:00"], "It takes 45 minutes.", True),
        ("1990", ["built in 1790", "200 years later"], "It fell in 1990.", True),
        ("24 May", ["on 3 May", "three weeks later"], "It ended on 24 May.", True),
        ("25 May", ["on 3 May", "three weeks later"], "It ended on 25 May.", False),
        ("11:20", ["leaves at 10:30", "takes 50 minutes"], "You arrive at 11:20.", True),
    ],
)
def test_code_repeats_the_arithmetic(figure: str, quotes: list[str], sentence: str, follows: bool) -> None:
    assert is_reckoned(figure, quotes, sentence) is follows


def test_a_sentence_of_three_words_is_looked_at() -> None:
    one = case("It was painted grey. Holm sank it.")
    checker = QuoteChecker(one, unsourced_items(one))
    claim = {"answer_quote": "It was painted grey.", "kind": "other", "crucial": True, "status": "supported"}
    fine = {"reason": "r", "rating": 5}
    report = {
        "parts": [{"part": "all", "status": "given", "answer_quote": "painted grey"}],
        "stance": "answers",
        "resolution": {"status": "completely", "reason": "r"},
        "claims": [{**claim, "evidence_quotes": ["It carried 40 cars and was painted grey."]}],
        **dict.fromkeys(RATINGS, fine),
    }
    found = report_problems(Report.model_validate_json(json.dumps(report)), checker, Thresholds())
    assert found == ["no claim quotes sentence 2 of the answer, or enough of it"]


def test_parts_and_claims_by_the_hundred_are_held_against_each_other_at_once() -> None:
    """Each of 390 parts quotes a word that the answer has everywhere: to look through all pairs would take minutes."""
    sentence = "The bell of the ferry is in the customs house."
    one = case(" ".join([sentence] * 390))
    checker = QuoteChecker(one, unsourced_items(one))
    part = {"part": "bell", "status": "given", "answer_quote": "the"}
    claim = {"answer_quote": sentence, "kind": "other", "crucial": True, "status": "supported"}
    quotes = ["kept its bell, which weighs 12 kg, in the customs house", "The old ferry to Lund"]
    report = {
        "parts": [part] * 390,
        "stance": "answers",
        "resolution": {"status": "completely", "reason": "r"},
        "claims": [{**claim, "evidence_quotes": quotes}] * 390,
        **{name: {"reason": "r", "rating": 5} for name in RATINGS},
    }
    assert report_problems(Report.model_validate_json(json.dumps(report)), checker, Thresholds()) == []
