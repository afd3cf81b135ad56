"""The review without scripts: forms and links are enough, and a submission that does not fit changes nothing."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from stepdown.audit.verdicts import LONGEST_NOTES, AuditVerdict, FormerVerdict, PreLabel
from tests.audit.gallery import NEEDLE, output
from tests.audit.web_review import Review, fields, reviewed, sampled
from tests.conftest import Shop

NEEDS = [[1, 1, 5], [1, 1, 0]]
STEPS = [f"job-{job}/{step}" for job, needs in enumerate(NEEDS) for step, need in enumerate(needs, 1) if need]
"""The steps that people are asked about: all but those of the lowest label."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sampled(Shop(tmp_path_factory.mktemp("built")), NEEDS)


@pytest.fixture
def review(built: Path, tmp_path: Path) -> Iterator[Review]:
    run = shutil.copytree(built, tmp_path / "run")
    with reviewed(run, "ann", "bo") as served:
        yield served


@pytest.fixture
def ann(review: Review) -> Iterator[httpx.Client]:
    with review.client() as client:
        yield client


def shown(answer: httpx.Response) -> str:
    """The step that a page shows, the workload's name left out; "end" where it is the end's."""
    if urlsplit(str(answer.url)).path.endswith("/end"):
        return "end"
    return parse_qs(urlsplit(str(answer.url)).query)["id"][0].partition("/")[2]


def say(client: httpx.Client, page: httpx.Response, verdict: str, notes: str = "") -> httpx.Response:
    """Send a page's form; the page that follows."""
    return client.post("/review/ann/verdict", data={**fields(page.text), "verdict": verdict, "notes": notes})


def undo(client: httpx.Client, page: httpx.Response) -> httpx.Response:
    return client.post("/review/ann/undo", data=fields(page.text, "undo"))


def test_a_reviewer_works_through_the_queue_and_finds_all_of_it_saved(review: Review, ann: httpx.Client) -> None:
    page = ann.get("/")
    seen = []
    for verdict in ("tight", "uncertain", "further-downgradeable", "tight", "tight"):
        seen.append(shown(page))
        page = say(ann, page, verdict, notes=f"about {shown(page)}\r\nsecond line")
    assert (seen, shown(page)) == (STEPS, "end")
    assert "All 5 steps are reviewed" in page.text
    assert list(review.verdicts().values()) == ["tight", "uncertain", "further-downgradeable", "tight", "tight"]
    again = ann.get("/review/ann/step?id=gallery/job-0/2").text
    assert "about job-0/2\nsecond line</textarea>" in again
    assert "You said <b>uncertain</b>" in again
    assert shown(ann.get("/")) == "end"


def test_undo_takes_back_the_latest_verdict_and_returns_to_its_step(review: Review, ann: httpx.Client) -> None:
    page = say(ann, say(ann, ann.get("/"), "tight"), "uncertain")
    back = undo(ann, page)
    assert (shown(back), review.verdicts()) == (STEPS[1], {STEPS[0]: "tight"})
    assert shown(undo(ann, back)) == STEPS[0]
    assert review.verdicts() == {}
    assert 'id="undo"' not in ann.get("/").text


def test_the_same_undo_sent_twice_takes_back_one_verdict(review: Review, ann: httpx.Client) -> None:
    page = say(ann, say(ann, ann.get("/"), "tight"), "tight")
    undo(ann, page)
    again = undo(ann, page)
    assert (again.status_code, review.verdicts()) == (409, {STEPS[0]: "tight"})
    assert "Nothing was taken back" in again.text


def test_the_same_verdict_sent_twice_is_one_and_never_the_next_steps(review: Review, ann: httpx.Client) -> None:
    page = ann.get("/")
    first, second = say(ann, page, "tight"), say(ann, page, "tight")
    assert shown(first) == shown(second) == STEPS[1]
    assert review.verdicts() == {STEPS[0]: "tight"}
    assert len(review.store.said(f"gallery/{STEPS[0]}")) == 1


def test_an_outdated_page_does_not_overwrite_what_was_said_since(review: Review, ann: httpx.Client) -> None:
    outdated = ann.get("/")
    say(ann, outdated, "uncertain", "look again")
    answer = say(ann, outdated, "tight")
    assert answer.status_code == 409
    assert "answered meanwhile" in answer.text
    assert review.verdicts() == {STEPS[0]: "uncertain"}
    fresh = ann.get("/review/ann/step?id=gallery/job-0/1")
    say(ann, fresh, "tight")
    assert review.verdicts() == {STEPS[0]: "tight"}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"prefix": "0" * 64}, 409),
        ({"verdict": "excellent"}, 409),
        ({"verdict": ""}, 409),
        ({"step": "gallery/job-1/3"}, 409),  # its label is the lowest: nobody is asked about it
        ({"step": "gallery/job-7/1"}, 409),
        ({"step": "gallery/job-0/2"}, 409),  # another step's prefix
        ({"notes": "x" * (LONGEST_NOTES + 1)}, 409),
        ({"notes": "x" * (2 * LONGEST_NOTES + 1)}, 422),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_saved(
    review: Review, ann: httpx.Client, change: dict[str, str], status: int
) -> None:
    form = {**fields(ann.get("/").text), "verdict": "tight", **change}
    answer = ann.post("/review/ann/verdict", data=form)
    assert (answer.status_code, review.verdicts()) == (status, {})
    as_json = ann.post("/review/ann/verdict", data=form, headers={"accept": "application/json"})
    assert as_json.status_code == status
    assert as_json.headers["content-type"] == "application/json"


def test_the_longest_notes_are_kept_whole(review: Review, ann: httpx.Client) -> None:
    notes = "é" * LONGEST_NOTES
    say(ann, ann.get("/"), "tight", notes)
    assert review.store.current("ann")[f"gallery/{STEPS[0]}"].notes == notes


def test_notes_are_saved_without_another_verdict(review: Review, ann: httpx.Client) -> None:
    say(ann, ann.get("/"), "uncertain")
    page = ann.get("/review/ann/step?id=gallery/job-0/1")
    say(ann, page, "", notes="because")
    said = review.store.current("ann")[f"gallery/{STEPS[0]}"]
    assert (said.verdict.value, said.notes) == ("uncertain", "because")


def test_reviewers_see_their_own_queue_and_nobody_elses_verdicts(review: Review, ann: httpx.Client) -> None:
    say(ann, ann.get("/"), "uncertain", "a secret of ann's")
    with review.client("bo") as bo:
        pages = [bo.get(f"/review/bo/{page}").text for page in ("", "queue", "end", "step?id=gallery/job-0/1")]
        assert shown(bo.get("/")) == STEPS[0]
        assert fields(bo.get("/").text)["known"] == ""
    assert not any("secret" in page or "You said" in page or "Saved:" in page for page in pages)
    assert all("<b>0</b> of 5" in page for page in pages)


def test_steps_that_are_another_reviewers_are_refused(review: Review, ann: httpx.Client) -> None:
    ids = [f"gallery/{step}" for step in STEPS]
    review.store.reviewers.assign([("ann", ids[0]), ("bo", ids[1])], ["ann", "bo"])
    assert [step for step in ids if step in ann.get("/review/ann/queue").text] == ids[:1]
    assert ann.get(f"/review/ann/step?id={ids[1]}").status_code == 409
    form = {**fields(ann.get("/").text), "step": ids[1], "verdict": "tight"}
    assert ann.post("/review/ann/verdict", data=form).status_code == 409
    assert review.verdicts() == {}


def test_a_models_guess_is_shown_only_after_the_reviewer_has_answered(review: Review, ann: httpx.Client) -> None:
    guess = PreLabel(AuditVerdict.LOWER, "the guess's reason")
    review.store.set_prelabels({f"gallery/{step}": guess for step in STEPS})
    page = ann.get("/")
    assert "guess" not in page.text
    page = say(ann, page, "tight")
    saved, _, rest = unescape(page.text).partition('<div class="headline">')
    assert "A model had guessed <b>further-downgradeable</b>: the guess's reason" in saved
    assert "guess" not in rest
    answered = unescape(ann.get("/review/ann/step?id=gallery/job-0/1").text)
    assert "a model had guessed <b>further-downgradeable</b>: the guess's reason" in answered
    undo(ann, page)
    assert "guess" not in ann.get("/review/ann/step?id=gallery/job-0/1").text


def test_an_earlier_versions_verdict_is_shown_to_its_own_reviewer_after_the_answer(
    review: Review, ann: httpx.Client
) -> None:
    step, when = f"gallery/{STEPS[0]}", "2026-01-01T00:00:00+00:00"
    review.store.set_former(
        step,
        [
            FormerVerdict("ann", AuditVerdict.UNCERTAIN, "hers", when, "the prefix is another one"),
            FormerVerdict("bo", AuditVerdict.TIGHT, "his", when, "the prefix is another one"),
        ],
    )
    page = ann.get("/")
    assert "earlier version" not in page.text
    say(ann, page, "tight")
    answered = ann.get(f"/review/ann/step?id={step}").text
    assert "In the earlier version you said <b>uncertain</b> (hers)" in answered
    assert "the prefix is another one" in answered
    assert "(his)" not in answered


def test_the_page_names_no_model(ann: httpx.Client) -> None:
    pages = [unescape(ann.get(f"/review/ann/step?id=gallery/{step}").text) for step in STEPS]
    # What the workshop's models say ends in their skill; their names are `skill-0`, `skill-1` and `reference`.
    assert not any(name in page for page in pages for name in ("skill-0", "skill-1", "reference"))
    assert "Would <b>low</b>, one tier lower, still handle this step?" in pages[1]
    assert "spoilt with skill 0" in pages[1]
    assert "made 1 with skill 1" in pages[1]


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Review]:
    run = sampled(Shop(tmp_path_factory.mktemp("long")), [[1]], {"hostile": True, "turns": 30})
    with reviewed(run) as served:
        yield served


def test_a_long_prefix_is_folded_and_a_huge_output_shown_in_part(long: Review) -> None:
    with long.client() as ann:
        page = ann.get("/").text
    turns = re.findall(r'<details class="turn role-(\w+)" id="([\w-]+)"( open)?>', page)
    assert len(turns) == 67
    assert [name for _, name, is_open in turns if is_open] == ["turn-2", "turn-64", "turn-65", "turn-66", "last"]
    assert len(page) < 400_000
    assert NEEDLE not in page
    assert "characters left out" in page


def test_a_huge_output_is_had_whole_in_portions(long: Review) -> None:
    with long.client() as ann:
        found = re.search(r'data-number="(\d+)" data-start="(\d+)" data-end="(\d+)"', ann.get("/").text)
        assert found
        number, start, end = map(int, found.groups())
        portions, at = [], start
        while at < end:
            query: dict[str, str | int] = {"id": "gallery/job-0/1", "number": number, "start": at, "end": end}
            portion = ann.get("/review/ann/text", params=query, headers={"accept": "application/json"}).json()
            assert at < portion["end"] <= end
            assert portion["end"] - at <= 32_768
            portions.append("".join(text for _, runs in portion["blocks"] for _, run in runs for _, text, _ in run))
            at = portion["end"]
        assert "".join(portions) in output(2_000_000)
        assert len("".join(portions)) == end - start > 1_900_000
        without_scripts = ann.get(
            "/review/ann/text", params={"id": "gallery/job-0/1", "number": number, "start": start, "end": end}
        )
        assert "go on" in without_scripts.text
        for wrong in ({"number": 9999}, {"start": -1}, {"end": 10**9}, {"start": end, "end": start}):
            assert ann.get("/review/ann/text", params={**query, **wrong}).status_code == 409


def test_search_finds_folded_and_left_out_text_and_says_where(long: Review) -> None:
    with long.client() as ann:
        page = ann.get("/review/ann/step", params={"id": "gallery/job-0/1", "q": NEEDLE.upper()}).text
        assert f"<mark>{NEEDLE}</mark>" in page
        assert "1 match in 1 of 67 turns" in page
        page = ann.get("/review/ann/step", params={"id": "gallery/job-0/1", "q": "bench_3.py"}).text
        assert re.search(r'id="turn-9" open>.*?<mark>bench_3.py</mark>', page, re.DOTALL)
        page = ann.get("/review/ann/step", params={"id": "gallery/job-0/1", "q": "<script>(.*"}).text
        assert "0 matches" in page
        assert "<script>(" not in page
        page = ann.get("/review/ann/step", params={"id": "gallery/job-0/1", "q": "nothing to report"}).text
        assert re.search(r"2\d,\d{3} matches", page)
        assert len(page) < 3_000_000
        assert ann.get("/review/ann/step", params={"id": "gallery/job-0/1", "q": "x" * 201}).status_code == 422
