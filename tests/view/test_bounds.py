"""However deep a run is, a page reads and sends a bounded part of it, and what it leaves out has an address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.view import NEEDLE, pages, write_run
from stepdown.builder.run.ledger import Ledger
from stepdown.builder.run.ledger.finding import LookBounds, SearchPosition, SearchTerms
from stepdown.builder.run.reading import open_begun_ledger
from stepdown.builder.view.listing import PAGE
from stepdown.builder.view.reading import MOST_READ, PageReader
from stepdown.builder.view.timeline import STEPS, TRIALS
from tests.view.viewing import View, viewed

INSTANCES, LENGTH, ANSWER = 90, 24, 2_000_000
LAST = f"planted/task-{INSTANCES}"
LARGEST_PAGE = 500_000
"""Bytes."""


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    run = tmp_path_factory.mktemp("deep") / "run"
    write_run(run, INSTANCES, LENGTH, ANSWER)
    with viewed(run) as served:
        yield served


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    run = tmp_path_factory.mktemp("small") / "run"
    write_run(run, 12, 6, 0)
    with open_begun_ledger(run) as ledger:
        yield ledger


def test_every_page_of_a_deep_run_is_bounded(view: View) -> None:
    for name, address in pages(INSTANCES, LENGTH).items():
        assert len(view.get(address).encode()) < LARGEST_PAGE, name


def test_a_list_goes_on_where_it_ended_until_every_instance_was_shown_once(view: View) -> None:
    shown, address, counts = [], "", []
    while True:
        names = view.names(address)
        shown += names
        counts.append(len(names))
        page = view.get(address)
        if 'id="next"' not in page:
            break
        address = view.following(page)
    assert shown == [f"planted/task-{number}" for number in range(1, INSTANCES + 1)]
    assert counts == [PAGE, PAGE, INSTANCES - 2 * PAGE]


def test_a_timeline_goes_on_where_it_ended_until_every_step_was_shown_once(view: View) -> None:
    address, steps, trials = "instance?id=planted/task-1", [], []
    while True:
        page = view.get(address)
        steps += (here := re.findall(r'id="step-(\d+)"', page))
        trials += re.findall(r'id="trial-(\d+)"', page)
        assert len(here) <= STEPS
        assert page.count('class="trial ') <= TRIALS + 2
        if 'id="next"' not in page:
            break
        address = view.following(page)
    assert list(map(int, steps)) == list(range(1, LENGTH + 1))
    assert len(trials) == len(set(trials)) == 1 + 2 * (LENGTH // 3)


def test_a_page_of_huge_answers_reads_as_many_as_fit_and_links_to_the_rest(view: View) -> None:
    page = view.get(f"instance?id={LAST}")
    read = re.findall(r"([0-9,]+) characters left out", page)
    assert 1 <= len(read) <= 2 * (MOST_READ // ANSWER + 1)
    left = [unescape(address) for address in re.findall(r'class="dim none unread">.*?href="([^"]+)"', page)]
    assert len(left) > STEPS
    for address in (left[0], left[-1]):
        assert "Characters 1 to" in view.text(address)


def test_a_reader_begins_at_most_one_text_more_than_it_may_read(view: View) -> None:
    reader = PageReader(view.ledger.browsing, most_read=5_000_000)
    (record,) = view.ledger.browsing.records([INSTANCES])
    answers = [reader.answer(record.final or 0, step) for step in range(1, LENGTH + 1)]
    assert [answer is not None and answer.turn is not None for answer in answers] == [True] * 3 + [False] * (LENGTH - 3)
    assert reader.characters < 5_000_000 + 1.1 * ANSWER


def test_a_huge_answer_is_had_whole_in_portions(view: View) -> None:
    (record,) = view.ledger.browsing.records([INSTANCES])
    found = view.ledger.browsing.response(record.final or 0, 1)
    assert found is not None
    content, at, parts = found[0].content, 0, []
    while at < len(content):
        address = f"{view.base}text?trial={record.final}&step=1&number=0&start={at}"
        answer = view.client.get(address, headers={"accept": "application/json"}).json()
        parts += [piece[1] for block in answer["blocks"] for run in block[1] for piece in run[1]]
        assert answer["end"] > at
        at = answer["end"]
    assert "".join(parts) == content
    assert content.endswith(NEEDLE)


def test_words_at_the_end_of_a_huge_answer_are_found_and_shown(view: View) -> None:
    address = f"?q={NEEDLE.replace(' ', '+')}"
    while not (names := view.names(address)):
        address = view.following(view.get(address))
    assert names == [LAST]
    (link,) = re.findall(r'class="match" href="([^"]+)"', view.get(address))
    assert f"<mark>{NEEDLE}</mark>" in view.get(unescape(link).partition("#")[0])


@given(
    bounds=st.builds(
        LookBounds,
        trials=st.integers(1, 40),
        steps=st.integers(1, 60),
        characters=st.integers(1, 9_000),
    ),
    wanted=st.sampled_from(
        [
            SearchTerms(verdict="fail", model="0-1"),
            SearchTerms(verdict="refused"),
            SearchTerms(text="Piece 6 of task 3"),
            SearchTerms(text="0-1 3", verdict="fail"),
            SearchTerms(text="task-8"),
            SearchTerms(text="nowhere"),
        ]
    ),
    most=st.sampled_from([1, 7, 40]),
)
@settings(max_examples=25)
def test_a_look_in_small_parts_finds_what_one_look_finds(
    small: Ledger, bounds: LookBounds, wanted: SearchTerms, most: int
) -> None:
    def found(most: int, bounds: LookBounds | None) -> list[int]:
        at: SearchPosition | None = SearchPosition()
        instances: list[int] = []
        while at is not None:
            look = small.finding.find(wanted, at, most, bounds)
            assert len(look.found) <= most
            if bounds is not None and look.steps > 1:
                assert look.steps <= bounds.steps
            instances += [one.instance for one in look.found]
            at = look.rest
        return instances

    assert found(most, bounds) == found(10_000, LookBounds(1 << 40, 1 << 40, 1 << 40))


def test_a_look_goes_through_no_more_than_its_bounds(view: View) -> None:
    bounds = LookBounds(trials=100, steps=1 << 40, characters=1 << 40)
    look = view.ledger.finding.find(SearchTerms(verdict="refused"), SearchPosition(), 40, bounds)
    of_one = 1 + 2 * (LENGTH // 3)
    assert (look.found, look.rest) == ([], SearchPosition(look.last))
    assert 100 <= look.trials < 100 + of_one
    look = view.ledger.finding.find(SearchTerms(text="nowhere"), SearchPosition(), 40, LookBounds(1 << 40, 50, 1 << 40))
    assert (look.steps, look.rest is not None) == (50, True)
    look = view.ledger.finding.find(
        SearchTerms(text="nowhere"), SearchPosition(INSTANCES - 1), 40, LookBounds(1 << 40, 1 << 40, 10)
    )
    assert look.steps == 1
    assert look.rest == SearchPosition(INSTANCES, (1 + 2 * (LENGTH // 3)) * (INSTANCES - 1) + 1, 1)
