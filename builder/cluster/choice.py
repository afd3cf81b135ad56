"""Which executor a config asks for."""

from __future__ import annotations

from functools import partial

from stepdown.builder.common.extras import require
from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.engine.executor import Executor, InThreads


def executor_of(operation: OperationConfig) -> Executor:
    """What works on a run's instances. Raises BadInput where a cluster is asked for and Ray is not installed."""
    if operation.executor is None:
        return InThreads()
    require("cluster", "ray", field="operation.executor")
    from stepdown.builder.cluster.executor import OnCluster
    from stepdown.builder.cluster.ray_cluster import RayCluster  # Ray is loaded by those who need it

    return OnCluster(operation.executor, partial(RayCluster, operation.executor))
