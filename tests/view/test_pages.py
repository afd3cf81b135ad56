"""What the pages of a run say: of its instances, of an instance's steps, of every trial."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.conftest import Shop
from tests.provider import FAULTS, Answer, Failing, Provider
from tests.view.viewing import View, viewed, words
from tests.workshop import ABILITIES, apprentice, config

Start = Callable[..., Provider]
NEEDS = [[0, 2, 1], [1], [99], [0, 0]]
"""Of four instances: one with every label, one of mid, one without a seed, one of low."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    shop = Shop(tmp_path_factory.mktemp("view"))
    settings = config("", NEEDS, protocol={"rules": {"confirm": 1, "control": 1}})
    for tier in settings["protocol"]["pool"]["tiers"]:
        tier["models"][0]["price"] = {"input": 1000.0}
    with Provider(ABILITIES) as one:
        settings["operation"]["endpoints"]["default"]["api_base"] = one.url
        assert shop.build(settings).code == 0
    return shop


@pytest.fixture(scope="module")
def view(built: Shop) -> Iterator[View]:
    with viewed(built.run) as served:
        yield served


def trial_ids(view: View, instance: int, **wanted: Any) -> list[int]:
    return [
        trial.id
        for trial in view.ledger.browsing.trials(instance)
        if all(getattr(trial, name) == value for name, value in wanted.items())
    ]


def test_instances_are_listed_with_state_labels_and_cost(view: View) -> None:
    page = view.get("")
    assert view.names("") == [f"workshop/job-{number}" for number in range(4)]
    said = words(page)
    assert "3 done" in said
    assert "1 dropped" in said
    labels = re.findall(r'title="(step \d: [^"]*)"', page)
    assert labels[:4] == ["step 1: low, novice", "step 2: high, master", "step 3: mid, hand", "step 1: mid, hand"]
    assert "no seed passed" in said


def test_what_the_list_says_was_paid_adds_up_to_what_the_run_paid(view: View, built: Shop) -> None:
    told = re.findall(r"(\d+) calls? · \$([0-9.]+)", view.text(""))
    spent = built.read_json("spend.json")
    assert sum(int(calls) for calls, _ in told) == spent["calls"]
    assert sum(float(usd) for _, usd in told) == pytest.approx(spent["usd"])


@pytest.mark.parametrize(
    ("query", "jobs"),
    [
        ("state=dropped", [2]),
        ("state=done", [0, 1, 3]),
        ("label=high", [0]),
        ("label=mid", [0, 1]),
        ("workload=workshop&label=low", [0, 3]),
        ("verdict=fail&model=hand", [0]),
        ("verdict=fail&tier=low", [0, 1]),
        ("verdict=fail&model=master", [2]),
        ("reason=SPOILT", [0, 1, 2]),
        ("reason=100%25", []),
        ("reason=no+seed", [2]),
        ("reason=no+seed&model=hand", []),
        ("q=job-3", [3]),
        ("q=piece+3+needs", [0]),
        ("q=SPOILT+with+skill+1", [0]),
        ("q=spoilt&model=novice&verdict=fail", [0, 1]),
        ("q=spoilt&model=master", []),
        ("q=nothing+like+this", []),
        ("workload=other", []),
    ],
)
def test_instances_are_found_by_what_they_are_by_their_trials_and_by_words(
    view: View, query: str, jobs: list[int]
) -> None:
    assert view.names(f"?{query}") == [f"workshop/job-{job}" for job in jobs]


def test_a_filter_names_the_trials_that_meet_it_and_links_to_their_steps(view: View) -> None:
    page = view.get("?verdict=fail&model=hand")
    ((address, said),) = re.findall(r'<a class="match" href="([^"]+)">(.*?)</a>', page)
    assert words(said) == "step 2: hand fail a piece is spoilt"
    address = address.replace("&amp;", "&")
    page = view.get(address.partition("#")[0])
    assert f'id="{address.partition("#")[2]}"' in page
    assert 'id="step-2"' in page


def test_an_instance_is_a_timeline_of_steps_with_every_trial(view: View) -> None:
    page = view.get("instance?id=workshop/job-0")
    said = words(page)
    trials = view.ledger.browsing.trials(1)
    assert sorted(map(int, re.findall(r'id="trial-(\d+)"', page))) == [trial.id for trial in trials]
    assert [words(head) for head in re.findall(r'<h2 id="head-\d">(.*?)</h2>', page, re.DOTALL)] == [
        "Step 1 label low",
        "Step 2 label high",
        "Step 3 label mid",
    ]
    for piece in ("piece 1 needs skill 0", "piece 2 needs skill 2", "piece 3 needs skill 1"):
        assert said.count(piece) == 2  # each message where it is new only: as it is, and in its line when folded
    # Both rejected answers of the second step, which no row shows.
    assert "spoilt with skill 0" in said
    assert "spoilt with skill 1" in said
    assert "a piece is spoilt" in said
    assert "Fresh runs of the whole trajectory" in said
    assert "of such a run the ledger keeps what its candidate answered, not what came later" in said
    assert "The ledger keeps the outcome of such a run, not its steps" in said


def test_the_whole_prefix_of_a_step_is_what_a_router_sees(view: View, built: Shop) -> None:
    (row,) = [row for row in built.read("question_bank.jsonl") if row["id"] == "workshop/job-0/3"]
    address = re.findall(r'href="(prefix\?[^"]*step=3)"', view.get("instance?id=workshop/job-0"))[0]
    said = view.text(address.replace("&amp;", "&"))
    places = [said.index(message["content"]) for message in row["messages"]]
    assert places == sorted(places)


def test_a_trials_page_tells_all_that_is_kept_of_it(view: View) -> None:
    (accepted,) = trial_ids(view, 1, model="novice", purpose="search", accepted=True)
    said = view.text(f"trial?id={accepted}")
    assert "The run went on for 2 calls, to 3 calls in all." in said
    assert "Step 2 by master" in said
    assert "Step 3 by master" in said
    assert re.search(r"master this run \d", said)
    (rejected,) = trial_ids(view, 1, model="novice", step=2)
    said = view.text(f"trial?id={rejected}")
    assert "spoilt with skill 0" in said
    assert "Step 3" not in said
    assert "not what came later" in said
    for purpose in ("seed", "verify", "confirm", "control"):
        for trial in trial_ids(view, 1, purpose=purpose):
            assert purpose in view.text(f"trial?id={trial}")


def test_a_probe_stands_at_its_step_with_what_its_model_answered(shop: Shop, provider: Start) -> None:
    assert shop.build(config(provider().url, [[0, 0]], protocol={"rules": {"probe": "last"}})).code == 0
    with viewed(shop.run) as page:
        probes = trial_ids(page, 1, purpose="probe")
        assert len(probes) == 2  # of the hand, whom the search did not need, and of the master, drawn afresh
        assert "made 1 with skill 1" in page.text("instance?id=workshop/job-0")
        said = page.text(f"trial?id={probes[0]}")
        assert "tried for the grid of probes" in said
        assert "what its candidate answered alone" in said


def test_two_trials_stand_side_by_side_with_their_difference(view: View) -> None:
    novice, hand = (trial_ids(view, 1, model=name, step=2)[0] for name in ("novice", "hand"))
    page = view.get(f"compare?trial={novice}&trial={hand}")
    differing = [words(row) for row in re.findall(r'<tr class="differs">(.*?)</tr>', page, re.DOTALL)]
    assert [row.split()[0] for row in differing] == ["tier", "model"]
    ((left, right),) = re.findall(r'side del"[^>]*>(.*?)</div><div class="mono side add"[^>]*>(.*?)</div>', page)
    assert left.startswith("spoilt with skill 0")
    assert right.startswith("spoilt with skill 1")
    assert "The answers are the same." in view.text(f"compare?trial={hand}&trial={hand}")
    (seed,) = trial_ids(view, 1, purpose="seed")
    assert f"No answer of trial {seed} is kept." in view.text(f"compare?trial={seed}&trial={hand}")


def test_a_row_id_leads_to_its_step(view: View) -> None:
    answer = view.client.get(f"{view.base}row?id=workshop/job-0/2", follow_redirects=False)
    assert answer.headers["location"] == "/run/run/instance?id=workshop%2Fjob-0&step=2#step-2"
    assert 'id="step-2"' in view.get("row?id=workshop/job-0/2")


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("instance?id=workshop/job-9", 404, "no instance"),
        ("instance?id=nonsense", 404, "no instance"),
        ("instance", 422, "not one of these pages"),
        ("trial?id=999", 404, "no trial 999"),
        ("trial?id=-1", 422, "not one of these pages"),
        (f"trial?id={'9' * 40}", 422, "not one of these pages"),
        ("compare?trial=1", 404, "Two trials are compared, not 1"),
        ("compare?trial=1&trial=2&trial=3", 404, "not 3"),
        ("compare?trial=1&trial=x", 422, "not one of these pages"),
        ("prefix?trial=1&step=99", 404, "no such step"),
        ("text?message=999", 404, "no such text"),
        ("text?message=1&start=99999", 404, "no such part"),
        ("text", 404, "no such text"),
        ("?tier=none", 404, "no tier"),
        (f"?q={'x' * 201}", 422, "not one of these pages"),
        ("nowhere", 404, "no such page"),
    ],
)
def test_an_address_of_nothing_is_told_so(view: View, address: str, status: int, said: str) -> None:
    assert said in view.text(address, status)


def test_a_place_to_look_on_from_that_is_none_is_the_beginning(view: View) -> None:
    for place in ("x", "1.2", "-1.0.0", "99999999999999999999.0.0"):
        assert len(view.names(f"?after={place}")) == 4
    assert view.names("?after=2.0.0") == ["workshop/job-2", "workshop/job-3"]


def test_nothing_but_reading_is_let_in_and_only_with_the_link(view: View) -> None:
    assert view.client.post(view.base).status_code == 405
    assert view.client.delete(view.base).status_code == 405
    with httpx.Client() as stranger:
        for address in ("", "instance?id=workshop/job-0", "text?message=1"):
            refused = stranger.get(view.base + address)
            assert (refused.status_code, "workshop" in refused.text) == (401, False)
            assert "stepdown view" in refused.text


def test_technical_trials_are_told_with_their_errors(shop: Shop, provider: Start) -> None:
    one = provider({**ABILITIES, "novice": Failing(4, FAULTS["server_503"], apprentice(0))})
    assert shop.build(config(one.url, [[0]])).code == 3
    with viewed(shop.run) as view:
        said = view.text("instance?id=workshop/job-0")
        assert "blocked" in said
        assert "not decided" in said
        assert "errors before retries" in said
        (trial,) = trial_ids(view, 1, verdict="technical")
        assert "Errors before its retries" in view.text(f"trial?id={trial}")
        assert view.names("?verdict=technical") == ["workshop/job-0"]
        assert shop.resume().code == 0  # while the pages are served
        said = view.text("instance?id=workshop/job-0")
        assert "technical, tried again" in said
        assert "label low" in said


def test_several_samples_of_a_candidate_are_told_apart(shop: Shop, provider: Start) -> None:
    rules = {"acceptance": {"passes": 2, "of": 3}}
    assert shop.build(config(provider().url, [[0, 1]], protocol={"rules": rules})).code == 0
    with viewed(shop.run) as view:
        said = view.text("instance?id=workshop/job-0")
        assert said.count("sample 1") >= 2
        first, second = trial_ids(view, 1, model="novice", step=1)
        assert "sample 0 1" in view.text(f"compare?trial={first}&trial={second}")


def test_a_model_that_answers_with_markup_is_shown_as_text(shop: Shop, provider: Start) -> None:
    hostile = "<script>alert(1)</script>\x1b[31m\u202e{{ 7 * 7 }}"
    one = provider({**ABILITIES, "novice": lambda request: Answer(hostile)})
    shop.build(config(one.url, [[1]]))
    with viewed(shop.run) as view:
        page = view.get("instance?id=workshop/job-0")
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert "<script>alert" not in page
        assert "\u202e" not in page
        assert "\x1b" not in page
        assert "U+202E" in page
        assert "{{ 7 * 7 }}" in page
