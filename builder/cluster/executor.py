"""Works on a run's instances with the nodes of a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from stepdown.builder.cluster.channel import Channel
from stepdown.builder.cluster.dispatch import Dispatch
from stepdown.builder.cluster.hands import Setup
from stepdown.builder.cluster.head import Head
from stepdown.builder.cluster.nodes import Cluster, Connect, NodeProcess, ProcessDied
from stepdown.builder.cluster.parcels import parcels_of
from stepdown.builder.cluster.placement import required_of
from stepdown.builder.cluster.telling import Teller
from stepdown.builder.cluster.versions import refuse_other_code, refuse_other_measures
from stepdown.builder.config.operation import ClusterConfig
from stepdown.builder.engine.context import Job
from stepdown.builder.engine.executor import RunHoldings, Task
from stepdown.builder.errors import BadInput, StepdownError

LOOK = 2.0
"""Seconds between two looks at which nodes there are."""


class OnCluster:
    """An executor. This process is the head: the ledger and all that the run has one of stay here."""

    def __init__(self, config: ClusterConfig, connect: Connect) -> None:
        self._config, self._connect = config, connect

    def work(self, jobs: Iterable[Job], do: Task, done: Callable[[Job], None], holdings: RunHoldings) -> None:
        """See `Executor`. Raises BadInput too where the cluster or a node of it can not be used."""
        config, origin = holdings.run.config, holdings.run.origin
        setup = Setup(
            config=config,
            parcels=tuple(parcels_of(config)),
            departed=origin.departed if origin else (),
            run=holdings.run.ledger.meta.run.id,
            task=do,
        )
        dispatch = Dispatch(jobs, holdings.workloads, done, holdings.stop, config.operation.workers)
        with self._connect(required_of(holdings.workloads)) as cluster:
            _Crew(cluster, self._config, holdings, dispatch, setup).work()
        dispatch.raise_first_error()


class _Crew:
    """The processes on the nodes, a channel to each, while they work."""

    def __init__(
        self, cluster: Cluster, config: ClusterConfig, holdings: RunHoldings, dispatch: Dispatch, setup: Setup
    ) -> None:
        self._cluster, self._config, self._holdings = cluster, config, holdings
        self._dispatch, self._setup = dispatch, setup
        self._head = Head(holdings, dispatch)
        self._fetch = cluster.pack(setup.parcels)
        self._teller = Teller(holdings.run.path, dispatch)
        self._channels: list[Channel] = []
        """All there ever were; those that are open are given work."""
        self._left_out: set[str] = set()
        """Nodes that can not be used."""
        self._has_told = False
        """Whether a person knows that no node is left."""

    def work(self) -> None:
        """Until nothing is left to hand out, or the run is to stop."""
        try:
            self._join(self._cluster.nodes(), refuse=True)
            if not self._channels:
                raise BadInput(f"no node of the cluster has {self._cluster.wanted}", field="operation.executor")
            self._wait()
        finally:
            self._end()

    def _join(self, nodes: Iterable[str], refuse: bool) -> None:
        """Start a process on each node that has none. A node that can not be used ends the run if it is to be refused;
        else it is told of, and left out.
        """
        known = {channel.node for channel in self._open} | self._left_out
        new = [node for node in nodes if node not in known]
        if not new:
            return
        with ThreadPoolExecutor(len(new)) as threads:
            started = list(threads.map(self._start, new))
        for node, process in zip(new, started, strict=True):
            if process is None:
                continue
            if not isinstance(process, StepdownError):
                channel = Channel(process, self._head, self._dispatch, self._room)
                self._channels.append(channel)
                channel.start()
            elif refuse:
                raise process
            else:
                self._left_out.add(node)
                self._holdings.progress.notify(f"left out: {process}")

    def _start(self, node: str) -> NodeProcess | StepdownError | None:
        """A process that is ready, or why the node can not be used; None where it is gone by now."""
        try:
            process = self._cluster.start(node)
            refuse_other_code(process.address, process.describe())
            refuse_other_measures(process.address, self._holdings.versions, process.begin(self._setup, self._fetch))
        except StepdownError as error:
            return error
        except ProcessDied:
            return None
        return process

    def _room(self) -> int:
        """How many instances a node may have in hand now."""
        if self._config.per_node is not None:
            return self._config.per_node
        return -(-self._holdings.run.config.operation.workers // max(1, len(self._open)))

    @property
    def _open(self) -> list[Channel]:
        return [channel for channel in self._channels if channel.is_open]

    def _wait(self) -> None:
        next_look = time.monotonic() + LOOK
        try:
            while not self._dispatch.is_over:
                with self._dispatch.changed:
                    self._dispatch.changed.wait(0.2)
                self._teller.note(self._channels)
                if self._holdings.stop.is_set():
                    self._stop()
                elif time.monotonic() >= next_look:
                    self._look_for_nodes()
                    next_look = time.monotonic() + LOOK
        except KeyboardInterrupt:
            self._holdings.stop.set()
            self._wait()
            raise

    def _look_for_nodes(self) -> None:
        """Start processes on nodes that have none: they are new, or the process that was there died."""
        self._join(self._cluster.nodes(), refuse=False)
        if not self._open and not self._has_told:
            self._holdings.progress.notify(
                f"no node of the cluster is left that has {self._cluster.wanted}: waiting for one"
            )
        self._has_told = not self._open

    def _stop(self) -> None:
        for channel in self._channels:
            channel.stop()

    def _end(self) -> None:
        if self._channels:
            self._teller.end(self._channels)
        for channel in self._channels:
            channel.end()
