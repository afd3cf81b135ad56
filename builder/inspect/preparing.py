"""The nodes of a cluster made ready for a config, one beside the other, and what each of them lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from stepdown.builder.cluster.choice import FIELD, connected
from stepdown.builder.cluster.nodes import Cluster, Machine, ProcessDied
from stepdown.builder.cluster.parcels import Fetch, parcels_of
from stepdown.builder.cluster.placement import required_of
from stepdown.builder.cluster.versions import refuse_other_code, refuse_other_measures
from stepdown.builder.cluster.worker import RunSetup
from stepdown.builder.config.loading import Config
from stepdown.builder.config.operation import ClusterConfig
from stepdown.builder.engine.label import label_instance
from stepdown.builder.engine.workloads import load_workload, node_needs_of, versions_of
from stepdown.builder.errors import BadInput, StepdownError
from stepdown.builder.inspect.doctor import Check
from stepdown.builder.run.ledger import RunVersions
from stepdown.harnesses.base import NodeNeeds


@dataclass(frozen=True, slots=True)
class PreparedNode:
    """A node, and how it stands with all that the config needs of it."""

    name: str
    """Its address, and the machine's own name."""
    is_used: bool
    """Whether instances are handed to it: it states the resources that they need."""
    checks: tuple[Check, ...]

    @property
    def is_ready(self) -> bool:
        """Whether it can work on instances."""
        return self.is_used and all(check.ok or not check.needed for check in self.checks)

    @property
    def state(self) -> str:
        """In a word or two."""
        return "ready" if self.is_ready else "not ready" if self.is_used else "left out"

    def to_json(self) -> dict[str, Any]:
        return {"node": self.name, "state": self.state, "checks": [asdict(check) for check in self.checks]}


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a node is asked to have."""

    setup: RunSetup
    fetch: Fetch
    versions: RunVersions
    needs: tuple[NodeNeeds, ...]
    """Of the config's workloads, in their order."""
    archives: Path | None


_Connected = Callable[[ClusterConfig, Mapping[str, float]], AbstractContextManager[Cluster]]


def prepare_nodes(
    config: Config, archives: Path | None = None, connect: _Connected = connected
) -> Iterator[PreparedNode]:
    """Make every node of the config's cluster ready, all at once; each is given when it is done.

    `archives` is a folder that the nodes see, with images as `docker save` writes them. Raises BadInput where the
    config names no cluster, or its cluster has no node.
    """
    if config.operation.executor is None:
        raise BadInput("the config names no cluster to prepare: `executor: {ray: auto}`", field=FIELD)
    workloads = [load_workload(config.protocol, index) for index in range(len(config.protocol.workloads))]
    needs = tuple(node_needs_of(index, workload) for index, workload in enumerate(workloads))
    # Nothing is taken of a node: a build may be working on it meanwhile.
    executor = config.operation.executor.model_copy(update={"resources": {}})
    required = {**required_of(workloads), **config.operation.executor.resources}
    with connect(executor, required) as cluster:
        machines = cluster.machines()
        if not machines:
            raise BadInput(
                "the cluster has no node to work on: `ray start --address HOST:PORT` adds a machine", field=FIELD
            )
        setup = RunSetup(config, tuple(parcels_of(config)), (), "prepare", label_instance)
        asked = _Asked(
            setup=setup,
            fetch=cluster.pack(setup.parcels),
            versions=versions_of(workloads, config.protocol),
            needs=needs,
            archives=archives.absolute() if archives is not None else None,
        )
        with ThreadPoolExecutor(len(machines)) as threads:
            looks = [threads.submit(partial(_prepared, cluster, machine, asked)) for machine in machines]
            for done in as_completed(looks):
                yield done.result()


def _prepared(cluster: Cluster, machine: Machine, asked: _Asked) -> PreparedNode:
    name = f"{machine.address} ({machine.name})"
    if machine.lacks:
        detail = f"it is not stated of the node, which must have {cluster.wanted}"
        return PreparedNode(name, False, tuple(Check(f"resource {one}", False, detail) for one in machine.lacks))
    return PreparedNode(name, True, tuple(_checks(cluster, machine, asked)))


def _checks(cluster: Cluster, machine: Machine, asked: _Asked) -> Iterator[Check]:
    part = "stepdown"
    try:
        process = cluster.start(machine.id)
        try:
            there = process.describe()
            refuse_other_code(process.address, there)
            yield Check(part, True, there.stepdown)
            part = "workloads"
            refuse_other_measures(process.address, asked.versions, process.begin(asked.setup, asked.fetch))
            yield Check(part, True, "as on this machine")
            for need in process.prepare(asked.needs, asked.archives):
                yield Check(need.part, need.there, need.detail, need.needed)
        finally:
            process.end()
    except StepdownError as error:
        yield Check(part, False, str(error))
    except ProcessDied as error:
        yield Check(part, False, f"the process died there: {error}")
