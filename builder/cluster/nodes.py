"""What a cluster has to offer: nodes, and processes on them. `ray_cluster` is the one that Ray offers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from stepdown.builder.cluster.messages import Delivery, NodeRequest
from stepdown.builder.cluster.parcels import Fetch, Parcel
from stepdown.builder.cluster.versions import CodeVersion
from stepdown.builder.cluster.worker import RunSetup, WorkerPlace
from stepdown.builder.run.ledger import RunVersions
from stepdown.harnesses.base import Need, NodeNeeds


class Machine(NamedTuple):
    """A node of a cluster, as the cluster tells of it."""

    id: str
    address: str
    name: str
    """The machine's own."""
    lacks: tuple[str, ...]
    """Resources that a run needs of a node, and of which this one states none, or too little."""


class ProcessDied(Exception):
    """The process is gone, or its node is."""


class ProcessSilent(Exception):
    """Nothing is heard of the process. It may be cut off, and may still be heard of later."""


class NodeProcess(Protocol):
    """A process on a node, `NodeWorker`, as the head reaches it."""

    @property
    def node(self) -> str:
        """The node's id."""

    @property
    def name(self) -> str:
        """Its own: another process on the node has another one."""

    @property
    def address(self) -> str:
        """Names the node to a person."""

    @property
    def place(self) -> WorkerPlace:
        """Where it runs. After `begin`."""

    def describe(self) -> CodeVersion:
        """What is installed there. Raises BadInput where stepdown can not be loaded there, and ProcessDied."""

    def missing(self, parcels: Sequence[Parcel]) -> Collection[str]:
        """The digests of what is to be sent there. Raises ProcessDied."""

    def begin(self, setup: RunSetup, fetch: Fetch) -> RunVersions:
        """See `NodeWorker.begin`. Raises BadInput and ProcessDied."""

    def prepare(self, needs: Sequence[NodeNeeds], archives: Path | None) -> Sequence[Need]:
        """See `NodeWorker.prepare`. Raises ProcessDied."""

    def exchange(self, delivery: Delivery, patience: float) -> Sequence[NodeRequest]:
        """See `NodeWorker.exchange`. Raises ProcessDied or ProcessSilent."""

    def wait(self) -> Sequence[NodeRequest]:
        """What a process that was silent says after all. Raises ProcessDied."""

    def stop(self) -> None:
        """Have it begin no further step."""

    def end(self) -> None:
        """End it, whatever it is doing. It may be gone already."""


class Cluster(Protocol):
    """The nodes that have what is needed."""

    @property
    def wanted(self) -> str:
        """What a node must have to be worked on, in words."""

    def machines(self) -> Sequence[Machine]:
        """All nodes that are there now, but those that were started with no CPUs."""

    def nodes(self) -> Mapping[str, int]:
        """The ids of those that have what is needed, now, and how many processes each has the resources for in all."""

    def start(self, node: str) -> NodeProcess:
        """Start a process on a node."""

    def pack(self, parcels: Iterable[Parcel]) -> Fetch:
        """Make files ready to be fetched by nodes. Raises BadInput where one can not be read."""


class Connect(Protocol):
    """Connects to a cluster for as long as the context lasts. Raises BadInput where there is none."""

    def __call__(self, required: Mapping[str, float]) -> AbstractContextManager[Cluster]:
        """`required` is what nodes must state of themselves, beside what the config says."""
