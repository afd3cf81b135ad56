"""What head and nodes say to each other: equal files, one budget, one set of limits, no late word."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.cluster import executor
from stepdown.builder.cluster.messages import KeepAnswer, LedgerCall, NodeRequest, WriteTrial
from stepdown.builder.cluster.nodes import ProcessDied, ProcessSilent
from stepdown.builder.errors import BadInput, BudgetReached, RunStopped
from tests import workshop
from tests.cluster.here import DiesAt, Here, HereProcess, build_here
from tests.conftest import Shop, stepdown
from tests.provider import FAULTS, Answer, Provider

NEEDS = [[0, 1, 2, 0], [2, 0, 1], [1, 1], [0, 0, 0, 0, 2], [2, 2], [0, 1, 0]]
WORKERS = 6


@pytest.fixture(autouse=True)
def _nodes_are_looked_for_often(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(executor, "LOOK", 0.05)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "node"))


def settings(url: str, protocol: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    operation = {"workers": WORKERS, **changed.pop("operation", {})}
    return workshop.config(url, NEEDS, protocol=protocol, operation=operation, **changed)


ADVISER = {"name": "adviser", "model": "openai/adviser"}
ABILITIES = {**workshop.ABILITIES, "adviser": lambda request: Answer('{"tier": "mid"}')}
TWO_OF_LOW = {"low": ["novice", "apprentice"], "mid": ["hand"], "high": ["master"]}


def asked_of(provider: Provider) -> Counter[tuple[str, str]]:
    """How often a provider was asked each question."""
    return Counter((seen.model, seen.digest) for seen in provider.requests)


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "volatile text": {"options": {"volatile": True}},
    "no checkpoints": {"options": {"checkpoints": False, "early": True}},
    "hints of a model": {"protocol": {"hints": {"source": "model", "model": ADVISER}}},
    "fresh draws": {"protocol": {"rules": {"confirm": 2, "control": 1, "acceptance": {"passes": 1, "of": 2}}}},
    "a tier at once": {"protocol": {"rules": {"cascade_parallel": True}}},
}


@pytest.mark.parametrize("case", CASES)
def test_files_and_calls_are_those_of_one_process(tmp_path: Path, case: str) -> None:
    alone = Shop(tmp_path / "alone")
    alone.folder.mkdir()
    with Provider(ABILITIES) as provider:
        assert alone.build(settings(provider.url, **CASES[case])).code == 0
        calls = asked_of(provider)
    shop = Shop(tmp_path)
    with Provider(ABILITIES) as provider:
        build = build_here(Here(3), settings(provider.url, **CASES[case]), shop.run)
        assert asked_of(provider).total() == calls.total()
        if case != "volatile text":
            assert asked_of(provider) == calls
    assert shop.labels() == alone.labels()
    if case != "volatile text":  # which is another text at each run
        assert shop.files() == alone.files()
    assert build.progress.calls == calls.total()
    assert build.progress.instances == len(NEEDS)
    assert shop.read_json("spend.json") == alone.read_json("spend.json")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], int]:
    shop = Shop(tmp_path_factory.mktemp("undisturbed"))
    with Provider(ABILITIES) as provider:
        assert shop.build(settings(provider.url)).code == 0
        return shop.files(), provider.count()


@pytest.mark.parametrize("seed", range(4))
def test_a_process_that_dies_costs_what_it_had_in_hand(
    tmp_path: Path, undisturbed: tuple[dict[str, bytes], int], seed: int
) -> None:
    files, calls = undisturbed
    fate = DiesAt(random.Random(seed).sample(range(1, calls), 5))
    shop = Shop(tmp_path)
    with Provider(ABILITIES) as provider:
        build = build_here(Here(2, fate), settings(provider.url), shop.run)
        asked = asked_of(provider)
    assert fate.deaths == 5
    assert (build.progress.steps, build.progress.instances) == (sum(map(len, NEEDS)), len(NEEDS))
    assert shop.files() == files
    assert len(asked) == calls
    spend = shop.read_json("spend.json")
    assert spend["calls"] == calls
    paid = calls + spend["unbooked"]["calls"]
    assert asked.total() <= paid <= calls + fate.deaths * WORKERS


def test_a_budget_of_calls_is_not_exceeded_though_processes_die(tmp_path: Path) -> None:
    """What a dead process had in hand counts as paid: it may have been."""
    fate = DiesAt([5, 9, 14])
    shop = Shop(tmp_path)
    with Provider(ABILITIES) as provider:
        limited = settings(provider.url, operation={"budget": {"calls": 25}})
        with pytest.raises(BudgetReached):
            build_here(Here(2, fate), limited, shop.run)
        assert fate.deaths == 3
        assert provider.count() <= 25
    assert shop.read_json("paid.json")["calls"] == 25


def test_all_processes_keep_to_one_limit_of_calls_at_once(
    tmp_path: Path, undisturbed: tuple[dict[str, bytes], int]
) -> None:
    shop = Shop(tmp_path)
    with Provider(ABILITIES, latency=0.01) as provider:
        endpoint = {"api_base": provider.url, "timeout": 5, "concurrency": 2}
        build_here(Here(3), settings(provider.url, operation={"endpoints": {"default": endpoint}}), shop.run)
        assert max(provider.most_at_once.values()) == 2
    assert shop.files() == undisturbed[0]


class CutOff:
    """The first process that has something of a kind to say is cut off when it says it, and heard of again later."""

    def __init__(self, kind: type) -> None:
        self._kind, self.process, self._lock = kind, None, threading.Lock()  # type: tuple[Any, Any, Any]

    def __call__(self, process: HereProcess, asked: Sequence[NodeRequest]) -> None:
        with self._lock:
            if self.process is None and any(isinstance(one.request, self._kind) for one in asked):
                self.process = process
                threading.Timer(0.3, process.heard_again.set).start()
                raise ProcessSilent(process.name)


@pytest.mark.parametrize("kind", [KeepAnswer, WriteTrial])
def test_a_process_that_was_cut_off_can_not_write_late(
    tmp_path: Path, undisturbed: tuple[dict[str, bytes], int], kind: type
) -> None:
    files, calls = undisturbed
    fate, shop = CutOff(kind), Shop(tmp_path)
    with Provider(ABILITIES, latency=0.02) as provider:
        build_here(Here(2, fate), settings(provider.url), shop.run)
        asked = asked_of(provider)
    assert fate.process is not None
    assert shop.files() == files
    assert len(asked) == calls
    assert asked.total() <= calls + WORKERS


def test_a_node_with_many_instances_in_hand_has_several_processes(
    tmp_path: Path, undisturbed: tuple[dict[str, bytes], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "MOST_IN_PROCESS", 2)
    shop, one_node = Shop(tmp_path), Here(1)
    with Provider(ABILITIES) as provider:
        build_here(one_node, settings(provider.url), shop.run)
    assert len(one_node.started) == WORKERS / 2
    assert shop.files() == undisturbed[0]


def test_what_a_provider_refuses_ends_the_run(tmp_path: Path) -> None:
    abilities = {**ABILITIES, "hand": lambda request: FAULTS["unauthorized"]}
    with Provider(abilities) as provider, pytest.raises(RunStopped, match="hand"):
        build_here(Here(2), settings(provider.url), tmp_path / "run")


def test_a_node_with_other_code_is_refused_by_name(tmp_path: Path) -> None:
    class Other(Here):
        def start(self, node: str) -> HereProcess:
            process = super().start(node)
            if node == "node-1":
                here = process.describe()
                process.describe = lambda: here._replace(stepdown="0.0.1")  # type: ignore[method-assign]
            return process

    with pytest.raises(BadInput, match=r"node node-1 .*has stepdown 0\.0\.1"):
        build_here(Other(2), settings("http://127.0.0.1:9/v1"), tmp_path / "run")


def test_an_instance_that_processes_die_of_is_blocked_and_no_other_is(tmp_path: Path) -> None:
    """Whoever begins with it dies at once, with all that it has in hand beside it."""
    deadly = 3

    def fate(process: HereProcess, asked: Sequence[NodeRequest]) -> None:
        if any(one.request == LedgerCall("trials", (deadly,)) for one in asked):
            raise ProcessDied(process.name)

    shop = Shop(tmp_path)
    with Provider(ABILITIES) as provider:
        build = build_here(Here(2, fate), settings(provider.url), shop.run)
        assert (build.progress.instances, build.progress.blocked) == (len(NEEDS), 1)
        assert "5 processes in a row died with it in hand" in stepdown("status", str(shop.run)).out
        assert len(shop.labels()) == len(NEEDS) - 1
        assert shop.resume().code == 0
    assert len(shop.labels()) == len(NEEDS)
