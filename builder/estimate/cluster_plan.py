"""What a run takes on so many nodes: hours, node-hours, and disk for images. Pure arithmetic over an estimate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.estimate.arithmetic import Work
from stepdown.builder.estimate.pace import Pace
from stepdown.builder.estimate.run_estimate import CASES, CaseWork, RunEstimate, WorkloadAssumptions
from stepdown.builder.run.spent import Spent

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class ClusterSize:
    """The nodes that a plan is for."""

    nodes: int
    per_node: int
    """Instances in hand on each."""


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """One case of a plan."""

    spent: Spent
    hours: float
    node_hours: float
    calls_per_second: float
    """In the mean, over the whole cluster."""
    limited_by: str
    """The model whose own limit of requests takes longer than the nodes do; empty where none does."""


@dataclass(frozen=True, slots=True)
class ImagesOnNodes:
    """The container images that a workload's instances need."""

    benchmark: str
    images: int
    gib: float
    """Where a node has all of them."""
    share: int
    """Those of a node's share of the instances."""
    share_gib: float


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """A run on a cluster, in the three cases of its estimate. `in_hand` counts instances over all nodes."""

    nodes: int
    in_hand: int
    pace: Pace
    cases: Mapping[str, PlannedCase]
    images: tuple[ImagesOnNodes, ...]


def plan_cluster(
    estimate: RunEstimate, operation: OperationConfig, cluster: ClusterSize, pace: Pace, image_gib: float | None = None
) -> ClusterPlan:
    """What the estimate's three cases take on a cluster. `image_gib` takes the place of what workloads say of theirs.

    Whenever a place is free it takes the next instance. So the last one ends no later than all work divided by the
    places, and the longest instance on top of it (Graham's bound for list scheduling).
    """
    instances = sum(workload.instances for workload in estimate.workloads)
    in_hand = max(1, min(cluster.nodes * cluster.per_node, instances))
    cases = dict(_cases(estimate, operation, cluster, pace, in_hand))
    images = tuple(
        _images(workload, cluster.nodes, image_gib or workload.image_gib)
        for workload in estimate.workloads
        if workload.images
    )
    return ClusterPlan(cluster.nodes, in_hand, pace, cases, images)


def _images(workload: WorkloadAssumptions, nodes: int, gib: float) -> ImagesOnNodes:
    share = math.ceil(workload.images / nodes)
    return ImagesOnNodes(workload.benchmark, workload.images, workload.images * gib, share, share * gib)


def _cases(
    estimate: RunEstimate, operation: OperationConfig, cluster: ClusterSize, pace: Pace, in_hand: int
) -> Iterator[tuple[str, PlannedCase]]:
    for name, work in zip(CASES, estimate.work, strict=True):
        spent = {model.model: model.case(name) for model in estimate.models}
        seconds, limited_by = _seconds(work, pace, in_hand), ""
        for model, least in _least_seconds(spent, operation):
            if least > seconds:
                seconds, limited_by = least, model
        total, hours = sum(spent.values(), Spent()), seconds / HOUR
        yield (
            name,
            PlannedCase(total, hours, hours * cluster.nodes, total.calls / seconds if seconds else 0.0, limited_by),
        )


def _seconds(work: CaseWork, pace: Pace, in_hand: int) -> float:
    """With one place for each instance or one place in all, the two parts of the bound are one."""
    return _taken(work.total, pace) / in_hand + _taken(work.longest, pace) * (1 - 1 / in_hand)


def _taken(work: Work, pace: Pace) -> float:
    return work.calls * pace.call + work.executions * pace.execution


def _least_seconds(spent: Mapping[str, Spent], operation: OperationConfig) -> Iterator[tuple[str, float]]:
    """Of each model with a limit of requests: how long its calls take at the least, however many nodes there are."""
    for model, calls in spent.items():
        if (most := operation.endpoint(model).requests_per_minute) is not None:
            yield model, calls.calls * 60 / most
