"""Ray: finds nodes, starts a process on each, carries what is said, and tells which of them died."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from stepdown.builder.cluster.messages import Delivery, NodeRequest
from stepdown.builder.cluster.nodes import Machine, ProcessDied, ProcessSilent
from stepdown.builder.cluster.parcels import Fetch, Parcel, packed
from stepdown.builder.cluster.placement import lacking, wanted
from stepdown.builder.cluster.versions import CodeVersion
from stepdown.builder.cluster.worker import BrokenOnNode, NodeWorker, RunSetup, WorkerPlace
from stepdown.builder.config.operation import ClusterConfig
from stepdown.builder.errors import BadInput, StepdownError
from stepdown.builder.run.ledger import RunVersions
from stepdown.harnesses.base import Need, NodeNeeds

FIELD = "operation.executor"
SILENCE = 30.0
"""Seconds. A process that is not heard of for so long is given up, though its node seems to be there."""
_IMPORT = re.compile("ImportError|ModuleNotFoundError|failed to import|AttributeError")
_ANY = 1024
_CONNECT = 10.0
_START = 60.0
"""Seconds for a process to start. Its node's resources may be in use by others."""
_END = 20.0
"""Seconds for a process to end its local servers."""
_OWN_NAMES = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
"""Resources that Ray has arguments of their own for."""


class RayProcess:
    """A process on a node: an actor."""

    def __init__(self, actor: Any, node: str, address: str, silence: float) -> None:
        self._actor, self._node, self.address, self._silence = actor, node, address, silence
        self._place = WorkerPlace("", "")
        self._outstanding: Any = None

    @property
    def node(self) -> str:
        return self._node

    @property
    def name(self) -> str:
        return str(self._actor._actor_id.hex())

    @property
    def place(self) -> WorkerPlace:
        return self._place

    def describe(self) -> CodeVersion:
        try:
            found: CodeVersion = ray.get(self._actor.describe.remote(), timeout=_START)
        except RayError as error:
            if _IMPORT.search(str(error)) is None:
                raise ProcessDied(f"{self.address}: {error}") from None
            reason = str(error).strip().splitlines()[-1]
            problem = f"node {self.address} can not load stepdown: {reason}"
            raise BadInput(problem, field=FIELD) from None
        return found

    def missing(self, parcels: Sequence[Parcel]) -> Collection[str]:
        try:
            found: list[str] = ray.get(self._actor.missing.remote(list(parcels)))
        except RayError as error:
            raise ProcessDied(f"{self.address}: {error}") from None
        return found

    def begin(self, setup: RunSetup, fetch: Fetch) -> RunVersions:
        """See `NodeWorker.begin`. Raises BadInput.

        Keys go along here and nowhere else: an argument of a method is neither logged nor kept by the cluster.
        """
        try:
            self._place = ray.get(self._actor.keep_log.remote())
            found: RunVersions = ray.get(self._actor.begin.remote(setup, _keys(setup), fetch))
        except RayTaskError as error:
            raise _cause(error) from None
        except RayError as error:
            raise ProcessDied(f"{self.address}: {error}") from None
        return found

    def prepare(self, needs: Sequence[NodeNeeds], archives: Path | None) -> Sequence[Need]:
        try:
            found: Sequence[Need] = ray.get(self._actor.prepare.remote(needs, archives))
        except RayTaskError as error:
            raise _cause(error) from None
        except RayError as error:
            raise ProcessDied(f"{self.address}: {error}") from None
        return found

    def exchange(self, delivery: Delivery, patience: float) -> Sequence[NodeRequest]:
        self._outstanding = self._actor.exchange.remote(delivery, patience)
        return self._taken(patience + self._silence)

    def wait(self) -> Sequence[NodeRequest]:
        return self._taken(None)

    def _taken(self, timeout: float | None) -> Sequence[NodeRequest]:
        try:
            asked: Sequence[NodeRequest] = ray.get(self._outstanding, timeout=timeout)
        except GetTimeoutError:
            raise ProcessSilent(self.address) from None
        except RayTaskError as error:
            raise _cause(error) from None
        except RayError as error:
            raise ProcessDied(f"{self.address}: {error}") from None
        return asked

    def stop(self) -> None:
        self._actor.stop.remote()

    def end(self) -> None:
        with suppress(RayError):  # it has ended already, or does not end by itself
            ray.get(self._actor.close.remote(), timeout=_END)
        ray.kill(self._actor)


def _cause(error: RayTaskError) -> BaseException:
    """What a process raised, as it was raised there."""
    return error.cause if isinstance(error.cause, StepdownError) else BrokenOnNode(str(error))


class _Packed:
    """What nodes may need of the config's files, in Ray's object store."""

    def __init__(self, objects: Mapping[str, Any]) -> None:
        self._objects = objects

    def fetch(self, digest: str) -> bytes:
        """What was packed under a digest, on whichever node this is called."""
        found: bytes = ray.get(self._objects[digest])
        return found


def _keys(setup: RunSetup) -> dict[str, str]:
    """The values of the key variables that the config names."""
    names = {endpoint.api_key for endpoint in setup.config.operation.endpoints.values()}
    return {name: value for name in names if name and (value := os.environ.get(name))}


class RayCluster:
    """A connection to a cluster. A context manager. Raises BadInput where there is none."""

    def __init__(
        self, config: ClusterConfig, required: Mapping[str, float] | None = None, silence: float = SILENCE
    ) -> None:
        """`required` is what nodes must state of themselves beside the config's resources; nothing of it is taken."""
        self._config, self._required, self._silence = config, required or {}, silence
        self._is_ours = False
        self._packing = threading.Lock()
        self._objects: dict[str, Any] = {}
        """What was packed, by digest."""

    def __enter__(self) -> RayCluster:
        if not ray.is_initialized():
            _connect(self._config.ray)
            self._is_ours = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_ours:
            ray.shutdown()

    @property
    def wanted(self) -> str:
        """What a node must have, in words."""
        return wanted(self._config, self._required)

    def machines(self) -> list[Machine]:
        """All nodes that are there but those that were started with no CPUs, in a fixed order."""
        return sorted(self._machines(), key=lambda machine: (machine.address, machine.id))

    def _machines(self) -> Iterator[Machine]:
        for node in ray.nodes():
            lacks = tuple(lacking(node["Resources"], self._config, self._required))
            if node["Alive"] and "CPU" not in lacks:
                yield Machine(node["NodeID"], node["NodeManagerAddress"], node["NodeManagerHostname"], lacks)

    def nodes(self) -> Mapping[str, int]:
        """The nodes that have what is needed, in a fixed order."""
        usable = {machine.id for machine in self._machines() if not machine.lacks}
        resources = {node["NodeID"]: node["Resources"] for node in ray.nodes()}
        return {
            node: _most_processes(resources[node], self._config.resources) for node in sorted(usable & set(resources))
        }

    def pack(self, parcels: Iterable[Parcel]) -> Fetch:
        """Files for the nodes, sent once to each that needs them. Raises BadInput where one can not be read."""
        return _Packed({parcel.digest: self._put(parcel) for parcel in parcels}).fetch

    def _put(self, parcel: Parcel) -> Any:
        with self._packing:
            if parcel.digest not in self._objects:
                try:
                    self._objects[parcel.digest] = ray.put(packed(parcel))
                except OSError as error:
                    raise BadInput(f"it can not be sent to the nodes: {error.strerror}", file=parcel.path) from None
            return self._objects[parcel.digest]

    def start(self, node: str) -> RayProcess:
        """Start a process on a node."""
        address = next((one["NodeManagerAddress"] for one in ray.nodes() if one["NodeID"] == node), node)
        named = {_OWN_NAMES[name]: amount for name, amount in self._config.resources.items() if name in _OWN_NAMES}
        others = {name: amount for name, amount in self._config.resources.items() if name not in _OWN_NAMES}
        options = {
            "num_cpus": 0,  # it waits for models nearly all of the time
            **named,
            "resources": others,
            "max_concurrency": 4,  # an exchange, and beside it `stop` and `close`
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
        }
        return RayProcess(ray.remote(NodeWorker).options(**options).remote(), node, address, self._silence)


def _most_processes(resources: Mapping[str, float], taken: Mapping[str, float]) -> int:
    """How many processes a node has the resources for that each of them takes."""
    return min((int(resources.get(name, 0.0) // amount) for name, amount in taken.items()), default=_ANY)


def _connect(address: str) -> None:
    if address != "auto":
        _refuse_unreachable(address)
    try:
        with _own_signal_handlers():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        start = "`ray start --head` on this machine starts one" if address == "auto" else "this machine must be a node"
        raise BadInput(f"no Ray cluster can be used at {address!r}: {reason} ({start})", field=FIELD) from None


def _refuse_unreachable(address: str) -> None:
    """Ray itself would try for a minute and more."""
    host, _, port = address.rpartition(":")
    try:
        if not host or not port.isdecimal():
            raise BadInput(f"{address!r} is no address: `auto` or HOST:PORT", field=f"{FIELD}.ray")
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT).close()
    except (OSError, OverflowError) as error:
        raise BadInput(f"no Ray cluster answers at {address}: {error}", field=f"{FIELD}.ray") from None


@contextmanager
def _own_signal_handlers() -> Iterator[None]:
    """Ray puts its own in place when it connects: then the program's would not be called any more."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
