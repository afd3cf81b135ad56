"""A Ray cluster of several nodes on this machine, on loopback only."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import workshop
from tests.conftest import ROOT

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "PYTHONPATH": str(ROOT),  # nodes load this checkout
}
_NODE: dict[str, Any] = {
    "node_ip_address": "127.0.0.1",
    "object_store_memory": 80 * 1024 * 1024,
    "include_dashboard": False,
}
STATED = {"docker": 1}
"""What nodes to work on state of themselves; whether a daemon answers is for the tests to know that need one."""


class Nodes:
    """The cluster. Its head, where commands run, has no CPUs, so any other node can be killed."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.workers: list[Any] = []

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def head_processes(self) -> list[int]:
        """Of what Ray has on the head's node: the cluster's store of who is where, and that node's own."""
        kinds = self._cluster.head_node.all_processes.values()
        return [info.process.pid for infos in kinds for info in infos]

    def have(self, count: int) -> None:
        """Start or remove nodes until there are so many to work on."""
        while len(self.workers) < count:
            self.workers.append(self._cluster.add_node(num_cpus=2, resources=STATED, **_NODE))
        while len(self.workers) > count:
            self.kill()
        self._cluster.wait_for_nodes(timeout=120)  # until Ray has noticed of all that were killed, too

    def kill_process(self) -> None:
        """End the process of stepdown on a node, where there is one; the node stays."""
        for node in self.workers:
            (raylet,) = node.all_processes["raylet"]
            if found := [pid for pid in _children(raylet.process.pid) if "ray::NodeWorker" in _command(pid)]:
                os.kill(found[0], signal.SIGKILL)
                return

    def kill(self) -> None:
        """End a node's processes at once, as if its machine were gone."""
        self._cluster.remove_node(self.workers.pop(0), allow_graceful=False)


def _children(parent: int) -> list[int]:
    tasks = Path(f"/proc/{parent}/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def on_cluster(url: str, nodes: Nodes, needs: Sequence[Sequence[int]], **operation: Any) -> dict[str, Any]:
    """A config for the workshop's workload, worked on by the nodes."""
    executor = {"executor": {"ray": nodes.address}, "workers": 6}
    return workshop.config(url, needs, operation={**executor, **operation})


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
