"""A plan carried out: checkpoints frozen, then every cell executed, in a folder that a later start goes on from."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from stepdown.builder.common.files import RecordFile
from stepdown.builder.config.validation import changes
from stepdown.builder.continuations.cells import FILE, CellKey
from stepdown.builder.continuations.checkpoints import FrozenCheckpoint, as_published, frozen_checkpoints
from stepdown.builder.continuations.executing import Continuing, ModelAtCheckpoint
from stepdown.builder.continuations.plan import LoadedPlan
from stepdown.builder.continuations.store import ContinuationStore
from stepdown.builder.engine.calls import QuestionLocks
from stepdown.builder.engine.paid_work import open_paid_work
from stepdown.builder.engine.progress import RunProgress
from stepdown.builder.engine.workers import Threads
from stepdown.builder.engine.workloads import LoadedWorkload, load_workload, select_instances
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Instance, OutcomeState
from stepdown.builder.run.folder import LOCK_NAME, protocol_record

CHECKPOINTS = "checkpoints.jsonl"
"""The frozen prefixes, in a folder of continuations."""


@dataclass(frozen=True, slots=True)
class Carried:
    """How far a plan was carried out."""

    cells: int
    done: int
    technical: int


def continue_plan(
    loaded: LoadedPlan,
    folder: Path,
    stop: threading.Event,
    progress: RunProgress,
    begins: Callable[[], None] = lambda: None,
) -> Carried:
    """Execute every cell of a plan that has no outcome yet, or a technical one; then write the folder's files.

    `begins` is told before code of the config's workloads is loaded, which a finished plan does without. Raises
    BadInput: the folder was begun otherwise, or is in use, a checkpoint is not there; RunStopped, BudgetReached and
    Interrupted as a build does. What was executed stands in the folder, and the same call goes on from there.
    """
    _refuse_strangers(folder)
    with ContinuationStore.open_for_work(folder) as store:
        frozen = store.checkpoints()
        if frozen:  # until then a mistake in the plan can be mended
            store.keep_settings(_settings(loaded))
        keys = list(cell_keys(loaded, frozen))
        states = store.states()
        left = [key for key in keys if states.get(key, OutcomeState.TECHNICAL) is OutcomeState.TECHNICAL]
        if not frozen or left:
            begins()
            workloads = _workloads(loaded)
            if not frozen:
                frozen = _freeze(loaded, store, workloads)
                left = keys = list(cell_keys(loaded, frozen))
            _refuse_other_versions(store, workloads, folder)
            write_records(folder / CHECKPOINTS, map(as_published, frozen))
            try:
                _execute(loaded, folder, store, frozen, left, workloads, stop, progress)
            finally:
                _write_cells(folder, store, keys, loaded.plan.draws)
        elif store.written != loaded.plan.draws:  # killed before it was
            _write_cells(folder, store, keys, loaded.plan.draws)
        states = store.states()
        technical = sum(states.get(key) is OutcomeState.TECHNICAL for key in keys)
        return Carried(len(keys), sum(key in states for key in keys) - technical, technical)


def _refuse_strangers(folder: Path) -> None:
    """Raises BadInput for a folder that holds something and was never one of continuations."""
    if folder.is_dir() and not (folder / ContinuationStore.file_name).exists():
        held = sorted(path.name for path in folder.iterdir() if path.name != LOCK_NAME)
        if held:
            raise BadInput(f"the folder is not empty and not one of continuations (it holds {held[0]!r})", file=folder)


def cell_keys(loaded: LoadedPlan, frozen: Sequence[FrozenCheckpoint]) -> Iterator[CellKey]:
    """All cells of a plan, in its order."""
    plan = loaded.plan
    for checkpoint in frozen:
        for model in loaded.models:
            for context in plan.contexts:
                for feedback in plan.feedback:
                    for draw in range(plan.draws):
                        yield CellKey(checkpoint.name, context.name, feedback.name, model, draw)


def _write_cells(folder: Path, store: ContinuationStore, keys: Sequence[CellKey], draws: int) -> None:
    executed = store.states()
    write_records(folder / FILE, (store.record(key) for key in keys if key in executed))
    store.written = draws


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records as a JSONL file, whole."""
    with RecordFile(path) as file:
        for record in records:
            file.write(record)
        file.finish()


def _workloads(loaded: LoadedPlan) -> list[LoadedWorkload]:
    protocol = loaded.config.protocol
    return [load_workload(protocol, index) for index in range(len(protocol.workloads))]


def _settings(loaded: LoadedPlan) -> dict[str, Any]:
    """What all cells depend on."""
    plan = loaded.plan.model_dump(mode="json", exclude={"draws"})  # more draws only add cells
    return {"plan": plan, "protocol": protocol_record(loaded.config.protocol)}


def _freeze(
    loaded: LoadedPlan, store: ContinuationStore, workloads: Sequence[LoadedWorkload]
) -> list[FrozenCheckpoint]:
    harnesses = {workload.harness.name: workload.harness for workload in workloads}
    frozen = frozen_checkpoints(loaded, harnesses)
    _instances(loaded, frozen, workloads)  # what is not there is told before anything is begun
    versions = {name: harness.version for name, harness in harnesses.items()}
    store.freeze(frozen, _settings(loaded), versions)
    return frozen


def _refuse_other_versions(store: ContinuationStore, workloads: Sequence[LoadedWorkload], folder: Path) -> None:
    """A workload that has changed would measure the cells of one plan by two measures."""
    now = {workload.harness.name: workload.harness.version for workload in workloads}
    if now != store.versions:
        differences = "; ".join(changes(store.versions, now))
        raise BadInput(
            f"the workloads have changed since this was begun ({differences}): name another folder", file=folder
        )


_Task = tuple[Instance, LoadedWorkload]


def _instances(
    loaded: LoadedPlan, frozen: Sequence[FrozenCheckpoint], workloads: Sequence[LoadedWorkload]
) -> dict[tuple[str, str], _Task]:
    """The tasks of the checkpoints. Raises BadInput for one that the config's sources do not select."""
    wanted = {(one.benchmark, one.instance) for one in frozen}
    found: dict[tuple[str, str], _Task] = {}
    for index, workload in enumerate(workloads):
        if any(benchmark == workload.harness.name for benchmark, _ in wanted):
            for instance in select_instances(index, workload):
                if instance.key in wanted:
                    found.setdefault(instance.key, (instance, workload))
    for place, entry in enumerate(loaded.plan.checkpoints):
        key = (entry.benchmark, entry.instance)
        if key not in found:
            raise loaded.wrong("the config's source does not select this instance", "checkpoints", place, "instance")
        if reason := found[key][0].dropped:
            raise loaded.wrong(f"the workload leaves this instance out: {reason}", "checkpoints", place, "instance")
    return found


def _execute(
    loaded: LoadedPlan,
    folder: Path,
    store: ContinuationStore,
    frozen: Sequence[FrozenCheckpoint],
    left: Sequence[CellKey],
    workloads: list[LoadedWorkload],
    stop: threading.Event,
    progress: RunProgress,
) -> None:
    """Execute cells, those of one model at one checkpoint by one worker, one after the other."""
    config, tasks = loaded.config, _instances(loaded, frozen, workloads)
    by_name = {one.name: one for one in frozen}
    progress.total = len(left)
    most = loaded.plan.limits.decisions
    progress.notify(f"{len(left)} cells at {len(frozen)} checkpoints: at most {len(left) * most} calls of models")
    for name in sorted({one.benchmark for one in frozen}):
        if not any(workload.harness.tells_states for workload in workloads if workload.harness.name == name):
            progress.notify(f"workload {name} does not tell what is unsafe: none of its cells can be")
    with open_paid_work(config, folder, f"continue {folder.name}", workloads, stop, progress) as paid:
        shared = Continuing(
            loaded.plan, config.protocol, paid, stop, QuestionLocks(), progress.on_call, progress.on_lock
        )

        def do(keys: Sequence[CellKey]) -> None:
            checkpoint = by_name[keys[0].checkpoint]
            instance, workload = tasks[checkpoint.benchmark, checkpoint.instance]
            executor = ModelAtCheckpoint(checkpoint, keys[0].model, instance, workload.harness, shared)
            for key in keys:
                cell, record = executor.execute(key)
                store.end(key, cell.state, record)
                if cell.state is OutcomeState.TECHNICAL:
                    progress.on_blocked(instance, record["reason"])
                progress.on_instance()

        blocks = [tuple(keys) for _, keys in groupby(left, lambda key: (key.checkpoint, key.model))]
        Threads(config.operation.workers, stop).run(blocks, do)
