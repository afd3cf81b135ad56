"""What work outside a build needs to ask models: cache, client and budget, opened together and kept to one folder."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stepdown.builder.cache.responses import Cache
from stepdown.builder.cache.store import DiskStore
from stepdown.builder.config.loading import Config
from stepdown.builder.engine.calls import Provider
from stepdown.builder.engine.progress import RunProgress
from stepdown.builder.engine.workloads import LoadedWorkload, give_folder
from stepdown.builder.errors import Interrupted
from stepdown.builder.models import Client
from stepdown.builder.run.budget import BudgetGuard
from stepdown.builder.run.spent import read_paid_file


@dataclass(frozen=True, slots=True)
class PaidWork:
    """Where answers come from, and what may be spent on them."""

    cache: Cache
    provider: Provider
    budget: BudgetGuard


@contextmanager
def open_paid_work(
    config: Config,
    folder: Path,
    run: str,
    workloads: list[LoadedWorkload],
    stop: threading.Event,
    progress: RunProgress,
) -> Iterator[PaidWork]:
    """Ask models as the config's `operation` says; what earlier processes of the folder have paid counts.

    `run` is who pays, in the cache's entries. `progress` is told of every call, of errors, and of what a person should
    know; where work is asked to stop before all of its `total` is done, that is raised at the end. Raises BudgetReached
    and Interrupted.
    """
    operation = config.operation
    cache_folder = operation.cache or folder / "cache"
    for workload in workloads:
        give_folder(workload, cache_folder / "workloads" / workload.harness.name)
        if started := workload.harness.runs_here:
            progress.notify(f"workload {workload.harness.name} runs on this machine, unconfined: {started}")
    if operation.executor is not None:
        progress.notify("this work is done on this machine: `operation.executor` is for builds")
    budget = BudgetGuard(operation.budget, read_paid_file(folder), folder, stop)
    cache = Cache(DiskStore(cache_folder), run)
    try:
        client = Client(
            config.protocol.models.values(),
            operation,
            stop,
            budget.check,
            on_error=progress.on_error,
            notify=lambda line: progress.notify(line),
        )
        with budget, client:
            yield PaidWork(cache, client, budget)
    except Interrupted:
        raise budget.stopped_by or Interrupted("stopped") from None
    finally:
        cache.close()
    if stop.is_set() and progress.instances < progress.total:
        raise budget.stopped_by or Interrupted("stopped")
