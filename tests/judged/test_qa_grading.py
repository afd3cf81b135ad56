"""How answers to questions of one's own are graded: by rule, whatever a model may write."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stepdown.builder.errors import BadInput, Technical
from stepdown.builder.records import Ruling, Verdict
from stepdown.harnesses.qa.grading import Answer, Numeric, grader, grading_of
from stepdown.harnesses.qa.numbers import number, numbers
from stepdown.harnesses.qa.texts import normalised, occurs

EVERY = ["case", "space", "punctuation"]
HOSTILE = st.text(alphabet=st.characters(exclude_categories=["Cs"])) | st.text(alphabet="0123456789.,'-+eE%_x^*/: km")


def graded(rules: dict[str, Any], answers: Sequence[Answer], text: str) -> Ruling:
    grading = grading_of(rules)
    assert grading.by != "judge"
    return grader(grading, answers, "row-1")(text)


def passes(rules: dict[str, Any], answers: Sequence[Answer], text: str) -> bool:
    return graded(rules, answers, text).verdict is Verdict.PASS


# Exact


@pytest.mark.parametrize(
    ("ignore", "accepted", "answer", "right"),
    [
        (["space"], "New York", "  New\n York ", True),
        (["space"], "New York", "New York.", False),
        (["space"], "New York", "new york", False),
        ([], "New York", "New York ", False),
        (["case"], "Straße", "STRASSE", True),
        (EVERY, "New York", '"**new york**".', True),
        (EVERY, "well-known", "Well known!", True),
        (EVERY, "3.14", "314", False),
        (EVERY, "3.14", "(3.14).", True),
        (EVERY, "-5", "5", False),
        (EVERY, ".5", "5", False),
        (EVERY, "2*3", "23", False),
        (EVERY, "f(2)(3)", "f23", False),
        (EVERY, "5%", "5", False),
        (EVERY, "C#", "C", False),
        (EVERY, "C++", "C", False),
        (["space"], "caf\u00e9", "cafe\u0301", True),
        (EVERY, "yes", "yes, and no", False),
        (EVERY, "O'Brien", "O\u2019Brien.", True),
        (["space"], "Tokyo", "\ufeffTo\u200bkyo", True),
    ],
)
def test_exact(ignore: list[str], accepted: str, answer: str, right: bool) -> None:
    assert passes({"by": "exact", "ignore": ignore}, ["something else", accepted], answer) is right


@given(HOSTILE)
def test_a_text_is_exactly_itself_whatever_is_ignored(text: str) -> None:
    if normalised(text, ["case", "space", "punctuation"]):
        assert passes({"by": "exact", "ignore": EVERY}, [text], text)
        assert passes({"by": "exact", "ignore": []}, [text], text)


@given(HOSTILE)
def test_quotes_and_spaces_around_an_answer_can_be_ignored(text: str) -> None:
    if normalised(text, ["case", "space", "punctuation"]):
        assert passes({"by": "exact", "ignore": EVERY}, [text], f'  "{text}" .\n')


# Contains


@pytest.mark.parametrize(
    ("accepted", "answer", "right"),
    [
        ("Paris", "It is Paris.", True),
        ("Paris", "The Parisians", False),
        ("no", "I do not know", False),
        ("no", "No: no.", True),
        ("12", "It is 12.", True),
        ("12", "It is 112", False),
        ("12", "It is 12.5", False),
        ("12", "It is 3.12", False),
        ("12", "It is 12,000", False),
        ("12", "It is -12", False),
        ("12", "9-12", True),
        ("12", "from 9 to 12, I think", True),
        ("C#", "In C# it is so", True),
        ("C", "In C# it is so", False),
        ("C", "In C++, it is so", False),
        ("C", "In C+ it is so", True),
        ("12", "It is \u201312", False),
        ("12", "12 000 people", False),
        ("000", "12 000 people", False),
        ("12", "12% of them", False),
        ("12", "12 % of them", False),
        ("12", "at 12:30", False),
        ("30", "at 12:30", False),
        ("12", "1/12 of it", False),
        ("12", "12 million", False),
        ("12%", "12% of them", True),
        ("12", "rows 12, 000 and 13", True),
        ("12", "12 of 100", True),
        ("12", "12: that is all", True),
        ("東京", "首都は東京です", True),
        ("서울", "서울은 수도입니다", True),
        ("ab ab", "ab ab ab", True),
    ],
)
def test_contains(accepted: str, answer: str, right: bool) -> None:
    assert passes({"by": "contains"}, [accepted], answer) is right


def test_contains_may_need_all_or_any() -> None:
    for need, right in (("any", True), ("all", False)):
        assert passes({"by": "contains", "need": need}, ["salt", "pepper"], "Only salt.") is right
    assert passes({"by": "contains", "need": "all"}, ["salt", "pepper"], "pepper and salt")
    assert not passes({"by": "contains", "need": "any"}, ["salt", "pepper"], "")


@given(st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"])), HOSTILE, HOSTILE)
def test_words_that_stand_between_spaces_are_found(word: str, before: str, after: str) -> None:
    assume(not word[0].isdigit() and not word[-1].isdigit())  # a number may go on beyond a space
    assert occurs(word, f"{before} {word} {after}")


@given(HOSTILE, HOSTILE)
def test_nothing_is_found_that_is_not_there(wanted: str, text: str) -> None:
    if wanted and wanted not in text:
        assert not occurs(wanted, text)


# Numeric


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,200.5", "1200.5"),
        ("1'000'000", "1000000"),
        ("12\u00a0345", "12345"),
        ("-5", "-5"),
        ("\u22125", "-5"),
        ("+5", "5"),
        (".5", "0.5"),
        ("1.5e3", "1500"),
        ("1.5 × 10^-3", "0.0015"),
        ("1.5x10**3", "1500"),
        ("45%", "0.45"),
        ("45 per cent", "0.45"),
        ("2.5 million", "2500000"),
        ("3 hundred thousand", "300000"),
        ("**42**", "42"),
        ("_42_", "42"),
        ("\\boxed{42}", "42"),
        ("$3.50.", "3.5"),
        ("5km", "5"),
        ("the 5th", "5"),
        ("-$5", "-5"),
        ("\u2212€5.50", "-5.5"),
        ("\u20135 °C", "-5"),
        ("minus 5", "-5"),
        ("Negative 5.5", "-5.5"),
        ("1.5·10^3", "1500"),
        ("**1200**", "1200"),
    ],
)
def test_one_number_is_read(text: str, value: str) -> None:
    assert [found for _, found in numbers(text)] == [Fraction(value)]


@pytest.mark.parametrize(
    "text",
    [
        *("1,5", "1.2.3", "3,000,00", "3/4", "10:30", "5k", "$5M", "0x1F", "5e3x", "٣", "1e999", "9" * 400),
        *("2\u00bd", "5\u4e07", "2 1/2", "10^6", "2**10", "10^{-3}", "12 000", "1 000.5"),
        *("5 dozen", "2 bn", "3 lakh", "5 hundredths", "5‰"),
    ],
)
def test_what_cannot_be_read_equals_nothing(text: str) -> None:
    assert [found for _, found in numbers(text)] == [None]
    for value in (1, 2, 3, 4, 5, 10, 30, 1.5, 3.75, 0.75):
        assert not passes({"by": "numeric", "number": "last"}, [value], text)


@pytest.mark.parametrize("text", ["B12", "COVID-19", "nan", "inf", "Infinity", "-", "", "x2"])
def test_no_number_is_found_in_words(text: str) -> None:
    assert numbers(text) == []
    assert graded({"by": "numeric"}, [1], text).reason == "no number in the answer"


def test_a_dash_between_numbers_is_no_sign() -> None:
    assert [value for _, value in numbers("10-20, 2020-01, 3\u20134")] == [10, 20, 2020, 1, 3, 4]


def test_a_space_parts_numbers_that_no_thousands_could_be() -> None:
    assert [value for _, value in numbers("In 2020 300 of 12 50 left")] == [2020, 300, 12, 50]


@pytest.mark.parametrize(
    ("which", "answer", "right"),
    [
        ("only", "It is 12.", True),
        ("only", "12, so 12.0", True),
        ("only", "6 and 6 make 12", False),
        ("last", "6 and 6 make 12", True),
        ("last", "12 is 6 and 6", False),
        ("first", "12 is 6 and 6", True),
        ("only", "12 or 1,5", False),
    ],
)
def test_which_number_counts(which: str, answer: str, right: bool) -> None:
    assert passes({"by": "numeric", "number": which}, [12], answer) is right


@pytest.mark.parametrize(
    ("tolerance", "accepted", "answer", "right"),
    [
        ({}, 0.3, "0.3", True),
        ({}, 0.1, "0.1000000000000000055", False),
        ({"absolute": 0.1}, 0.3, "0.4", True),
        ({"absolute": 0.1}, 0.3, "0.2", True),
        ({"absolute": 0.1}, 0.3, "0.4001", False),
        ({"relative": 0.01}, 200, "202", True),
        ({"relative": 0.01}, 200, "202.1", False),
        ({"relative": 0.01}, -200, "-202", True),
        ({"relative": 0.5}, 0, "0.1", False),
        ({"absolute": 5, "relative": 0.01}, 100, "105", True),
        ({}, "45%", "0.45", True),
        ({}, "45%", "45", False),
        ({}, 45, "45%", False),
        ({}, "1,200", "1200", True),
    ],
)
def test_tolerances(tolerance: dict[str, float], accepted: Answer, answer: str, right: bool) -> None:
    assert passes({"by": "numeric", **tolerance}, [accepted], answer) is right


@given(st.integers(-(10**18), 10**18), st.integers(0, 6))
def test_a_decimal_number_is_read_exactly(digits: int, places: int) -> None:
    sign, text = ("-" if digits < 0 else ""), str(abs(digits)).rjust(places + 1, "0")
    whole, part = text[: len(text) - places], text[len(text) - places :]
    point = f".{part}" if places else ""
    expected = Fraction(digits, 10**places)
    for written in (f"{sign}{whole}{point}", f"{sign}{int(whole):,}{point}"):
        assert number(written) == expected
        assert [value for _, value in numbers(f"It is {written} (exactly).")] == [expected]


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(0, 1e3), st.floats(0, 1))
def test_an_accepted_number_is_within_any_tolerance_of_itself(value: float, absolute: float, relative: float) -> None:
    if abs(Fraction(repr(value))) < 10**290 and (value == 0 or abs(value) > 1e-290):
        assert passes({"by": "numeric", "absolute": absolute, "relative": relative}, [value], repr(value))


@pytest.mark.parametrize("value", ["abc", "1,5", "", "3 km", "nan", "inf", "1/2", "12 or 13"])
def test_what_is_no_number_is_no_accepted_one(value: str) -> None:
    with pytest.raises(BadInput, match=r"^answers: "):
        grader(Numeric(by="numeric"), [value], "row-1")


# Regular expressions


def test_a_pattern_is_searched_for() -> None:
    assert passes({"by": "regex"}, [r"\b[A-D]\b", r"^none$"], "The answer is B.")
    assert not passes({"by": "regex"}, [r"^[A-D]$"], "The answer is B.")
    assert passes({"by": "regex", "ignore": ["case"]}, [r"^yes\b"], "YES, it is")
    assert graded({"by": "regex"}, ["a", "b"], "b").grading == {"by": "regex", "pattern": 1}


def test_a_pattern_that_takes_for_ever_says_nothing_of_the_answer() -> None:
    with pytest.raises(Technical, match=r"^row-1: a pattern takes more than 2 s on an answer"):
        passes({"by": "regex"}, [r"^(a|aa)+$"], "a" * 5_000 + "b")


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", "(?P<x>a)(?P<x", "\\", "*", "x" * 2_001, " ", 7])
def test_what_is_no_pattern_is_refused(pattern: Any) -> None:
    with pytest.raises(BadInput, match=r"^answers: ") as caught:
        passes({"by": "regex"}, [pattern], "x")
    assert "\n" not in str(caught.value)


# Whatever a model writes


@given(HOSTILE)
def test_any_answer_passes_or_fails(text: str) -> None:
    for rules, answers in (
        ({"by": "exact", "ignore": EVERY}, ["yes"]),
        ({"by": "contains", "ignore": EVERY}, ["yes", "12"]),
        ({"by": "regex"}, ["yes|[0-9]+"]),
        ({"by": "numeric", "number": "only"}, [12]),
        ({"by": "numeric", "number": "last", "relative": 0.1}, [1e300]),
    ):
        found = graded(rules, answers, text)
        assert found.verdict in (Verdict.PASS, Verdict.FAIL)
        assert (found.reason == "") == (found.verdict is Verdict.PASS)


@pytest.mark.parametrize("text", ["9" * 1_000_000, "1," * 300_000, "-" * 500_000, "1e" * 300_000, "yes" * 300_000])
def test_a_huge_answer_is_graded_at_once(text: str) -> None:
    for rules, answers in (({"by": "numeric"}, [12]), ({"by": "contains", "ignore": EVERY}, ["yes"])):
        assert not passes(rules, answers, text)
        assert len(str(graded(rules, answers, text))) < 1_000
