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


def test_kill_9_and_resume_give_the_same_bytes_and_leave_no_process(
    shop: Shop, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    log = tmp_path / "requests.jsonl"
    with spawned("tests.agents.orders:ABILITIES", log, latency=0.05) as url:
        settings = orders.config(url, shop.folder, TASKS)
        for moment in (4, 8):
            process = started("build", str(shop.write(settings)), "--run", str(shop.run))
            wait_for_requests(log, moment, process)
            process.kill()
            process.communicate()
        assert shop.resume().code == 0
    assert shop.files() == undisturbed
