"""A live run: every task under every policy, in a folder that a later start goes on from."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from stepdown.builder.config.loading import Config
from stepdown.builder.digests import digest
from stepdown.builder.engine.paid_work import open_paid_work
from stepdown.builder.engine.progress import RunProgress
from stepdown.builder.engine.workers import Threads
from stepdown.builder.engine.workloads import LoadedWorkload, load_workload, select_instances
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Instance, Verdict
from stepdown.routing.live.driving import Apparatus, Driver, LiveSettings
from stepdown.routing.live.records import TaskState
from stepdown.routing.live.store import LiveStore
from stepdown.routing.policies.contract import Policy


def run_live(
    config: Config,
    policies: Sequence[Policy],
    folder: Path,
    settings: LiveSettings,
    stop: threading.Event,
    progress: RunProgress,
) -> int:
    """Execute every task of the config under every policy; how many are technical, and left to be executed again.

    Raises BadInput: the folder was begun otherwise, or is in use; RunStopped, BudgetReached and Interrupted as a build
    does. What was made stands in the folder, and the same call goes on from there.
    """
    _refuse_namesakes(policies)
    with LiveStore.open_for_work(folder) as store:
        store.keep_settings(
            {
                "protocol": digest(config.protocol.model_dump(mode="json")),
                "policies": {policy.name: policy.version for policy in policies},
                "live": asdict(settings),
            }
        )
        workloads = [load_workload(config.protocol, index) for index in range(len(config.protocol.workloads))]
        tasks = [task for task in _tasks(workloads, policies) if not _is_done(store, *task[:2])]
        progress.total = len(tasks)
        _work(config, folder, settings, store, tasks, stop, progress)
        return sum(task.state is TaskState.TECHNICAL for task in store.tasks())


_Task = tuple[Policy, Instance, LoadedWorkload]


def _tasks(workloads: Sequence[LoadedWorkload], policies: Sequence[Policy]) -> Iterator[_Task]:
    """Task by task, each under all policies: what they share of the cache is young, and a stop leaves whole pairs."""
    for index, workload in enumerate(workloads):
        for instance in select_instances(index, workload):
            if instance.dropped is None:
                for policy in policies:
                    yield policy, instance, workload


def _is_done(store: LiveStore, policy: Policy, instance: Instance) -> bool:
    return store.task(policy.name, instance).state is TaskState.DONE


def _work(
    config: Config,
    folder: Path,
    settings: LiveSettings,
    store: LiveStore,
    tasks: Sequence[_Task],
    stop: threading.Event,
    progress: RunProgress,
) -> None:
    workloads = list({id(task[2]): task[2] for task in tasks}.values())
    with open_paid_work(config, folder, f"live {folder.name}", workloads, stop, progress) as paid:
        shared = Apparatus(
            config.protocol,
            settings,
            store,
            paid.cache,
            paid.provider,
            paid.budget,
            stop,
            progress.on_call,
            usd_budget=config.operation.budget.usd,
        )

        def do(task: _Task) -> None:
            policy, instance, workload = task
            outcome = Driver(policy, instance, workload.harness, shared).execute()
            if outcome.verdict is Verdict.TECHNICAL:
                progress.on_blocked(instance, outcome.reason)
            progress.on_instance()

        Threads(config.operation.workers, stop).run(tasks, do)


def _refuse_namesakes(policies: Sequence[Policy]) -> None:
    names = [policy.name for policy in policies]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadInput(f"two policies have the name {twice!r}", field="--policy")
