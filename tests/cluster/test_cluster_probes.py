"""Probes of labelled steps on a cluster: the grid has the bytes that it has in one process, for as many calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.artifacts.names import PROBES
from tests import workshop
from tests.cluster.nodes import Nodes
from tests.conftest import Shop
from tests.provider import Provider

pytestmark = pytest.mark.cluster


def test_the_grid_of_a_cluster_is_that_of_one_process(tmp_path: Path, nodes: Nodes) -> None:
    def built(name: str, **operation: Any) -> tuple[bytes, bytes, int]:
        shop = Shop(tmp_path)
        shop.run = tmp_path / name
        with Provider(workshop.ABILITIES) as provider:
            settings = workshop.config(
                provider.url, [[0, 1, 2], [1], [0, 0]], protocol={"rules": {"probe": "all"}}, operation=operation
            )
            result = shop.build(settings)
            assert result.code == 0, result.err
            grid, manifest = ((shop.run / file).read_bytes() for file in (PROBES, "manifest.json"))
            return grid, manifest, provider.count()

    nodes.have(1)
    assert built("cluster", executor={"ray": nodes.address}, workers=4) == built("alone")
