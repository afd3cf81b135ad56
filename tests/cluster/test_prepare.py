"""`stepdown cluster prepare`: every node is looked at, what is missing is fetched, and who lacks something is named."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.cluster.nodes import Cluster, Machine
from stepdown.builder.cluster.placement import lacking, wanted
from stepdown.builder.config.loading import config_of
from stepdown.builder.config.operation import ClusterConfig
from stepdown.builder.errors import BadInput
from stepdown.builder.inspect.preparing import PreparedNode, prepare_nodes
from tests import workshop
from tests.cluster.here import Here
from tests.cluster.nodes import Nodes
from tests.conftest import ROOT, Shop, stepdown

AUTO = {"ray": "auto"}
NOWHERE = "http://127.0.0.1:9/v1"


def kitchen(pantry: Path, executor: Mapping[str, Any] = AUTO, **options: Any) -> dict[str, Any]:
    made = workshop.config(NOWHERE, [[0]], options={"pantry": str(pantry), **options})
    made["protocol"]["workloads"][0]["harness"] = "tests.cluster.kitchens:Kitchen"
    made["operation"]["executor"] = dict(executor)
    return made


class Mixed(Here):
    """A cluster in which some nodes lack something."""

    def __init__(self, count: int, bare: Sequence[str]) -> None:
        super().__init__(count)
        self._bare = bare
        self.asked: list[tuple[ClusterConfig, Mapping[str, float]]] = []

    def machines(self) -> list[Machine]:
        return [Machine(node, node, "here", ("docker",) if node in self._bare else ()) for node in self.ids]

    def connect(self, config: ClusterConfig, required: Mapping[str, float]) -> AbstractContextManager[Cluster]:
        self.asked.append((config, required))
        return nullcontext(self)


def prepared(cluster: Mixed, config: Mapping[str, Any]) -> dict[str, PreparedNode]:
    return {node.name: node for node in prepare_nodes(config_of(config, ROOT), connect=cluster.connect)}


def said(node: PreparedNode) -> dict[str, str]:
    return {check.part: check.detail for check in node.checks}


@pytest.fixture(autouse=True)
def _a_nodes_own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "node"))


def test_what_is_missing_is_fetched_once(tmp_path: Path) -> None:
    cluster = Mixed(1, bare=())
    (first,) = prepared(cluster, kitchen(tmp_path)).values()
    assert first.is_ready, "what is not needed may be missing"
    assert said(first)["images"] == "2 fetched now"
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["bread", "salt"]
    (again,) = prepared(cluster, kitchen(tmp_path)).values()
    assert again.is_ready
    assert said(again)["images"] == "0 fetched now"


def test_a_node_that_does_not_state_what_is_needed_is_left_alone(tmp_path: Path) -> None:
    cluster = Mixed(2, bare=["node-1"])
    nodes = prepared(cluster, kitchen(tmp_path, {"ray": "auto", "resources": {"oven": 1}}))
    assert [node.state for node in nodes.values()].count("ready") == 1
    assert nodes["node-1 (here)"].state == "left out"
    assert [process.node for process in cluster.started] == ["node-0"]
    ((config, required),) = cluster.asked
    assert required == {"docker": 1, "oven": 1}
    assert config.resources == {}, "a build may be at work there: nothing is taken of the node"


@pytest.mark.parametrize(
    ("options", "part", "detail"),
    [
        ({"room": False}, "pantry", "it is full"),
        ({"broken": True}, "workload workshop", "it can not be made ready here: RuntimeError: the oven is cold"),
    ],
)
def test_a_node_that_can_not_do_the_work_is_not_ready(
    tmp_path: Path, options: dict[str, Any], part: str, detail: str
) -> None:
    (node,) = prepared(Mixed(1, bare=()), kitchen(tmp_path, **options)).values()
    assert node.state == "not ready"
    assert said(node)[part] == detail


def test_a_config_without_a_cluster_has_none_to_prepare(tmp_path: Path) -> None:
    config = kitchen(tmp_path)
    del config["operation"]["executor"]
    with pytest.raises(BadInput, match=r"operation\.executor: the config names no cluster"):
        list(prepare_nodes(config_of(config, ROOT)))


def test_a_node_lacks_what_it_states_too_little_of() -> None:
    config, required = ClusterConfig(ray="auto", resources={"disk": 2}), {"docker": 1.0}
    assert list(lacking({"CPU": 2, "docker": 1, "disk": 2}, config, required)) == []
    assert list(lacking({"CPU": 2, "docker": 1, "disk": 1}, config, required)) == ["disk"]
    assert list(lacking({}, config, required)) == ["CPU", "docker", "disk"]
    assert """ray start --resources '{"docker": 1, "disk": 2}'""" in wanted(config, required)


# The command, on a real cluster


@pytest.mark.cluster
def test_the_command_shows_every_node_in_one_table(tmp_path: Path, nodes: Nodes) -> None:
    nodes.have(2)
    shop = Shop(tmp_path)
    (tmp_path / "pantry").mkdir()
    path = shop.write(kitchen(tmp_path / "pantry", {"ray": nodes.address}))
    result = stepdown("cluster", "prepare", str(path))
    assert (result.code, result.err.count(": ready")) == (0, 2), result.err + result.out
    lines = result.out.splitlines()
    assert lines[1].split() == ["node", "state", "stepdown", "workloads", "pantry", "images", "spice"]
    assert [line.split()[-5:] for line in lines[2:4]] == [["ok", "ok", "ok", "ok", "missing"]] * 2
    assert result.out.count("lacks spice: a pinch would be nice") == 2

    path = shop.write(kitchen(tmp_path / "pantry", {"ray": nodes.address}, room=False))
    result = stepdown("cluster", "prepare", str(path), "--json")
    assert result.code == 2
    assert "stepdown: 2 of 2 nodes can not do the work: " in result.err
    document = json.loads(result.out)
    assert document["ok"] is False
    assert [node["state"] for node in document["nodes"]] == ["not ready"] * 2


@pytest.mark.cluster
def test_where_no_node_has_what_is_needed_nothing_is_begun(tmp_path: Path, nodes: Nodes) -> None:
    nodes.have(2)
    shop = Shop(tmp_path)
    config = kitchen(tmp_path, {"ray": nodes.address, "resources": {"oven": 1}})
    result = stepdown("cluster", "prepare", str(shop.write(config)))
    assert result.code == 2
    assert "lacks resource oven" in result.out
    assert result.err.splitlines()[-1] == "stepdown: no node of the cluster states what the workloads need"
    result = shop.build(config)
    assert result.code == 2
    assert "operation.executor: no node of the cluster has CPUs and {" in result.err
    assert """`ray start --resources '{"docker": 1, "oven": 1}'`""" in result.err
