"""A build, in a run's folder: workloads opened, instances admitted, and labelled by workers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Iterator

from stepdown.builder.cache.responses import Cache
from stepdown.builder.cache.store import DiskStore
from stepdown.builder.common.text import LONGEST_ID, is_id
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.config.validation import changes
from stepdown.builder.engine.hints import FileHints, HintSource, ModelHints
from stepdown.builder.engine.label import InstanceLabelling, RunContext
from stepdown.builder.engine.progress import BuildProgress
from stepdown.builder.engine.workers import Threads, Workers
from stepdown.builder.engine.workloads import LoadedWorkload, load_workload, select_instances
from stepdown.builder.errors import BadInput, Interrupted
from stepdown.builder.models import Client
from stepdown.builder.records import Instance
from stepdown.builder.run.budget import BudgetGuard, read_spent
from stepdown.builder.run.folder import RunFolder
from stepdown.builder.run.ledger import InstanceRecord, InstanceState, JudgeVersion, RunVersions, WorkloadVersion
from stepdown.judges.decision import RULES_VERSION
from stepdown.judges.prompts import prompts_digest

Job = tuple[InstanceRecord, Instance, LoadedWorkload]
"""An instance to work at."""


class Build:
    """Labels every open instance of a run. `stop` ends it early; what was paid for is kept."""

    def __init__(self, run: RunFolder, stop: threading.Event) -> None:
        """Open the run's workloads. Raises BadInput where one is not what the run was begun with."""
        self._run, self._stop = run, stop
        self._config, self._ledger = run.config, run.ledger
        self.progress = BuildProgress()
        departed = run.origin.departed if run.origin else ()
        self._workloads = [
            load_workload(self.protocol, index, departed) for index in range(len(self.protocol.workloads))
        ]
        self._hints = self._read_hints()
        self._check_versions()

    @property
    def protocol(self) -> ProtocolConfig:
        return self._config.protocol

    @property
    def multi_step(self) -> dict[str, bool]:
        """Of each benchmark, whether its trajectories have several steps."""
        return {workload.harness.name: workload.harness.multi_step for workload in self._workloads}

    def _check_versions(self) -> None:
        """A harness or judge that changed since the run was begun would label one run by two measures."""
        versions = RunVersions(
            workloads=tuple(
                WorkloadVersion(workload.harness.name, workload.harness.version, workload.config.seeds.source)
                for workload in self._workloads
            ),
            judge=JudgeVersion(prompts_digest(), RULES_VERSION) if self.protocol.judge else None,
        )
        if not self._ledger.is_begun:
            self._ledger.keep_versions(versions)
            return
        begun = self._ledger.versions
        if begun != versions:
            differences = "; ".join(changes(begun.to_json(), versions.to_json()))
            raise BadInput(
                f"the workloads or their judge have changed since the run was begun ({differences}): "
                "go on with the stepdown that began it, or name another folder",
                file=self._run.path,
            )

    def admit(self) -> None:
        """Register the instances that the sources select, once; open again those that were blocked.

        Raises BadInput where an instance is selected twice.
        """
        self._ledger.reopen()
        if not self._ledger.is_begun:
            self._ledger.admit(self._once_each())
        counts = self._ledger.counts()
        self.progress.total = sum(counts.values())
        self.progress.steps = self._ledger.locked_steps()
        self.progress.instances = self.progress.done_before = self.progress.total - counts.get(InstanceState.OPEN, 0)

    def _once_each(self) -> Iterator[Instance]:
        seen: set[tuple[str, str]] = set()
        for index, workload in enumerate(self._workloads):
            for instance in select_instances(index, workload):
                place = f"protocol.workloads.{index}.source"
                if not is_id(instance.id):
                    problem = f"instance id {instance.id!r} is not 1 to {LONGEST_ID} printable characters"
                    raise BadInput(problem, field=place)
                if instance.key in seen:
                    raise BadInput(f"instance {instance.id!r} is selected twice", field=place)
                seen.add(instance.key)
                yield instance

    def execute(self) -> None:
        """Label all open instances. Raises RunStopped, BadInput, BudgetReached or Interrupted; the ledger then says
        where to go on.
        """
        if not self._is_left():
            return
        self.work(self._open_instances(), self._label, self._is_left)

    def _is_left(self) -> bool:
        return bool(self._ledger.counts().get(InstanceState.OPEN, 0))

    def work(self, jobs: Iterable[Job], do: Callable[[RunContext, Job], None], is_left: Callable[[], bool]) -> None:
        """Have the run's workers carry out jobs, within its budget; `is_left` says whether there are any still.

        Raises RunStopped, BadInput, BudgetReached or Interrupted.
        """
        cache = Cache(DiskStore(self._run.cache_folder), run=self._ledger.run.id)
        for workload in self._workloads:
            workload.harness.keep_in(self._run.cache_folder / "workloads" / workload.harness.name)
        models, operation = self.protocol.models, self._config.operation
        already = read_spent(self._run.path, self._ledger, models)
        budget = BudgetGuard(operation.budget, already, self._run.path, self._stop)
        try:
            with budget, Client(models.values(), operation, self._stop, budget.check) as client:
                context = RunContext(
                    protocol=self.protocol,
                    ledger=self._ledger,
                    cache=cache,
                    provider=client,
                    hints=self._hints,
                    stop=self._stop,
                    on_call=self.progress.on_call,
                    on_lock=self.progress.on_lock,
                    budget=budget,
                )
                workers: Workers = Threads(operation.workers, self._stop)
                workers.run(jobs, lambda job: do(context, job))
        except Interrupted:
            raise budget.stopped_by or Interrupted("stopped") from None
        finally:
            cache.close()
        if self._stop.is_set() and is_left():
            raise budget.stopped_by or Interrupted("stopped")

    def labelled(self, wanted: Container[tuple[str, str]]) -> Iterator[Job]:
        """The finished instances among those wanted by (benchmark, id), in the run's order."""
        for index, workload in enumerate(self._workloads):
            for instance in select_instances(index, workload):
                if instance.key in wanted:
                    record = self._ledger.instance(*instance.key)
                    if record.state is InstanceState.DONE:
                        yield record, instance, workload

    def _read_hints(self) -> HintSource | None:
        hints, pool = self.protocol.hints, self.protocol.pool
        if hints.file is not None:
            return FileHints(hints.file, pool)
        return ModelHints(hints.model, pool) if hints.model is not None else None

    def _open_instances(self) -> Iterator[Job]:
        """What is left to label. Raises BadInput where a source no longer selects what it did."""
        left = self._ledger.counts().get(InstanceState.OPEN, 0)
        for index, workload in enumerate(self._workloads if left else ()):
            field = f"protocol.workloads.{index}.source"
            for instance in select_instances(index, workload):
                try:
                    record = self._ledger.instance(*instance.key)
                except KeyError:
                    raise BadInput(f"{instance.id!r} was not selected when the run was begun", field=field) from None
                if record.state is InstanceState.OPEN:
                    left -= 1
                    yield record, instance, workload
        if left > 0:
            raise BadInput(f"the sources no longer select {left} of the run's instances", file=self._run.path)

    def _label(self, context: RunContext, job: Job) -> None:
        InstanceLabelling(*job, context).run()
        self.progress.on_instance()
