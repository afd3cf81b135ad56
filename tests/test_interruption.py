"""Whatever ends a run, going on gives the bytes of an undisturbed one, and nothing that was paid for is paid again."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tests import workshop
from tests.conftest import Shop, started, stepdown
from tests.provider import Provider, spawned

NEEDS = [[0, 1, 2, 0], [2, 0, 1], [1, 1], [0, 0, 0, 0, 2], [2, 2], [0, 1, 0]]


def asked(log: Path) -> Counter[tuple[str, str]]:
    """Requests by model and digest of their messages."""
    return Counter((line["model"], line["digest"]) for line in map(json.loads, log.read_text().splitlines()))


def wait_for_requests(log: Path, count: int, process: subprocess.Popen[str]) -> None:
    """Until so many requests have come in, or the process has ended."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if log.exists() and len(log.read_text().splitlines()) >= count:
            return
        time.sleep(0.005)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], int]:
    """The files of a run that nothing disturbed, and how many calls it took."""
    shop = Shop(tmp_path_factory.mktemp("undisturbed"))
    with Provider(workshop.ABILITIES) as provider:
        assert shop.build(workshop.config(provider.url, NEEDS)).code == 0
        assert provider.repeated() == []
        return shop.files(), provider.count()


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_the_bytes_do_not_depend_on_the_number_of_workers(
    shop: Shop, undisturbed: tuple[dict[str, bytes], int], workers: int
) -> None:
    with Provider(workshop.ABILITIES, latency=0.002) as provider:
        settings = workshop.config(provider.url, NEEDS)
        settings["operation"]["workers"] = workers
        assert shop.build(settings).code == 0
        assert shop.files() == undisturbed[0]
        assert provider.count() == undisturbed[1]


@pytest.mark.parametrize("seed", range(3))
def test_kill_9_loses_nothing_but_the_calls_in_flight(
    shop: Shop, tmp_path: Path, undisturbed: tuple[dict[str, bytes], int], seed: int
) -> None:
    """Killed at three random moments each, with two workers."""
    files, calls = undisturbed
    log, draw, kills, workers = tmp_path / "requests.jsonl", random.Random(seed), 3, 2
    with spawned("tests.workshop:ABILITIES", log, latency=0.02) as url:
        settings = workshop.config(url, NEEDS)
        settings["operation"]["workers"] = workers
        config = shop.write(settings)
        for moment in sorted(draw.sample(range(1, calls - 5), kills)):
            process = started("build", str(config), "--run", str(shop.run))
            wait_for_requests(log, moment, process)
            process.kill()
            process.communicate()
        assert shop.resume().code == 0
    assert shop.files() == files
    counts = asked(log)
    assert len(counts) == calls
    assert sum(counts.values()) <= calls + kills * workers
    spent = shop.read_json("spend.json")
    # The run knows what it paid, also for what it was killed before it could record.
    assert spent["calls"] == calls
    assert spent["calls_paid_by_earlier_runs"] == 0


def test_ctrl_c_stops_after_the_calls_in_hand_and_says_how_to_go_on(
    shop: Shop, tmp_path: Path, undisturbed: tuple[dict[str, bytes], int]
) -> None:
    files, calls = undisturbed
    log = tmp_path / "requests.jsonl"
    with spawned("tests.workshop:ABILITIES", log, latency=0.05) as url:
        process = started("build", str(shop.write(workshop.config(url, NEEDS))), "--run", str(shop.run))
        wait_for_requests(log, 7, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130
        assert f"stepdown resume {shop.run}" in err
        assert "Traceback" not in err
        assert shop.resume().code == 0
    assert shop.files() == files
    assert sum(asked(log).values()) == calls


def test_a_second_process_on_one_run_is_refused(shop: Shop, tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    with spawned("tests.workshop:ABILITIES", log, latency=0.2) as url:
        process = started("build", str(shop.write(workshop.config(url, NEEDS))), "--run", str(shop.run))
        try:
            wait_for_requests(log, 2, process)
            second = shop.resume()
            assert second.code == 2
            assert f"process {process.pid}" in second.err
            # Looking is allowed.
            assert stepdown("status", str(shop.run)).code == 0
        finally:
            process.kill()
            process.communicate()


def test_a_finished_run_resumes_without_a_call(shop: Shop, undisturbed: tuple[dict[str, bytes], int]) -> None:
    with Provider(workshop.ABILITIES) as provider:
        shop.build(workshop.config(provider.url, NEEDS))
        before = provider.count()
        assert shop.resume().code == 0
        assert provider.count() == before
    assert shop.files() == undisturbed[0]


def test_workers_addresses_and_keys_may_change_at_a_resume(
    shop: Shop, undisturbed: tuple[dict[str, bytes], int]
) -> None:
    with Provider({"master": workshop.ABILITIES["master"]}) as half:
        assert shop.build(workshop.config(half.url, NEEDS)).code == 2
    with Provider(workshop.ABILITIES) as whole:
        settings = workshop.config(whole.url, NEEDS)
        settings["operation"]["workers"] = 3
        assert shop.resume("--config", str(shop.write(settings, "other.yaml"))).code == 0
    assert shop.files() == undisturbed[0]
