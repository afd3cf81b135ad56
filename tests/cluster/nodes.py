"""A Ray cluster of several nodes on this machine, on loopback only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conftest import ROOT

_ENVIRONMENT = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # nodes are at 127.0.0.1, also for those who look for them
    "RAY_USAGE_STATS_ENABLED": "0",
    "PYTHONPATH": str(ROOT),  # nodes load this checkout
}
_NODE: dict[str, Any] = {
    "node_ip_address": "127.0.0.1",
    "object_store_memory": 80 * 1024 * 1024,
    "include_dashboard": False,
}


class Nodes:
    """The cluster. Its head, where commands run, has no CPUs, so any other node can be killed."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.workers: list[Any] = []

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def have(self, count: int) -> None:
        """Start or remove nodes until there are so many to work on."""
        while len(self.workers) < count:
            self.workers.append(self._cluster.add_node(num_cpus=2, **_NODE))
        while len(self.workers) > count:
            self.kill()

    def kill(self) -> None:
        """End a node's processes at once, as if its machine were gone."""
        self._cluster.remove_node(self.workers.pop(0), allow_graceful=False)


@contextmanager
def cluster() -> Iterator[Nodes]:
    """A cluster without nodes to work on, until some are asked for."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _ENVIRONMENT.items():
            patch.setenv(name, value)
        from ray.cluster_utils import Cluster

        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **_NODE})
        try:
            yield Nodes(made)
        finally:
            made.shutdown()
