"""An agent program that nobody rewrote is labelled: steps by what models can do, whatever interrupts the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents import orders
from tests.conftest import Shop, started
from tests.provider import Provider, spawned
from tests.test_interruption import wait_for_requests

TASKS = [orders.task("first", [0, 1, 2]), orders.task("second", [2, 0])]
LABELS = [["low", "mid", "high"], ["high", "low"]]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a run that nothing disturbed."""
    shop = Shop(tmp_path_factory.mktemp("undisturbed"))
    with Provider(orders.ABILITIES) as provider:
        done = shop.build(orders.config(provider.url, shop.folder, TASKS))
        assert done.code == 0, done.err + done.out
        assert shop.labels() == LABELS
        return shop.files()


def test_a_later_prefix_holds_what_the_cheaper_model_really_did(shop: Shop) -> None:
    with Provider(orders.ABILITIES) as provider:
        done = shop.build(orders.config(provider.url, shop.folder, TASKS[:1]))
        assert done.code == 0, done.err
    last = shop.read("question_bank.jsonl")[-1]
    written = [message["content"] for message in last["messages"] if message["role"] == "tool"]
    assert [text.split(" after ")[0] for text in written] == [
        "written: filled by skill 0",
        "written: filled by skill 1",
    ]
    assert last["tools"][0]["function"]["name"] == "write"
    # Nothing of this machine is in a row: the workspace has the same name in every episode.
    assert last["messages"][0]["content"] == "You fill orders in /workspace."


def test_two_workers_give_the_same_bytes_as_one(shop: Shop, undisturbed: dict[str, bytes]) -> None:
    with Provider(orders.ABILITIES) as provider:
        assert shop.build(orders.config(provider.url, shop.folder, TASKS, workers=2)).code == 0
    assert shop.files() == undisturbed


def test_kill_9_and_resume_give_the_same_bytes(shop: Shop, tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    log = tmp_path / "requests.jsonl"
    with spawned("tests.agents.orders:ABILITIES", log, latency=0.05) as url:
        settings = orders.config(url, shop.folder, TASKS)
        process = started("build", str(shop.write(settings)), "--run", str(shop.run))
        wait_for_requests(log, 7, process)
        process.kill()
        process.communicate()
        assert shop.resume().code == 0
    assert shop.files() == undisturbed


def test_a_program_that_asks_in_parallel_is_labelled_step_by_step(shop: Shop) -> None:
    """Which request comes first is chance; replays take the recorded one, so no trial diverges."""
    with Provider(orders.ABILITIES) as provider:
        options = {"command": f"{orders.CLERK} 'at once'"}
        done = shop.build(orders.config(provider.url, shop.folder, [orders.task("one", [0, 2, 1])], options))
        assert done.code == 0, done.err
    labels = {row["messages"][-1]["content"][:7]: row["target_tier"] for row in shop.read("question_bank.jsonl")}
    assert labels == {"order 0": "low", "order 1": "high", "order 2": "mid"}


def test_a_client_that_loses_patience_with_every_answer_changes_no_label(shop: Shop) -> None:
    with Provider(orders.ABILITIES, latency=0.5) as provider:
        options = {"command": f"{orders.CLERK} impatient"}
        done = shop.build(orders.config(provider.url, shop.folder, [orders.task("one", [2, 0])], options))
        assert done.code == 0, done.err
        assert provider.repeated() == []
    assert shop.labels() == [["high", "low"]]


def test_side_calls_are_answered_paid_for_once_and_never_rows(shop: Shop) -> None:
    with Provider(orders.ABILITIES) as provider:
        options = {"command": f"{orders.CLERK} titles", "side_calls": {"no_tools": True, "model": "novice"}}
        done = shop.build(orders.config(provider.url, shop.folder, [orders.task("one", [0, 2])], options))
        assert done.code == 0, done.err
        titles = [seen for seen in provider.requests if "A title for" in str(seen.body["messages"])]
        assert [seen.model for seen in titles] == ["novice"]
        calls = provider.count()
    assert shop.labels() == [["low", "high"]]
    assert "A title for" not in str(shop.read("question_bank.jsonl"))
    assert shop.read_json("spend.json")["calls"] == calls
