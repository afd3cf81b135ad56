"""The quickstart on a cluster: each node runs the two small models itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepdown.builder.config.loading import config_of
from stepdown.builder.inspect.preparing import prepare_nodes
from stepdown.builder.run.nodes import read_nodes
from tests.cluster.nodes import Nodes
from tests.conftest import ROOT, Shop
from tests.test_quickstart import settings

pytestmark = [pytest.mark.local, pytest.mark.cluster]


def test_the_bytes_are_those_of_one_machine(tmp_path: Path, nodes: Nodes) -> None:
    nodes.have(2)
    shops = {}
    for name, executor in (("alone", None), ("cluster", {"ray": nodes.address, "per_node": 1})):
        shops[name] = Shop(tmp_path / name)
        shops[name].folder.mkdir()
        config = settings(workers=2)
        config["protocol"]["workloads"][0]["source"] = {"categories": {"simple_python": 2}}
        config["operation"]["executor"] = executor
        if executor is not None:
            prepared = list(prepare_nodes(config_of(config, ROOT)))
            assert [node.state for node in prepared] == ["ready"] * 2, prepared
        result = shops[name].build(config)
        assert result.code == 0, result.err
    assert shops["cluster"].files() == shops["alone"].files()
    seen = read_nodes(shops["cluster"].run)
    assert seen is not None
    assert all(node.calls > 0 for node in seen.nodes), "each node had an instance"
