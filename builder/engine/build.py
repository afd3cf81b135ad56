"""A build, in a run's folder: its instances admitted, and labelled by an executor."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

from stepdown.builder.engine.context import Job
from stepdown.builder.engine.executor import Executor
from stepdown.builder.engine.label import label_instance
from stepdown.builder.engine.probing import Probing
from stepdown.builder.engine.progress import RunProgress
from stepdown.builder.engine.session import RunSession
from stepdown.builder.errors import BadInput, JudgeBelowBar
from stepdown.builder.records import Instance
from stepdown.builder.run.folder import RunFolder
from stepdown.builder.run.ledger import InstanceState
from stepdown.harnesses.checked import unsound_instance


class Build:
    """Labels every open instance of a run. `stop` ends it early; what was paid for is kept."""

    def __init__(self, run: RunFolder, stop: threading.Event, executor: Executor | None = None) -> None:
        """Load the run's workloads. Raises BadInput where one is not what the run was begun with.

        Without an `executor` instances are labelled in threads of this process.
        """
        self._run, self._ledger = run, run.ledger
        self._session = RunSession(run, stop, executor)
        self.progress = RunProgress()
        self.probing = Probing(self._session)

    @property
    def multi_step(self) -> dict[str, bool]:
        """Of each benchmark, whether its trajectories have several steps."""
        return self._session.multi_step

    @property
    def below(self) -> JudgeBelowBar | None:
        """The judge that probes have shown to be below its bar; None where there is none."""
        return self._session.exam.below

    def admit(self) -> None:
        """Register the instances that the sources select, once; open again those that were blocked.

        Raises BadInput where an instance is selected twice, or a pseudo-model answers for none.
        """
        self._ledger.reopen()
        if not self._ledger.is_begun:
            self._refuse_unpublishable_names()
            self._session.refuse_unknown_pseudo_models()
            self._ledger.admit(self._select_each_once())
        counts = self._ledger.counts()
        self.progress.total = sum(counts.values())
        self.progress.steps = self._ledger.locked_steps()
        self.progress.instances = self.progress.done_before = self.progress.total - counts.get(InstanceState.OPEN, 0)

    def unplaced_seeds(self) -> Iterator[str]:
        """Of each workload whose seed file has instances that the run has not: a line that counts and names them."""
        for index, workload in enumerate(self._session.workloads):
            benchmark = workload.harness.name
            if workload.seeds and (found := workload.seeds.without_instance(partial(self._is_admitted, benchmark))):
                yield f"protocol.workloads.{index}.seeds: {found}"

    def _is_admitted(self, benchmark: str, instance_id: str) -> bool:
        try:
            self._ledger.instance(benchmark, instance_id)
        except KeyError:
            return False
        return True

    def _refuse_unpublishable_names(self) -> None:
        for index, workload in enumerate(self._session.workloads):
            if "/" in workload.harness.name:
                problem = f"the workload's name must not hold a slash: {workload.harness.name!r}"
                raise BadInput(problem, field=f"protocol.workloads.{index}.harness")

    def _select_each_once(self) -> Iterator[Instance]:
        seen: set[tuple[str, str]] = set()
        for field, instance, _ in self._session.select():
            if problem := unsound_instance(instance):
                raise BadInput(problem, field=field)
            if instance.key in seen:
                raise BadInput(f"instance {instance.id!r} is selected twice", field=field)
            seen.add(instance.key)
            yield instance

    def execute(self) -> None:
        """Label all open instances. Raises RunStopped, BadInput, BudgetReached or Interrupted; the ledger then says
        where to go on.
        """
        if self._is_left():
            self._session.work(self._open_jobs(), label_instance, self._is_left, self.progress, self._note_done)

    def _is_left(self) -> bool:
        return self._count_open() > 0

    def _count_open(self) -> int:
        return self._ledger.counts().get(InstanceState.OPEN, 0)

    def _open_jobs(self) -> Iterator[Job]:
        """What is left to label. Raises BadInput where a source no longer selects what it did."""
        left = self._count_open()
        for field, instance, workload in self._session.select():
            try:
                record = self._ledger.instance(*instance.key)
            except KeyError:
                raise BadInput(f"{instance.id!r} was not selected when the run was begun", field=field) from None
            if record.state is InstanceState.OPEN:
                left -= 1
                yield Job(record, instance, workload)
        if left > 0:
            raise BadInput(f"the sources no longer select {left} of the run's instances", file=self._run.path)

    def _note_done(self, job: Job) -> None:
        self.progress.on_instance()
