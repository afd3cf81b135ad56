"""The trials of one instance: every execution is recorded before its outcome is acted upon, and is made once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from stepdown.builder.engine.calls import Calls, QuestionLocks
from stepdown.builder.engine.context import Job, RunContext, search_rules
from stepdown.builder.engine.replay import Replayer
from stepdown.builder.engine.search import Blocked, is_accepted
from stepdown.builder.engine.volatile import InstanceMask
from stepdown.builder.errors import Interrupted
from stepdown.builder.records import Outcome, Receipt, Trajectory, Trial, Verdict
from stepdown.builder.run.ledger import KEPT, Purpose, TrialRecord, trial_entry
from stepdown.judges.exam.asking import rule_and_examine

Execution = Callable[[Replayer], Outcome]
"""Executes a trajectory by a replayer, that of the thread it is called in."""

_Place = tuple[Purpose, int, int, str, int]
"""What tells a trial of an instance from the others: purpose, step, tier, model, sample."""


def _place(purpose: Purpose, trial: Trial) -> _Place:
    return purpose, trial.step, trial.tier, trial.model, trial.sample.number


@dataclass(frozen=True, slots=True)
class Executed:
    """What executing a trial came to, and what it took."""

    outcome: Outcome
    receipt: Receipt


class _Stop:
    """Set where the run is to stop, or the one trial that a thread executes."""

    def __init__(self, run: threading.Event) -> None:
        self._run = run
        self.trial = threading.Event()

    def is_set(self) -> bool:
        return self._run.is_set() or self.trial.is_set()


@dataclass(frozen=True, slots=True)
class _Executor:
    """The calls and the replayer of one thread."""

    calls: Calls
    replayer: Replayer
    stop: _Stop


class TrialRecorder:
    """Executes and records the trials of one instance; one that is in the ledger already is not executed again.

    What is executed next depends on the outcomes so far and on nothing else. So after an interruption the same work is
    gone through again: it is given the recorded outcomes, and arrives where it was interrupted. Threads may share a
    recorder.
    """

    def __init__(self, job: Job, context: RunContext) -> None:
        self._job, self._context, self._ledger = job, context, context.ledger
        self._rules = search_rules(context.protocol)
        self._question_locks = QuestionLocks() if context.protocol.rules.cascade_parallel or context.speculate else None
        self._mask = InstanceMask(job.workload.harness, context.ledger, job.record.id)
        self._own = threading.local()
        self._recorded: dict[_Place, TrialRecord] = {}
        for trial in context.ledger.trials(job.record.id):
            if not trial.superseded:
                self._recorded[_place(trial.purpose, trial.trial)] = trial
        # The ledger's id of each trajectory that a trial may start from, by identity.
        self._ids: list[tuple[Trajectory, int]] = []

    def execute(
        self,
        purpose: Purpose,
        trial: Trial,
        execution: Execution,
        base: Trajectory | None = None,
        ahead: Callable[[], Executed | None] = lambda: None,
    ) -> Outcome:
        """The outcome of a trial: the recorded one, or that of an execution now, which is recorded before this returns.

        `base` is the trajectory that the trial starts from, where it starts from one: an outcome of this recorder, or
        read by it. `ahead` gives what was executed of the trial before it was asked for. Raises Interrupted where the
        run is to stop.
        """
        known = self._recorded.get(_place(purpose, trial))
        if known is not None:
            return self._read_outcome(known)
        if self._context.stop.is_set():
            raise Interrupted("stopped")
        executed = ahead() or self._execute(execution)
        outcome = executed.outcome
        accepted = is_accepted(outcome, trial.limit, self._rules)
        base_id = self.id_of(base) if base is not None else None
        trial_id = self._ledger.record(
            trial_entry(self._job.record.id, purpose, trial, outcome, executed.receipt, accepted=accepted, base=base_id)
        )
        if accepted and purpose in KEPT:
            self._ids.append((outcome.trajectory, trial_id))
        if self._context.exam is not None and self._context.exam.note(outcome.grading):
            self._context.stop.set()
        return outcome

    def _execute(self, execution: Execution) -> Executed:
        executor = self._executor
        return Executed(execution(executor.replayer), executor.calls.take_receipt())

    def execute_ahead(self, execution: Execution, abandoned: threading.Event) -> Executed:
        """What a trial comes to that may not be needed, for `execute` to record; begins no step once it is abandoned.

        What it took is booked at once, however it ends. Called in threads of its own.
        """
        executor = self._executor
        executor.stop.trial = abandoned
        try:
            outcome = execution(executor.replayer)
        finally:
            receipt = executor.calls.take_receipt()
            self._ledger.book_ahead(self._job.record.id, receipt)
        return Executed(outcome, receipt)

    def recorded_verdict(self, purpose: Purpose, trial: Trial) -> tuple[Verdict, bool] | None:
        """The verdict of a trial that is in the ledger since before this recorder began, and whether it was accepted;
        None of others.
        """
        found = self._recorded.get(_place(purpose, trial))
        return (found.verdict, found.accepted) if found else None

    def execute_to_verdict(
        self, purpose: Purpose, trial: Trial, execution: Execution, base: Trajectory | None = None
    ) -> Outcome:
        """The outcome of a trial that needs a verdict. Raises Blocked where it is technical."""
        outcome = self.execute(purpose, trial, execution, base)
        if outcome.verdict is Verdict.TECHNICAL:
            raise Blocked(trial.step, trial.tier, outcome.reason)
        return outcome

    def read_trajectory(self, trial_id: int) -> Trajectory:
        """The trajectory that a recorded trial came to, for other trials to start from."""
        trajectory = self._ledger.trajectories.read(trial_id, self._mask.mask)
        self._ids.append((trajectory, trial_id))
        return trajectory

    def id_of(self, trajectory: Trajectory) -> int:
        """The ledger's id of the trial that came to this very trajectory."""
        return next(trial_id for known, trial_id in reversed(self._ids) if known is trajectory)

    @property
    def calls(self) -> Calls:
        """The calling thread's calls, for questions that belong to no trial."""
        return self._executor.calls

    def _read_outcome(self, known: TrialRecord) -> Outcome:
        is_kept = known.accepted and known.purpose in KEPT
        trajectory = self.read_trajectory(known.id) if is_kept else ()
        return Outcome(known.verdict, trajectory, known.reason, known.grading, known.cut_off, known.state)

    @property
    def _executor(self) -> _Executor:
        """This thread's own calls and replayer."""
        if not hasattr(self._own, "executor"):
            self._own.executor = self._make_executor()
        executor: _Executor = self._own.executor
        return executor

    def _make_executor(self) -> _Executor:
        context, instance, harness = self._context, self._job.instance, self._job.workload.harness
        calls = Calls(
            instance,
            harness,
            context.provider,
            context.cache,
            context.on_call,
            context.budget,
            self._question_locks,
        )
        panel, subject = context.protocol.judge, "/".join(instance.key)
        judge = partial(rule_and_examine, panel=panel, source=calls, subject=subject) if panel else None
        stop = _Stop(context.stop)
        replayer = Replayer(instance, harness, context.protocol.pool, calls, judge, stop, self._mask)
        return _Executor(calls, replayer, stop)
