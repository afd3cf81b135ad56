"""Where a run's instances are worked on: what an executor is given, and the one that works in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from stepdown.builder.cache.responses import Cache
from stepdown.builder.cache.store import Store
from stepdown.builder.engine.context import Job, RunContext
from stepdown.builder.engine.hints import HintSource
from stepdown.builder.engine.progress import RunProgress
from stepdown.builder.engine.workers import Threads
from stepdown.builder.engine.workloads import LoadedWorkload
from stepdown.builder.models import Client
from stepdown.builder.run.budget import BudgetGuard
from stepdown.builder.run.folder import RunFolder
from stepdown.builder.run.ledger import RunVersions
from stepdown.judges.exam.watch import ExamWatch

Task = Callable[[Job, RunContext], None]
"""What is done with an instance. It may be done by another process: so it is a function of a module, alone or with
arguments bound to it, and all that it leaves behind is in the ledger."""


@dataclass(frozen=True, slots=True)
class RunHoldings:
    """What a run has one of, wherever its instances are worked on."""

    run: RunFolder
    workloads: Sequence[LoadedWorkload]
    versions: RunVersions
    """Of the code that labels are measured by."""
    hints: HintSource | None
    store: Store
    """Of the response cache."""
    budget: BudgetGuard
    exam: ExamWatch
    progress: RunProgress
    stop: threading.Event
    """Set where the work is to end. Whoever finds a reason for that sets it too."""


class Executor(Protocol):
    """Works on instances, several at once: `operation.workers` of them."""

    @property
    def where(self) -> str:
        """Where what workloads start runs, in words."""

    def work(self, jobs: Iterable[Job], do: Task, done: Callable[[Job], None], holdings: RunHoldings) -> None:
        """Do the task with every job, and tell `done` of each. Whenever a worker is free it takes the next job.

        After the first error no further job is taken; what is in hand is brought to an end, then the error is raised.
        """


class InThreads:
    """Works in threads of this process."""

    where = "this machine"

    def work(self, jobs: Iterable[Job], do: Task, done: Callable[[Job], None], holdings: RunHoldings) -> None:
        run, progress, stop = holdings.run, holdings.progress, holdings.stop
        protocol, operation = run.config.protocol, run.config.operation
        client = Client(
            protocol.models.values(),
            operation,
            stop,
            holdings.budget.check,
            on_error=progress.on_error,
            notify=lambda line: progress.notify(line),
        )
        with client:
            context = RunContext(
                protocol=protocol,
                ledger=run.ledger,
                cache=Cache(holdings.store, run=run.ledger.meta.run.id),
                provider=client,
                hints=holdings.hints,
                stop=stop,
                on_call=progress.on_call,
                on_lock=progress.on_lock,
                on_blocked=progress.on_blocked,
                budget=holdings.budget,
                speculate=operation.speculate,
                exam=holdings.exam,
            )

            def work(job: Job) -> None:
                do(job, context)
                done(job)

            Threads(operation.workers, stop).run(jobs, work)
