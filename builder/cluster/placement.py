"""Which nodes can work on a run: those that have what its workloads need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stepdown.builder.config.operation import ClusterConfig
from stepdown.builder.engine.workloads import LoadedWorkload, node_needs_of


def required_of(workloads: Sequence[LoadedWorkload]) -> dict[str, float]:
    """What a node must state of itself that instances of any of these workloads are handed to it. Raises BadInput.

    A process of stepdown takes none of it: what an instance takes of a machine, its own limits say.
    """
    required: dict[str, float] = {}
    for index, workload in enumerate(workloads):
        for name, amount in node_needs_of(index, workload).resources.items():
            required[name] = max(required.get(name, 0.0), amount)
    return required


def lacking(resources: Mapping[str, float], config: ClusterConfig, required: Mapping[str, float]) -> Iterator[str]:
    """What a node with these resources has not, or not enough of, to be worked on."""
    needed = {"CPU": 0.0, **required, **config.resources}
    return (name for name, amount in needed.items() if resources.get(name, 0.0) < max(amount, 1e-9))


def wanted(config: ClusterConfig, required: Mapping[str, float]) -> str:
    """What a node must have, in words, and how it is said of one."""
    resources = {**required, **config.resources}
    if not resources:
        return "CPUs (`ray start --address HOST:PORT` on a machine adds it)"
    shown = ", ".join(f'"{name}": {amount:g}' for name, amount in resources.items())
    return f"CPUs and {{{shown}}} (`ray start --resources '{{{shown}}}'` says it of one)"
