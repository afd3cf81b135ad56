"""What a cluster may lose, a run gets over: nodes at any moment, and the head, which is killed as any process is."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import workshop
from tests.cluster.nodes import Nodes, on_cluster
from tests.conftest import Shop, started
from tests.provider import Provider, logged, spawned

pytestmark = pytest.mark.cluster

WORKERS = 6
NEEDS = [[draw.choice((0, 0, 0, 1, 2)) for _ in range(5)] for draw in [random.Random(18)] for _ in range(12)]


class Undisturbed(NamedTuple):
    """What a run in one process came to."""

    files: dict[str, bytes]
    calls: int


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    shop = Shop(tmp_path_factory.mktemp("undisturbed"))
    with Provider(workshop.ABILITIES) as provider:
        assert shop.build(workshop.config(provider.url, NEEDS)).code == 0
        return Undisturbed(shop.files(), provider.count())


def moments(log: Path, process: subprocess.Popen[str], calls: int, count: int, seed: int) -> Iterator[int]:
    """At so many random moments of a run, by the calls that have come in."""
    for moment in sorted(random.Random(seed).sample(range(1, int(calls * 0.9)), count)):
        deadline = time.monotonic() + 120
        while len(logged(log)) < moment and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        yield moment


def test_a_node_that_dies_costs_the_calls_in_its_hands(tmp_path: Path, nodes: Nodes, undisturbed: Undisturbed) -> None:
    """At five random moments: twice a node, whose place another one takes, else its process alone."""
    nodes.have(2)
    shop, log, kills = Shop(tmp_path), tmp_path / "requests.jsonl", [True, False, False, True, False]
    with spawned("tests.workshop:ABILITIES", log, latency=0.1) as url:
        config = shop.write(on_cluster(url, nodes, NEEDS, workers=WORKERS))
        process = started("build", str(config), "--run", str(shop.run))
        for whole, _ in zip(kills, moments(log, process, undisturbed.calls, len(kills), seed=1), strict=True):
            if whole:
                nodes.kill()
                nodes.have(2)
            else:
                nodes.kill_process()
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert shop.files() == undisturbed.files
    asked = Counter(logged(log))
    assert len(asked) == undisturbed.calls
    spend = shop.read_json("spend.json")
    assert spend["calls"] == undisturbed.calls
    paid = undisturbed.calls + spend["unbooked"]["calls"]
    assert asked.total() <= paid <= undisturbed.calls + len(kills) * WORKERS


def test_a_head_that_dies_is_a_process_that_was_killed(tmp_path: Path, nodes: Nodes, undisturbed: Undisturbed) -> None:
    nodes.have(2)
    shop, log = Shop(tmp_path), tmp_path / "requests.jsonl"
    with spawned("tests.workshop:ABILITIES", log, latency=0.1) as url:
        config = shop.write(on_cluster(url, nodes, NEEDS, workers=WORKERS))
        process = started("build", str(config), "--run", str(shop.run))
        for _ in moments(log, process, undisturbed.calls, 1, seed=2):
            process.kill()
            process.communicate()
            process = started("resume", str(shop.run))
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert shop.files() == undisturbed.files
    asked = Counter(logged(log))
    assert len(asked) == undisturbed.calls
    assert asked.total() <= undisturbed.calls + WORKERS
