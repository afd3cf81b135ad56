"""Repeatability: does the locked model do a step again, when it is asked anew at the same prefix?"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from stepdown.audit.verdicts import AuditStep
from stepdown.builder.artifacts.sampling import draw_of
from stepdown.builder.cluster.choice import executor_of
from stepdown.builder.common.intervals import Interval, exact_interval
from stepdown.builder.engine.context import Job, RunContext
from stepdown.builder.engine.progress import RunProgress
from stepdown.builder.engine.replay import Replayer
from stepdown.builder.engine.session import RunSession
from stepdown.builder.engine.trials import TrialRecorder
from stepdown.builder.records import Lock, Sample, Trial, Verdict
from stepdown.builder.run.folder import RunFolder
from stepdown.builder.run.ledger import Ledger, Purpose, TrialRecord, seed_model_of


def picked(steps: Iterable[AuditStep], most: int | None, seed: int, workloads: Sequence[str]) -> list[AuditStep]:
    """The sampled steps to be repeated: at most `most` of each workload and label, those of the smallest draws.

    They are of the workloads that are named, or of all where none is.
    """
    groups: dict[tuple[str, str], list[AuditStep]] = defaultdict(list)
    for step in steps:
        if not workloads or step.benchmark in workloads:
            groups[step.benchmark, step.tier].append(step)
    for found in groups.values():
        found.sort(key=lambda step: draw_of(seed, step.id))
    return [step for _, found in sorted(groups.items()) for step in found[:most]]


class Repeats:
    """Executes steps anew, `times` each, and records every execution. What is recorded is not executed again."""

    def __init__(self, run: RunFolder, stop: threading.Event, steps: Iterable[AuditStep], times: int) -> None:
        """Load the run's workloads. Raises BadInput where one is not what the run was begun with."""
        self._ledger, self._times = run.ledger, times
        self._session = RunSession(run, stop, executor_of(run.config.operation))
        self._steps: dict[tuple[str, str], list[int]] = defaultdict(list)
        for step in steps:
            self._steps[step.benchmark, step.instance_id].append(step.step_index)
        self._left = set(self._steps)
        self.progress = RunProgress(total=len(self._steps), counted="executions")

    @property
    def multi_step(self) -> dict[str, bool]:
        """Of each benchmark, whether its trajectories have several steps."""
        return self._session.multi_step

    def execute(self) -> None:
        """Execute what is not recorded yet. Raises RunStopped, BadInput, BudgetReached or Interrupted; the ledger then
        says where to go on.
        """
        self._ledger.forget_technical(Purpose.REPEAT)
        repeat = partial(_repeat, dict(self._steps), self._times)
        jobs = self._session.select_finished(self._steps)
        self._session.work(jobs, repeat, lambda: bool(self._left), self.progress, self._note_done)

    def _note_done(self, job: Job) -> None:
        self._left.discard(job.instance.key)
        self.progress.on_instance()


def _repeat(steps: Mapping[tuple[str, str], Sequence[int]], times: int, job: Job, context: RunContext) -> None:
    """Execute the steps of one instance anew; `steps` are by instance."""
    _InstanceRepeats(job, context).execute(steps[job.instance.key], times)


class _InstanceRepeats:
    """Executes steps of one finished instance anew. Its labels stay as they are."""

    def __init__(self, job: Job, context: RunContext) -> None:
        self._record, self._context, self._ledger = job.record, context, context.ledger
        self._trials = TrialRecorder(job, context)

    def execute(self, steps: Sequence[int], times: int) -> None:
        """At each step's frozen prefix the locked model answers anew, and the strong model goes on."""
        if self._record.final is None:
            raise ValueError(f"instance {self._record.instance_id!r} is finished without a trajectory")
        current = self._trials.read_trajectory(self._record.final)
        searched = self._ledger.trials(self._record.id)
        strong = seed_model_of(self._record, searched)
        for step in steps:
            # No other run's answer is taken from a cache that both use, nor one of another step's execution, where the
            # strong model may come by this very prefix.
            namespace = f"{Purpose.REPEAT.value} {self._context.cache.run} {step}"
            lock = self._record.locks[step - 1]
            limit = _limit(searched, step, lock) or len(current)
            for number in range(times):
                trial = Trial(step, lock.tier, lock.model, limit, Sample(namespace, number))
                run = partial(Replayer.run, current=current, trial=trial, strong=strong)
                self._trials.execute(Purpose.REPEAT, trial, run, base=current)
                self._context.on_lock()


def _limit(trials: Iterable[TrialRecord], step: int, lock: Lock) -> int | None:
    """The limit under which the label was found, so that a repeat is accepted by the same measure."""
    searched = [trial for trial in trials if trial.purpose is Purpose.SEARCH and trial.trial.step == step]
    locked = [one for one in searched if one.accepted and (one.trial.tier, one.trial.model) == (lock.tier, lock.model)]
    return next((one.trial.limit for one in locked or searched), None)


@dataclass(slots=True)
class Repeated:
    """How often some steps passed when they were executed anew."""

    steps: int = 0
    executions: int = 0
    """Those that came to a verdict."""
    passed: int = 0
    """Accepted: the official predicate holds, within the limit that the label was found under."""
    always: int = 0
    """Steps of which every execution passed."""
    technical: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)

    @property
    def interval(self) -> Interval:
        return exact_interval(self.passed, self.executions)


def count_repeats(ledger: Ledger, steps: Iterable[AuditStep], times: int) -> Mapping[tuple[str, str], Repeated]:
    """What was executed of steps so far, the first `times` of each, by workload and label."""
    groups: dict[tuple[str, str], Repeated] = defaultdict(Repeated)
    for step in steps:
        found = list(_executions(ledger, step, times))
        group = groups[step.benchmark, step.tier]
        group.steps += 1
        known = [one for one in found if one.verdict is not Verdict.TECHNICAL]
        group.executions += len(known)
        group.technical += len(found) - len(known)
        group.passed += sum(one.accepted for one in known)
        group.always += bool(known) and len(known) == times and all(one.accepted for one in known)
        group.verdicts.update(one.verdict.value for one in known)
    return dict(groups)


def _executions(ledger: Ledger, step: AuditStep, times: int) -> Iterator[TrialRecord]:
    record = ledger.instance(step.benchmark, step.instance_id)
    for trial in ledger.trials(record.id):
        tried = trial.trial
        is_one = trial.purpose is Purpose.REPEAT and tried.step == step.step_index and not trial.superseded
        if is_one and tried.sample.number < times:
            yield trial
