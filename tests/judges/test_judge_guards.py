"""Guards: what is in no source is found however it is written, and what is there in other words is not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepdown.judges.case import EvidencePassage, JudgeCase, Turn
from stepdown.judges.guards import unsourced_items


def found(evidence: str, answer: str, query: str = "What?") -> list[tuple[str, str]]:
    case = JudgeCase(
        kind="rag", turns=(Turn(speaker="user", text=query),), evidence=(EvidencePassage(text=evidence),), answer=answer
    )
    return [(item.kind, item.text) for item in unsourced_items(case) if item.kind != "sentence"]


@pytest.mark.parametrize(
    ("evidence", "answer"),
    [
        ("50% of members agreed", "Half of the members agreed."),
        ("half of them", "It was 50 percent, or 50 per cent."),
        ("on 2024-05-03", "It took place on May 3rd."),
        ("on 3 May 1999", "On May 3, 1999, that is 03/05/1999 or 1999/05/03."),
        ("May 3rd and, elsewhere, 2024", "On the third of May, 2024."),
        ("1,000 seats", "It has 1000 seats, a thousand."),
        ("1.000 Euro", "It costs 1000 euros."),
        ("There are 12 eggs", "Twelve eggs, a dozen."),
        ("Two-thirds voted", "2 out of 3 voted."),
        ("3 out of 4", "75% or three quarters"),
        ("one in five", "20%, 1 in 5, a fifth"),
        ("$5 million", "5,000,000 dollars, $5m, five million USD"),
        ("at 15:30", "at 3:30 pm or 3.30 p.m."),
        ("open at noon", "It opens at 12 pm."),
        ("the World Health Organization", "The WHO says so."),
        ("NASA", "the National Aeronautics and Space Administration"),
        ("the Food and Drug Administration", "The FDA says so."),
        ("in Canada", "Most Canadian people do."),
        ("in nineteen eighty-four", "That was in 1984."),
        ("2,987,654 people", "About 3 million people live there."),
        ("both options", "Of the two options, one is better."),
        ("3½ miles", "It is 3.5 miles, three and a half."),
        ("7-2", "It passed 7 to 2, by seven votes to two."),
        ("lasts 90 minutes", "It lasts 90 min."),
        ("the Kyiv–Lviv line, opened 1,861", "The “Kyiv-Lviv” line of 1861."),
        ("Ａｒｎｅ is ４２", "Arne is 42."),
        ("nothing", "1. One of them is fine [2].\n2. The first thing: see [1]."),
        ("won five prizes in 2020", "It won 5 in 2020."),
        ("Ada Lovelace's notes", "However, ADA LOVELACE wrote notes."),
    ],
)
def test_other_words_for_the_same_are_no_item(evidence: str, answer: str) -> None:
    assert found(evidence, answer) == []


@pytest.mark.parametrize("between", ["\u034f", "\u200d", "\ufe0f", "\u0332", "\ufe0f\u20e3", "\u3164", "\U000e0141"])
def test_what_is_seen_as_one_number_is_one(between: str) -> None:
    assert found("4 cats and 2 dogs", f"There are 4{between}2 cats.") == [("number", "42")]


@pytest.mark.parametrize(
    ("evidence", "answer", "item"),
    [
        ("50% agreed", "60% agreed", ("number", "60%")),
        ("50% agreed", "Sixty percent agreed", ("number", "Sixty percent")),
        ("on May 3", "on May 4th", ("date", "May 4th")),
        ("2024-05-03", "on 2023-05-03", ("date", "2023-05-03")),
        ("1000 seats", "1,500 seats", ("number", "1,500")),
        ("1000 seats", "fifteen hundred seats", ("number", "fifteen hundred")),
        ("costs 5 euros", "costs $5", ("unit", "$5")),
        ("5 km", "5 miles", ("unit", "5 miles")),
        ("5 million", "5 billion", ("number", "5 billion")),
        ("Half", "a third of it", ("number", "third")),
        ("3 out of 4", "3 out of 5", ("number", "3 out of 5")),
        ("in 2020", "in 2021", ("number", "2021")),
        ("at 3 pm", "at 4 pm", ("date", "4 pm")),
        ("in June", "in July", ("date", "July")),
        ("John Smith spoke", "Michael Smith spoke", ("name", "Michael Smith")),
        ("the WHO", "said UNESCO", ("name", "UNESCO")),
        ("2,987,654 people", "About 4 million people", ("number", "4 million")),
    ],
)
def test_what_no_source_has_is_an_item(evidence: str, answer: str, item: tuple[str, str]) -> None:
    assert item in found(evidence, answer)


def test_only_the_evidence_is_a_source() -> None:
    """What a user said may be false, what an assistant said is not true by that, and references were not seen."""
    case = JudgeCase(
        kind="rag",
        turns=(
            Turn(speaker="user", text="Why was it built in 1890?"),
            Turn(speaker="assistant", text="It was built in 1891."),
            Turn(speaker="user", text="We are 17 guests."),
        ),
        evidence=(EvidencePassage(text="nothing"),),
        references=("It is 18.",),
        answer="It is of 1890, or of 1891. You are 17, or 18.",
    )
    items = [(item.text, item.said_by_user) for item in unsourced_items(case)]
    assert items == [("1890", True), ("1891", False), ("17", True), ("18", False)]


def test_an_item_is_listed_once_with_its_sentence() -> None:
    case = JudgeCase(
        kind="rag",
        turns=(Turn(speaker="user", text="?"),),
        evidence=(EvidencePassage(text="nothing"),),
        answer="It is 17. Yes, 17 it is.",
    )
    (item,) = unsourced_items(case)
    assert (item.kind, item.text, item.context) == ("number", "17", "It is 17.")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9))
def test_a_whole_number_is_the_same_in_every_notation(number: int) -> None:
    forms = [str(number), f"{number:,}", f"{number:,}".replace(",", "\u202f")]
    for one in forms:
        for other in forms:
            assert found(f"there were {one} of them", f"There were {other}.") == []
    assert found(f"there were {number} of them", f"There were {number + 1:,}.") != []


@settings(max_examples=40, deadline=None)
@given(st.dates())
def test_a_date_is_the_same_in_every_notation(day: object) -> None:
    import datetime

    assert isinstance(day, datetime.date)
    iso, words = day.isoformat(), f"{day:%B} {day.day}, {day.year:04d}"
    forms = [iso, words, f"{day.day} {day:%B} {day.year:04d}", f"{day.day}/{day.month}/{day.year:04d}"]
    for one in forms:
        for other in forms:
            assert found(f"it was on {one} there", f"It was on {other}.") == []


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=300), st.text(min_size=1, max_size=300))
def test_any_text_is_read_without_a_crash_and_its_own_copy_is_a_source(evidence: str, answer: str) -> None:
    found(evidence or "x", answer)
    assert [item for item in found(answer, answer) if item[0] != "name"] == []


RUNS = "1,|1,111|A |one |one hundred and |1 in |1/|May |9|1 000 |$|[1]|A of the |½|3 and a half |'|A'|!) |12 May |#|\n"


@pytest.mark.parametrize("piece", RUNS.split("|"))
def test_long_hostile_text_is_read_in_one_go(piece: str) -> None:
    """A pattern that looks back over all of the text at every place would take hours at this length."""
    text = piece * (20_000 // len(piece))
    assert [kind for kind, _ in found("x", text)].count("unit") == 0


@pytest.mark.parametrize(
    ("evidence", "answer", "item"),
    [
        ("a low of -5 °C", "a low of 5 °C", "5"),
        ("a low of 5 °C", "a low of −5 °C", "-5"),
        ("less than 5 days", "more than 5 days", "5"),
        ("n < 30", "n > 30", "30"),
        ("at least 18 years", "at most 18 years", "18"),
        ("5 mg of iron", "5 µg of iron", "5 μg"),
        ("3 kW, later 8 kWh", "3 kWh", "3 kWh"),
        ("100 MB", "100 Mb", "100 Mb"),
        ("twice a week", "three times a week", "three times a week"),
        ("every week", "every month", "every month"),
        ("daily", "hourly", "hourly"),
        ("rose by a third", "It doubled.", "doubled"),
        ("35 litres", "3,5 litres", "3,5"),
        ("1.234,5 kg", "12345 kg", "12345"),
        ("nine in the morning", "nine in the evening", "nine in the evening"),
        ("half past three", "half past four", "half past four"),
        ("open until 5 pm", "open until quarter to six", "quarter to six"),
        ("40% of women smoke, 60% of men", "40% of children smoke", "40%"),
        ("40 members agreed, and 20% of guests", "40% agreed", "40%"),
        ("am 3. Mai 1871", "on 4 May 1871", "4 May 1871"),
        ("a keeper", "a keeper named brandt", "brandt"),
    ],
)
def test_what_differs_in_sign_unit_frequency_or_base_is_an_item(evidence: str, answer: str, item: str) -> None:
    assert item in [text for _, text in found(evidence, answer)]


@pytest.mark.parametrize(
    ("evidence", "answer"),
    [
        ("a low of -5 °C", "a low of minus 5 °C, 5 degrees below zero"),
        ("a change of -3%", "It fell by 3%."),
        ("fewer than 5 days", "less than 5 days, no more than 5"),
        ("the limit is 5 kg", "at most 5 kg"),
        ("5 µg", "5 mcg, 5 micrograms"),
        ("once a week", "weekly, every week"),
        ("every second month", "every other month"),
        ("0.20 euros a day", "0.20 euros for every day"),
        ("two times the size", "twice the size"),
        ("3.5 litres", "3,5 litres"),
        ("1,234.5 kg", "1.234,5 kg"),
        ("at 15:45", "a quarter to four, 3:45 in the afternoon"),
        ("at nine o'clock", "at 9:00"),
        ("40% of all women", "40% of the women"),
        ("| share (%) |\n| 40 |", "40%"),
        ("on 3 May 1871", "am 3. Mai 1871, le 3 mai 1871, el 3 de mayo de 1871"),
        (
            "a tower of 42 metres by the sea",
            "Der Turm am Meer ist 42 Meter hoch und steht auf einem Felsen bei der Stadt.",
        ),
    ],
)
def test_the_same_sign_unit_frequency_and_base_in_other_words_is_none(evidence: str, answer: str) -> None:
    assert found(evidence, answer) == []


def test_a_name_is_found_in_an_answer_of_another_language() -> None:
    german = "Der Turm wurde von Ole Brandt gebaut und ist 42 Meter hoch, und das Licht ist nicht alt."
    assert found("The tower is 42 metres tall and the light is new.", german) == [("name", "Ole Brandt")]


def test_many_dates_are_compared_at_once() -> None:
    """Ten thousand dates on each side: to compare all pairs would take minutes."""
    days = [
        f"{year}-{month:02}-{day:02}" for year in range(1970, 2000) for month in range(1, 13) for day in range(1, 29)
    ]
    assert found("\n".join(days), " ".join(days)) == []


def test_a_sentence_that_is_all_new_is_raised_and_one_that_is_not_is_not() -> None:
    text = "The mill was built of red bricks by the Marsh family, who sold it to the town when the river ran dry."
    case = JudgeCase(
        kind="rag",
        turns=(Turn(speaker="user", text="?"),),
        evidence=(EvidencePassage(text=text),),
        answer="The Marsh family built the mill of bricks. Visitors should bring warm clothes and sturdy boots.",
    )
    assert [(item.kind, item.text[:8]) for item in unsourced_items(case)] == [("sentence", "Visitors")]
