"""Works on a run's instances with the nodes of a cluster."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from stepdown.builder.cluster.channel import Channel
from stepdown.builder.cluster.dispatch import Dispatch
from stepdown.builder.cluster.head import Head
from stepdown.builder.cluster.nodes import Cluster, Connect, NodeProcess, ProcessDied
from stepdown.builder.cluster.parcels import parcels_of
from stepdown.builder.cluster.placement import required_of
from stepdown.builder.cluster.status_file import StatusFile
from stepdown.builder.cluster.versions import refuse_other_code, refuse_other_measures
from stepdown.builder.cluster.worker import RunSetup
from stepdown.builder.config.operation import ClusterConfig
from stepdown.builder.engine.context import Job
from stepdown.builder.engine.executor import RunHoldings, Task
from stepdown.builder.errors import BadInput, StepdownError

LOOK = 2.0
"""Seconds between two looks at which nodes there are."""
MOST_IN_PROCESS = 32
"""Instances in the hands of one process: with more of them its interpreter would hold them up."""
_LINGER = 5.0
"""Seconds for what is being started when the work has ended."""
_FIELD = "operation.executor"


class OnCluster:
    """An executor. This process is the head: the ledger and all that the run has one of stay here."""

    where = "every node"

    def __init__(self, config: ClusterConfig, connect: Connect) -> None:
        self._config, self._connect = config, connect

    def work(self, jobs: Iterable[Job], do: Task, done: Callable[[Job], None], holdings: RunHoldings) -> None:
        """See `Executor`. Raises BadInput too where the cluster or a node of it can not be used."""
        config, origin = holdings.run.config, holdings.run.origin
        setup = RunSetup(
            config=config,
            parcels=tuple(parcels_of(config)),
            departed=origin.departed if origin else (),
            run=holdings.run.ledger.meta.run.id,
            task=do,
        )
        dispatch = Dispatch(jobs, holdings.workloads, done, holdings.stop, config.operation.workers)
        with self._connect(required_of(holdings.workloads)) as cluster:
            _NodeProcesses(cluster, self._config, holdings, dispatch, setup).work()
        dispatch.raise_first_error()


class _NodeProcesses:
    """The processes on the nodes, a channel to each, while they work."""

    def __init__(
        self, cluster: Cluster, config: ClusterConfig, holdings: RunHoldings, dispatch: Dispatch, setup: RunSetup
    ) -> None:
        self._cluster, self._config, self._holdings = cluster, config, holdings
        self._dispatch, self._setup = dispatch, setup
        self._head = Head(holdings, dispatch)
        self._status_file = StatusFile(holdings.run.path, dispatch)
        self._channels: list[Channel] = []
        """All there ever were; those that are open are given work."""
        self._left_out: set[str] = set()
        """Nodes that can not be used."""
        self._room = 1
        """How many instances a node may have in hand now."""
        self._ended = threading.Event()

    def work(self) -> None:
        """Until nothing is left to hand out, or the run is to stop."""
        watch = threading.Thread(target=self._watch, name="nodes", daemon=True)
        watch.start()
        try:
            self._wait()
        except KeyboardInterrupt:  # nobody handles the signal otherwise: what is in hand must not outlive the run
            self._holdings.stop.set()
            self._wait()
            raise
        finally:
            self._ended.set()
            watch.join(_LINGER)  # a node may take long to come to nothing
            if self._channels:
                self._end(self._channels)

    def _wait(self) -> None:
        """In short waits, so that a signal is handled while the nodes work."""
        while not self._dispatch.is_over:
            with self._dispatch.changed:
                self._dispatch.changed.wait(0.2)
            self._status_file.note(self._channels)
            if self._holdings.stop.is_set():
                for channel in self._open:
                    channel.stop()

    # Nodes come and go

    def _watch(self) -> None:
        """Start processes on nodes that lack some: nodes that are new, or where one died."""
        try:
            nodes = self._cluster.nodes()
            if not nodes:
                raise BadInput(f"no node of the cluster has {self._cluster.wanted}", field=_FIELD)
            self._join(nodes, refuse=True)
            if not self._channels and not self._holdings.stop.is_set():
                problem = f"no process could be started on any of {len(nodes)} nodes: others may use what they have"
                raise BadInput(problem, field=_FIELD)
            has_told = False
            while not self._ended.wait(LOOK):
                self._join(self._cluster.nodes(), refuse=False)
                if not self._open and not has_told:
                    line = f"no node of the cluster is left that has {self._cluster.wanted}: waiting for one"
                    self._holdings.progress.notify(line)
                has_told = not self._open
        except BaseException as error:
            if not self._ended.is_set():
                self._dispatch.fail(error)

    def _join(self, nodes: Mapping[str, int], refuse: bool) -> None:
        """Start what processes nodes lack; `nodes` says how many each has the resources for.

        A node that can not be used ends the run if it is to be refused; else it is told of, and left out.
        """
        usable = {node: most for node, most in nodes.items() if node not in self._left_out}
        self._room = self._config.per_node or -(-self._holdings.run.config.operation.workers // max(1, len(usable)))
        there = Counter(channel.node for channel in self._open)
        needed = -(-self._room // MOST_IN_PROCESS)
        new = [node for node, most in usable.items() for _ in range(min(most, needed) - there[node])]
        if not new or self._holdings.stop.is_set():
            return
        with ThreadPoolExecutor(len(new)) as threads:
            list(threads.map(partial(self._join_one, refuse=refuse), new))

    def _join_one(self, node: str, refuse: bool) -> None:
        """Start a process on a node, and give it work as soon as it is ready."""
        process = self._start(node)
        if isinstance(process, StepdownError):
            self._leave_out(node, process, refuse)
        elif process is not None and self._ended.is_set():
            process.end()
        elif process is not None:
            channel = Channel(process, self._head, self._dispatch, self._room_of_process)
            self._channels.append(channel)
            channel.start()

    def _leave_out(self, node: str, error: StepdownError, refuse: bool) -> None:
        if refuse:
            self._dispatch.fail(error)
        elif node not in self._left_out:
            self._holdings.progress.notify(f"left out: {error}")
        self._left_out.add(node)

    def _start(self, node: str) -> NodeProcess | StepdownError | None:
        """A process that is ready, or why the node can not be used; None where there is none by now."""
        process = self._cluster.start(node)
        try:
            refuse_other_code(process.address, process.describe())
            missing = process.missing(self._setup.parcels)
            fetch = self._cluster.pack(parcel for parcel in self._setup.parcels if parcel.digest in missing)
            refuse_other_measures(process.address, self._holdings.versions, process.begin(self._setup, fetch))
        except StepdownError as error:
            process.end()
            return error
        except ProcessDied:
            process.end()
            return None
        return process

    def _room_of_process(self, node: str) -> int:
        """How many instances each process on a node may have in hand now."""
        return -(-self._room // max(1, sum(channel.node == node for channel in self._open)))

    @property
    def _open(self) -> list[Channel]:
        return [channel for channel in self._channels if channel.is_open]

    def _end(self, channels: list[Channel]) -> None:
        self._status_file.end(channels)
        with ThreadPoolExecutor(len(channels)) as threads:
            list(threads.map(Channel.end, channels))
