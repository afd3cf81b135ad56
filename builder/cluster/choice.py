"""Which executor a config asks for, and how its cluster is reached."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

from stepdown.builder.common.extras import require
from stepdown.builder.config.operation import ClusterConfig, OperationConfig
from stepdown.builder.engine.executor import Executor, InThreads

if TYPE_CHECKING:
    from stepdown.builder.cluster.nodes import Cluster

FIELD = "operation.executor"


def executor_of(operation: OperationConfig) -> Executor:
    """What works on a run's instances. Raises BadInput where a cluster is asked for and Ray is not installed."""
    if operation.executor is None:
        return InThreads()
    require("cluster", "ray", field=FIELD)
    from stepdown.builder.cluster.executor import OnCluster

    return OnCluster(operation.executor, partial(connected, operation.executor))


def connected(config: ClusterConfig, required: Mapping[str, float]) -> AbstractContextManager[Cluster]:
    """A connection to the cluster of a config. Raises BadInput where Ray is not installed."""
    require("cluster", "ray", field=FIELD)
    from stepdown.builder.cluster.ray_cluster import RayCluster  # Ray is loaded by those who need it

    return RayCluster(config, required)
