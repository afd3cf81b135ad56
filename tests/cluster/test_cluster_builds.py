"""A build on a cluster has the bytes of a build in one process, however many nodes there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workshop
from tests.cluster.nodes import Nodes, on_cluster
from tests.conftest import Shop
from tests.provider import Provider

pytestmark = pytest.mark.cluster

NEEDS = [[0, 1, 2, 0], [2, 0, 1], [1, 1], [0, 0, 0, 0, 2], [2, 2], [0, 1, 0]]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], int]:
    """The files of a run in one process, and how many calls it took."""
    shop = Shop(tmp_path_factory.mktemp("undisturbed"))
    with Provider(workshop.ABILITIES) as provider:
        assert shop.build(workshop.config(provider.url, NEEDS)).code == 0
        return shop.files(), provider.count()


@pytest.mark.parametrize("count", [1, 4])  # two: test_cluster_faults
def test_the_bytes_do_not_depend_on_the_number_of_nodes(
    tmp_path: Path, nodes: Nodes, undisturbed: tuple[dict[str, bytes], int], count: int
) -> None:
    nodes.have(count)
    shop = Shop(tmp_path)
    with Provider(workshop.ABILITIES, latency=0.01) as provider:
        result = shop.build(on_cluster(provider.url, nodes, NEEDS))
        assert result.code == 0, result.err
        assert provider.repeated() == []
        assert provider.count() == undisturbed[1]
    assert shop.files() == undisturbed[0]
    assert shop.read_json("spend.json")["calls"] == undisturbed[1]
