"""What a run's nodes do is told by a small file of the head: `status` and `view` show it, and no other file has it."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from stepdown.builder.cli.status import nodes_lines
from stepdown.builder.cluster import executor
from stepdown.builder.cluster.messages import NodeRequest
from stepdown.builder.run.nodes import FILE_NAME, STALE, NodeSeen, NodesSeen, read_nodes, write_nodes
from tests import workshop
from tests.cluster.here import DiesAt, Here, HereProcess, build_here
from tests.conftest import Shop, stepdown
from tests.provider import Provider
from tests.view.viewing import viewed

NEEDS = [[0, 1], [2, 0], [1]]
NODE = NodeSeen("10.0.0.2", "oak", True, ("workshop/job-0", "workshop/job-2"), 7, 1.25, ("/tmp/ray/logs/worker.err",))
GONE = NodeSeen("10.0.0.3", "ash", False, (), 1, 0.0, ())


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(executor, "LOOK", 0.05)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "node"))


class Watching:
    """Holds a build's first batch back until the file has been seen with an instance in hand."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self.seen: NodesSeen | None = None

    def __call__(self, process: HereProcess, asked: Sequence[NodeRequest]) -> None:
        with self._lock:
            while self.seen is None:
                found = read_nodes(self._folder)
                if found is not None and any(node.in_hand for node in found.nodes):
                    self.seen = found


def test_a_build_tells_what_each_node_has_in_hand(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    watching = Watching(shop.run)
    with Provider(workshop.ABILITIES) as provider:
        config = workshop.config(provider.url, NEEDS, operation={"workers": 3})
        build_here(Here(3, watching), config, shop.run)
        paid = provider.count()
    seen = watching.seen
    assert seen is not None
    assert seen.is_current
    in_hand = [name for node in seen.nodes for name in node.in_hand]
    assert sorted(in_hand) == sorted(set(in_hand)), "an instance is in one hand"
    assert set(in_hand) <= {f"workshop/job-{number}" for number in range(3)}
    assert all(log.startswith(f"/logs/{node.address}-") for node in seen.nodes for log in node.logs)

    ended = read_nodes(shop.run)
    assert ended is not None
    assert (ended.ended, ended.is_current) == (True, False)
    assert sum(node.calls for node in ended.nodes) == paid
    assert [node.in_hand for node in ended.nodes] == [(), (), ()]
    assert "nodes: none at work; the work ended at " in stepdown("status", str(shop.run)).out
    document = json.loads(stepdown("status", str(shop.run), "--json").out)
    assert len(document["nodes"]["nodes"]) == 3
    assert FILE_NAME not in shop.files()


def test_a_node_is_told_of_once_however_many_processes_died_there(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    with Provider(workshop.ABILITIES) as provider:
        config = workshop.config(provider.url, NEEDS, operation={"workers": 3})
        build_here(Here(1, DiesAt([3, 9])), config, shop.run)
        paid = provider.count()
    seen = read_nodes(shop.run)
    assert seen is not None
    (node,) = seen.nodes
    assert (node.is_open, node.logs) == (True, ("/logs/node-0-2",))
    assert 0 < node.calls <= paid, "calls that were under way on what died were not brought to the head"


def test_status_shows_nodes_that_are_at_work(tmp_path: Path) -> None:
    write_nodes(tmp_path, [NODE, GONE], ended=False)
    seen = read_nodes(tmp_path)
    assert seen is not None
    assert list(nodes_lines(seen)) == [
        "nodes: 1, 2 instances in hand, 1.2 calls/s",
        "  10.0.0.2 (oak): 7 calls, 1.2 calls/s, 2 in hand: workshop/job-0, workshop/job-2",
        "    log, on that machine: /tmp/ray/logs/worker.err",
        "  10.0.0.3 (ash): 1 call; gone",
    ]
    late = NodesSeen(seen.written - STALE, False, seen.nodes)
    assert not late.is_current
    assert next(nodes_lines(late)).startswith("nodes: none at work; their head was last heard of at ")


@pytest.mark.parametrize("text", ["", "[]", '{"written": 1, "ended": false, "nodes": [{}]}', "[" * 100_000])
def test_a_file_that_can_not_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    assert read_nodes(tmp_path) is None


def test_the_pages_show_nodes_while_they_work(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    with Provider(workshop.ABILITIES) as provider:
        assert shop.build(workshop.config(provider.url, [[0]])).code == 0
    with viewed(shop.run) as view:
        assert " at work, " not in view.text("")
        write_nodes(shop.run, [NODE, GONE], ended=False)
        page = view.get("")
        assert "1 node at work, 2 instances in hand, 1.2 calls/s" in view.text("")
        assert "10.0.0.3 (ash): gone" in view.text("")
        assert 'href="instance?id=workshop%2Fjob-0"' in page
        write_nodes(shop.run, [NODE], ended=True)
        assert " at work, " not in view.text("")
