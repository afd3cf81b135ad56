"""What the world does to a run: it ends in a clear line or a clean recovery, never in another label."""

from __future__ import annotations

import random
import resource
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import ROOT, Shop
from tests.provider import FAULTS, Answer, Fault, Provider, Request
from tests.workshop import ABILITIES, config

Start = Callable[..., Provider]
NEEDS = [[0, 1, 2, 0], [2, 0, 1], [1, 1], [0, 0, 0, 0, 2]]
TRANSIENT = [
    "payload_200",
    "rate_limit",
    "server_500",
    "server_502",
    "server_503",
    "overloaded_529",
    "drop",
    "cut",
    "not_json",
    "half_json",
    "empty_body",
    "no_choices",
    "null_message",
]


class Unreliable:
    """An ability that fails three requests in ten, in every way there is."""

    def __init__(self, ability: Any, seed: int) -> None:
        self._ability, self._random, self._lock = ability, random.Random(seed), threading.Lock()
        self.failed: set[str] = set()

    def __call__(self, request: Request) -> Answer | Fault:
        with self._lock:
            fault = self._random.choice(TRANSIENT) if self._random.random() < 0.3 else None
            if fault is not None:
                self.failed.add(fault)
                return FAULTS[fault]
        answer: Answer | Fault = self._ability(request)
        return answer


def healthy(shop: Shop, provider: Start) -> dict[str, bytes]:
    """The files of a run that nothing went wrong with."""
    plain = Shop(shop.folder)
    plain.run = shop.folder / "healthy"
    assert plain.build(config(provider().url, NEEDS)).code == 0
    return plain.files()


def test_a_provider_that_fails_three_calls_in_ten_yields_the_bytes_of_a_healthy_one(
    shop: Shop, provider: Start
) -> None:
    unreliable = {name: Unreliable(ability, seed) for seed, (name, ability) in enumerate(ABILITIES.items())}
    settings = config(provider(unreliable).url, NEEDS)
    settings["operation"].update(workers=4, retries={"attempts": 12, "first_wait": 0, "longest_wait": 0})
    assert shop.build(settings).code == 0
    assert shop.files() == healthy(shop, provider)
    assert len(set.union(*(one.failed for one in unreliable.values()))) > len(TRANSIENT) // 2
    assert shop.read_json("spend.json")["errors_retried"] > 10


def test_without_enough_retries_it_blocks_and_resumes_come_to_the_same_bytes(shop: Shop, provider: Start) -> None:
    unreliable = {name: Unreliable(ability, seed) for seed, (name, ability) in enumerate(ABILITIES.items())}
    settings = config(provider(unreliable).url, NEEDS)
    settings["operation"]["retries"]["attempts"] = 1
    result = shop.build(settings)
    for _ in range(60):
        if result.code != 3:
            break
        result = shop.resume()
    assert result.code == 0
    assert shop.files() == healthy(shop, provider)


@pytest.mark.parametrize("most", [30_000, 100_000, 200_000])
def test_a_full_disk_ends_in_one_line_and_a_resume_goes_on(shop: Shop, provider: Start, most: int) -> None:
    """No file may grow beyond `most` bytes: SQLite and the writers of the release meet what a full disk gives them."""
    one = provider()
    path = shop.write(config(one.url, NEEDS))
    process = subprocess.run(
        [sys.executable, "-m", "stepdown", "build", str(path), "--run", str(shop.run)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )
    assert process.returncode == 2, process.stderr
    assert "Traceback" not in process.stderr
    assert process.stderr.strip().splitlines()[-1].startswith("stepdown: ")
    assert shop.build(config(one.url, NEEDS)).code == 0
    assert shop.files() == healthy(shop, provider)


def test_a_corrupt_cache_costs_calls_and_no_label(shop: Shop, provider: Start) -> None:
    one = provider()
    assert shop.build(config(one.url, NEEDS)).code == 0
    before = shop.files()
    with sqlite3.connect(shop.run / "cache" / "responses.sqlite") as db:
        changed = db.execute("UPDATE responses SET value = ? WHERE rowid % 2", (b"\x00 rubbish",)).rowcount
    assert changed > 0
    again = Shop(shop.folder)
    again.run = shop.folder / "again"
    settings = config(one.url, NEEDS)
    settings["operation"]["cache"] = str(shop.run / "cache")
    assert again.build(settings).code == 0
    assert again.files() == before
    assert again.read_json("spend.json")["calls_paid_by_earlier_runs"] > 0


def test_a_truncated_ledger_is_refused_and_a_new_run_on_its_cache_pays_nothing(shop: Shop, provider: Start) -> None:
    one = provider()
    shop.build(config(one.url, NEEDS))
    asked, before = one.count(), shop.files()
    ledger = shop.run / "ledger.sqlite"
    ledger.write_bytes(ledger.read_bytes()[: ledger.stat().st_size // 2])
    refused = shop.resume()
    assert refused.code == 2
    assert "ledger.sqlite" in refused.err
    again = Shop(shop.folder)
    again.run = shop.folder / "again"
    settings = config(one.url, NEEDS)
    settings["operation"]["cache"] = str(shop.run / "cache")
    assert again.build(settings).code == 0
    assert again.files() == before
    assert one.count() == asked


def test_a_trial_whose_environment_was_lost_is_executed_again_and_nothing_is_paid_twice(
    shop: Shop, provider: Start
) -> None:
    one = provider()
    assert shop.build(config(one.url, NEEDS, options={"lost": 2})).code == 0
    files, undisturbed = shop.files(), healthy(shop, provider)
    # The manifest names the options, and so the fault that was asked for.
    assert {name: files[name] == undisturbed[name] for name in files if name != "manifest.json"} == {
        "question_bank.jsonl": True,
        "evidence.jsonl": True,
        "audit_queue.jsonl": True,
    }
    assert one.repeated() == []
    assert shop.read_json("spend.json")["errors_retried"] == 2
