"""Work on a run's instances, whatever it is: workloads are loaded, and workers do the work within the run's budget."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Iterator

from stepdown.builder.cache.responses import Cache
from stepdown.builder.cache.store import DiskStore
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.config.validation import changes
from stepdown.builder.engine.context import Job, RunContext
from stepdown.builder.engine.hints import FileHints, HintSource, ModelHints, PolicyHints
from stepdown.builder.engine.progress import RunProgress
from stepdown.builder.engine.pseudo_models import refuse_unknown_pseudo_models
from stepdown.builder.engine.workers import Threads, Workers
from stepdown.builder.engine.workloads import LoadedWorkload, give_folder, load_workload, select_instances
from stepdown.builder.errors import BadInput, Interrupted
from stepdown.builder.models import Client
from stepdown.builder.records import Instance
from stepdown.builder.run.budget import BudgetGuard
from stepdown.builder.run.folder import RunFolder
from stepdown.builder.run.ledger import InstanceState, JudgeVersion, RunVersions, WorkloadVersion
from stepdown.builder.run.spent import read_spent
from stepdown.harnesses.registry import own_facts
from stepdown.judges.decision import RULES_VERSION
from stepdown.judges.exam.watch import ExamWatch
from stepdown.judges.prompts import prompts_digest


class RunSession:
    """A run that work is done on. `stop` ends the work early; what was paid for is kept."""

    def __init__(self, run: RunFolder, stop: threading.Event) -> None:
        """Load the run's workloads. Raises BadInput where one is not what the run was begun with."""
        self.run, self._stop = run, stop
        departed = run.origin.departed if run.origin else ()
        self.workloads: list[LoadedWorkload] = [
            load_workload(self.protocol, index, departed) for index in range(len(self.protocol.workloads))
        ]
        for workload in self.workloads:
            give_folder(workload, run.cache_folder / "workloads" / workload.harness.name)
        self._hints = self._read_hints()
        self._check_versions()
        judge = self.protocol.judge
        self.exam = ExamWatch(judge, run.ledger.gradings() if judge else ())
        if own := [workload.harness for workload in self.workloads if workload.config.is_own_code]:
            run.ledger.meta.keep_own_facts({harness.name: own_facts(harness) for harness in own})

    @property
    def protocol(self) -> ProtocolConfig:
        return self.run.config.protocol

    @property
    def multi_step(self) -> dict[str, bool]:
        """Of each benchmark, whether its trajectories have several steps."""
        return {workload.harness.name: workload.harness.multi_step for workload in self.workloads}

    def select(self) -> Iterator[tuple[str, Instance, LoadedWorkload]]:
        """Every instance that the sources select now, with the config's field of its source. Raises BadInput."""
        for index, workload in enumerate(self.workloads):
            for instance in select_instances(index, workload):
                yield f"protocol.workloads.{index}.source", instance, workload

    def refuse_unknown_pseudo_models(self) -> None:
        """Raises BadInput for a pseudo-model of the pool that a workload has for none of its instances."""
        for index, workload in enumerate(self.workloads):
            refuse_unknown_pseudo_models(workload, self.protocol, index)

    def select_finished(self, wanted: Container[tuple[str, str]]) -> Iterator[Job]:
        """The finished instances among those wanted by (benchmark, id), in the run's order."""
        for _, instance, workload in self.select():
            if instance.key in wanted:
                record = self.run.ledger.instance(*instance.key)
                if record.state is InstanceState.DONE:
                    yield Job(record, instance, workload)

    def work(
        self,
        jobs: Iterable[Job],
        do: Callable[[Job, RunContext], None],
        is_left: Callable[[], bool],
        progress: RunProgress,
    ) -> None:
        """Have the run's workers do the jobs, within its budget; `is_left` says whether there are any still.

        `progress` is told of every call, and is given to what is done. Raises RunStopped, BadInput, BudgetReached or
        Interrupted.
        """
        if self.exam.below is not None:
            raise self.exam.below
        run, operation, models = self.run, self.run.config.operation, self.protocol.models
        already = read_spent(run.path, run.ledger.call_totals(), self.protocol.prices)
        budget = BudgetGuard(operation.budget, already, run.path, self._stop)
        cache = Cache(DiskStore(run.cache_folder), run=run.ledger.meta.run.id)
        try:
            client = Client(
                models.values(),
                operation,
                self._stop,
                budget.check,
                on_error=progress.on_error,
                notify=lambda line: progress.notify(line),
            )
            with budget, client:
                context = RunContext(
                    protocol=self.protocol,
                    ledger=run.ledger,
                    cache=cache,
                    provider=client,
                    hints=self._hints,
                    stop=self._stop,
                    on_call=progress.on_call,
                    on_lock=progress.on_lock,
                    on_blocked=progress.on_blocked,
                    budget=budget,
                    speculate=operation.speculate,
                    exam=self.exam,
                )
                workers: Workers = Threads(operation.workers, self._stop)
                for workload in self.workloads:
                    if started := workload.harness.runs_here:
                        progress.notify(f"workload {workload.harness.name} runs on this machine, unconfined: {started}")
                workers.run(jobs, lambda job: do(job, context))
        except Interrupted:
            raise budget.stopped_by or self.exam.below or Interrupted("stopped") from None
        finally:
            cache.close()
        if self._stop.is_set() and is_left():
            raise budget.stopped_by or self.exam.below or Interrupted("stopped")

    def _read_hints(self) -> HintSource | None:
        hints, pool = self.protocol.hints, self.protocol.pool
        if hints.file is not None:
            return FileHints(hints.file, pool)
        if hints.policy is not None:
            return PolicyHints(hints.policy, pool, hints.folder)
        return ModelHints(hints.model, pool) if hints.model is not None else None

    def _check_versions(self) -> None:
        """A harness or judge that changed since the run was begun would label one run by two measures."""
        ledger = self.run.ledger
        versions = RunVersions(
            workloads=tuple(
                WorkloadVersion(workload.harness.name, workload.harness.version, workload.config.seeds.source)
                for workload in self.workloads
            ),
            judge=JudgeVersion(prompts_digest(), RULES_VERSION) if self.protocol.judge else None,
        )
        if not ledger.is_begun:
            ledger.meta.keep_versions(versions)
            return
        begun = ledger.meta.versions
        if begun != versions:
            differences = "; ".join(changes(begun.to_json(), versions.to_json()))
            raise BadInput(
                f"the workloads or their judge have changed since the run was begun ({differences}): "
                "go on with the stepdown that began it, or name another folder",
                file=self.run.path,
            )
