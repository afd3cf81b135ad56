"""Own-written pseudo-passes and honest paraphrases before judges of every kind, through a real client and provider."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from stepdown.builder.records import Verdict
from stepdown.judges import configured as desk
from tests.judges import playing
from tests.judges.playing import Entry, reporting, with_judges
from tests.provider import Provider

ENTRIES = list(playing.entries())


def verdicts(provider: Callable[..., Provider], judge: str, **panel: int) -> dict[str, Verdict]:
    server = provider({judge: reporting(getattr(playing, judge))})
    with desk.open_judges(with_judges(server.url, judge, **panel)) as open_desk:
        return {entry.name: open_desk.judge(entry.case).verdict for entry in ENTRIES}


def of(found: dict[str, Verdict], honest: bool) -> Counter[Verdict]:
    return Counter(found[entry.name] for entry in ENTRIES if entry.is_honest == honest)


def test_the_library_is_what_it_says() -> None:
    assert sum(not entry.is_honest for entry in ENTRIES) >= 40
    assert sum(entry.is_honest for entry in ENTRIES) >= 20
    assert {"surface resemblance", "reference-following", "unsupported figure", "contradiction", "injected"} < {
        entry.risk for entry in ENTRIES
    }


@pytest.mark.parametrize("judge", ["sloppy", "harsh"])
def test_what_a_judge_sees_decides_whatever_it_says(provider: Callable[..., Provider], judge: str) -> None:
    """The sloppy judge rates everything 5 and says passed, the harsh one rates everything 1 for its wording."""
    found = verdicts(provider, judge)
    assert [name for name, verdict in found.items() if verdict is Verdict.TECHNICAL] == []
    assert [e.name for e in ENTRIES if not e.is_honest and found[e.name] is not Verdict.FAIL] == []
    assert [e.name for e in ENTRIES if e.is_honest and found[e.name] is not Verdict.PASS] == []


def test_a_judge_whose_quotes_are_not_there_is_not_believed_for_or_against(provider: Callable[..., Provider]) -> None:
    found = verdicts(provider, "lying", attempts=1)
    assert of(found, honest=False) == Counter({Verdict.TECHNICAL: sum(not e.is_honest for e in ENTRIES)})
    assert of(found, honest=True) == Counter({Verdict.TECHNICAL: sum(e.is_honest for e in ENTRIES)})


def test_a_judge_that_obeys_the_answer_lets_nothing_through(provider: Callable[..., Provider]) -> None:
    found = verdicts(provider, "injected", attempts=1)
    assert of(found, honest=False)[Verdict.PASS] == 0
    assert of(found, honest=True) == Counter({Verdict.PASS: sum(e.is_honest for e in ENTRIES)})


HARDENING: dict[str, Callable[[Entry], bool]] = {
    "surface resemblance": lambda entry: entry.risk == "surface resemblance",
    "the reference taken as the answer": lambda entry: entry.risk == "reference-following",
    "unsupported figure": lambda entry: entry.risk == "unsupported figure",
    "contradiction": lambda entry: entry.risk == "contradiction",
    "no primary criterion": lambda entry: entry.risk in {"missing part", "declined"},
}


@pytest.mark.parametrize("row", HARDENING)
def test_each_row_of_the_hardening_table_fails_though_the_judge_says_passed(
    provider: Callable[..., Provider], row: str
) -> None:
    cases = [entry for entry in ENTRIES if HARDENING[row](entry)]
    assert len(cases) >= 2
    server = provider({"sloppy": reporting(playing.sloppy)})
    with desk.open_judges(with_judges(server.url, "sloppy")) as open_desk:
        for entry in cases:
            finding = open_desk.judge(entry.case)
            report = finding.opinions[0].report
            assert report is not None
            assert (finding.verdict, report.verdict) == (Verdict.FAIL, "passed"), entry.name
