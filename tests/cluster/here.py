"""A cluster whose processes are all in this one: what is said between head and nodes is real, what carries it is not.

So a process can die, or be cut off, at the very message that a test is about. Whatever passes is pickled, as Ray does.
"""

from __future__ import annotations

import itertools
import pickle
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from stepdown.builder.artifacts.writing import write_artifacts
from stepdown.builder.cluster.executor import OnCluster
from stepdown.builder.cluster.messages import Delivery, NodeRequest
from stepdown.builder.cluster.nodes import Machine, ProcessDied, ProcessSilent
from stepdown.builder.cluster.parcels import Fetch, Parcel, packed
from stepdown.builder.cluster.versions import CodeVersion
from stepdown.builder.cluster.worker import NodeWorker, RunSetup, WorkerPlace
from stepdown.builder.config.loading import config_of
from stepdown.builder.config.operation import ClusterConfig
from stepdown.builder.engine.build import Build
from stepdown.builder.run.folder import open_for_work
from stepdown.builder.run.ledger import RunVersions
from stepdown.harnesses.base import Need, NodeNeeds
from tests.conftest import ROOT

Fate = Callable[["HereProcess", Sequence[NodeRequest]], None]
"""Sees every batch before the head does. Raises ProcessDied or ProcessSilent where the head is not to see it."""


def _travelled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


class HereProcess:
    """One process of a cluster that is here."""

    def __init__(self, node: str, number: int, fate: Fate) -> None:
        self.node, self.name, self.address = node, f"{node}-{number}", node
        self.worker, self._fate = NodeWorker(), fate
        self.keys: dict[str, str] = {}
        self._late: Sequence[NodeRequest] = ()
        self.heard_again = threading.Event()
        """Set once a process that was cut off is heard of again."""

    @property
    def place(self) -> WorkerPlace:
        return WorkerPlace(self.node, f"/logs/{self.name}")

    def prepare(self, needs: Sequence[NodeNeeds], archives: Path | None) -> Sequence[Need]:
        return self.worker.prepare(needs, archives)

    def describe(self) -> CodeVersion:
        return self.worker.describe()

    def missing(self, parcels: Sequence[Parcel]) -> list[str]:
        return self.worker.missing(parcels)

    def begin(self, setup: RunSetup, fetch: Fetch) -> RunVersions:
        return self.worker.begin(_travelled(setup), self.keys, fetch)

    def exchange(self, delivery: Delivery, patience: float) -> Sequence[NodeRequest]:
        asked: Sequence[NodeRequest] = _travelled(self.worker.exchange(_travelled(delivery), patience))
        try:
            self._fate(self, asked)
        except ProcessSilent:
            self._late = asked
            raise
        return asked

    def wait(self) -> Sequence[NodeRequest]:
        self.heard_again.wait()
        return self._late

    def stop(self) -> None:
        self.worker.stop()

    def end(self) -> None:
        self.heard_again.set()
        self.worker.close()


class Here:
    """A cluster of so many nodes. Where a process died, the node is there again at once."""

    def __init__(self, count: int, fate: Fate = lambda process, asked: None) -> None:
        self.ids = [f"node-{number}" for number in range(count)]
        self._fate, self._numbers = fate, itertools.count()
        self.started: list[HereProcess] = []

    wanted = "CPUs"

    def machines(self) -> Sequence[Machine]:
        return [Machine(node, node, "here", ()) for node in self.ids]

    def nodes(self) -> Mapping[str, int]:
        return dict.fromkeys(self.ids, 4)

    def start(self, node: str) -> HereProcess:
        process = HereProcess(node, next(self._numbers), self._fate)
        self.started.append(process)
        return process

    def pack(self, parcels: Iterable[Parcel]) -> Fetch:
        contents = {parcel.digest: packed(parcel) for parcel in parcels}
        return contents.__getitem__


def build_here(cluster: Here, config: dict[str, Any], folder: Path) -> Build:
    """Build into a run's folder, as far as it goes: raises what ends it early. Its files are written either way."""
    with open_for_work(folder, config_of(config, ROOT)) as run:
        executor = OnCluster(ClusterConfig(ray="auto"), lambda required: nullcontext(cluster))
        build = Build(run, threading.Event(), executor)
        build.admit()
        try:
            build.execute()
        finally:
            write_artifacts(run, build.multi_step)
        return build


class DiesAt:
    """Processes die when so many batches with requests have been fetched in all."""

    def __init__(self, moments: Iterable[int]) -> None:
        self._moments, self._seen, self._lock = set(moments), 0, threading.Lock()
        self.deaths = 0

    def __call__(self, process: HereProcess, asked: Sequence[NodeRequest]) -> None:
        with self._lock:
            self._seen += bool(asked)
            if asked and self._seen in self._moments:
                self.deaths += 1
                raise ProcessDied(process.name)
