"""Work on a run's instances, whatever it is: workloads are loaded, and an executor does it within the run's budget."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Iterator

from stepdown.builder.cache.store import DiskStore
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.config.validation import changes
from stepdown.builder.engine.context import Job
from stepdown.builder.engine.executor import Executor, InThreads, RunHoldings, Task
from stepdown.builder.engine.hints import read_hints
from stepdown.builder.engine.progress import RunProgress
from stepdown.builder.engine.pseudo_models import refuse_unknown_pseudo_models
from stepdown.builder.engine.workloads import (
    LoadedWorkload,
    give_folder,
    load_workload,
    select_instances,
    versions_of,
)
from stepdown.builder.errors import BadInput, Interrupted
from stepdown.builder.records import Instance
from stepdown.builder.run.budget import BudgetGuard
from stepdown.builder.run.folder import RunFolder
from stepdown.builder.run.ledger import InstanceState
from stepdown.builder.run.spent import read_spent
from stepdown.harnesses.registry import own_facts
from stepdown.judges.exam.watch import ExamWatch


class RunSession:
    """A run that work is done on. `stop` ends the work early; what was paid for is kept."""

    def __init__(self, run: RunFolder, stop: threading.Event, executor: Executor | None = None) -> None:
        """Load the run's workloads. Raises BadInput where one is not what the run was begun with.

        Without an `executor` the work is done in threads of this process.
        """
        self.run, self._stop, self._executor = run, stop, executor or InThreads()
        self._budget: BudgetGuard | None = None
        """One for all work of this process."""
        departed = run.origin.departed if run.origin else ()
        self.workloads: list[LoadedWorkload] = [
            load_workload(self.protocol, index, departed) for index in range(len(self.protocol.workloads))
        ]
        for workload in self.workloads:
            give_folder(workload, run.cache_folder / "workloads" / workload.harness.name)
        self._hints = read_hints(self.protocol)
        self._versions = versions_of(self.workloads, self.protocol)
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
        do: Task,
        is_left: Callable[[], bool],
        progress: RunProgress,
        done: Callable[[Job], None] = lambda job: None,
    ) -> None:
        """Have the jobs done, within the run's budget; `is_left` says whether there are any still.

        `progress` is told of every call, `done` of every job that is done. Raises RunStopped, BadInput, BudgetReached
        or Interrupted.
        """
        if self.exam.below is not None:
            raise self.exam.below
        run, operation = self.run, self.run.config.operation
        if self._budget is None:
            already = read_spent(run.path, run.ledger.call_totals(), self.protocol.prices)
            self._budget = BudgetGuard(operation.budget, already, run.path, self._stop)
        budget = self._budget
        store = DiskStore(run.cache_folder)
        try:
            with budget:
                for workload in self.workloads:
                    if started := workload.harness.runs_here:
                        progress.notify(
                            f"workload {workload.harness.name} runs on {self._executor.where}, unconfined: {started}"
                        )
                holdings = RunHoldings(
                    run=run,
                    workloads=self.workloads,
                    versions=self._versions,
                    hints=self._hints,
                    store=store,
                    budget=budget,
                    exam=self.exam,
                    progress=progress,
                    stop=self._stop,
                )
                self._executor.work(jobs, do, done, holdings)
        except Interrupted:
            raise budget.stopped_by or self.exam.below or Interrupted("stopped") from None
        finally:
            store.close()
        if self._stop.is_set() and is_left():
            raise budget.stopped_by or self.exam.below or Interrupted("stopped")

    def _check_versions(self) -> None:
        """A harness or judge that changed since the run was begun would label one run by two measures."""
        ledger, versions = self.run.ledger, self._versions
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
