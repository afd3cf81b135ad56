"""Labels one instance: finds and verifies its seed, searches, and records every trial before it is acted upon."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from stepdown.builder.cache.responses import Cache
from stepdown.builder.config.pool import Pool
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.engine.calls import Calls, OnCall, Provider, QuestionLocks
from stepdown.builder.engine.hints import HintSource
from stepdown.builder.engine.replay import Replayer
from stepdown.builder.engine.search import Blocked, SearchResult, SearchRules, is_accepted, search
from stepdown.builder.engine.seeds import strong_models
from stepdown.builder.engine.workloads import LoadedWorkload
from stepdown.builder.errors import Interrupted
from stepdown.builder.records import Instance, Outcome, Sample, Trajectory, Trial, Verdict
from stepdown.builder.run.budget import BudgetGuard
from stepdown.builder.run.ledger import KEPT, InstanceRecord, Ledger, Purpose, TrialRecord
from stepdown.judges.panel import rule_on_case


@dataclass(frozen=True, slots=True)
class RunContext:
    """What all instances of a run share."""

    protocol: ProtocolConfig
    ledger: Ledger
    cache: Cache
    provider: Provider
    hints: HintSource | None
    """None where every step starts at the cheapest tier."""
    stop: threading.Event
    """Set from outside to end the work: no further trial is begun."""
    on_call: OnCall | None = None
    on_lock: Callable[[], None] = lambda: None
    """Told whenever a step's search has ended."""
    budget: BudgetGuard | None = None
    """The run's budget; None: without limit."""


def search_rules(protocol: ProtocolConfig) -> SearchRules:
    """The search's rules as the config states them."""
    rules, pool = protocol.rules, protocol.pool
    return SearchRules(
        cascades=[[model.name for model in tier.models[: rules.cascade]] for tier in pool.tiers[:-1]],
        same_length=rules.step_rule == "same",
        passes=rules.acceptance.passes,
        of=rules.acceptance.of,
    )


class _NoSeed(Exception):
    """None of the instance's seed trajectories passed."""


Execute = Callable[[Replayer], Outcome]
"""Executes a trajectory by a replayer, that of the thread it is called in."""

_Place = tuple[Purpose, int, int, str, int]
"""What tells a trial of an instance from the others: purpose, step, tier, model, sample."""


def _place(purpose: Purpose, trial: Trial) -> _Place:
    return purpose, trial.step, trial.tier, trial.model, trial.sample.number


@dataclass(frozen=True, slots=True)
class _Executor:
    """What one thread executes trials with."""

    calls: Calls
    replayer: Replayer


class InstanceLabelling:
    """The labelling of one instance, from its record on. Trials that are in the ledger are not executed again.

    The search is a function of outcomes, so going through it with the recorded ones arrives where it was interrupted.
    """

    def __init__(
        self, record: InstanceRecord, instance: Instance, workload: LoadedWorkload, context: RunContext
    ) -> None:
        self._record, self._instance, self._workload, self._context = record, instance, workload, context
        self._ledger = context.ledger
        self._pool: Pool = context.protocol.pool
        self._rules = search_rules(context.protocol)
        self._own = threading.local()
        self._question_locks = QuestionLocks() if context.protocol.rules.cascade_parallel else None
        self._recorded: dict[_Place, TrialRecord] = {}
        for trial in context.ledger.trials(record.id):
            if not trial.superseded:
                self._recorded[_place(trial.purpose, trial.trial)] = trial
        # The ledger's id of each trajectory that may become `current`, by identity.
        self._ids: list[tuple[Trajectory, int]] = []
        # The current trajectory at each step under search.
        self._currents: dict[int, Trajectory] = {}
        self._strong = ""
        self._step = 0

    def run(self) -> None:
        """Label the instance, or record why it has no labels. Raises RunStopped, BadInput or Interrupted."""
        try:
            seed = self._seed()
            with self._probing() as rules:
                found = search(seed, self._strong, rules, lambda i: self._hint(i, seed), self._trial)
            self._confirm(found)
            self._control(found)
        except Blocked as blocked:
            self._ledger.block(self._record.id, blocked.reason)
        except _NoSeed as none:
            self._ledger.drop(self._record.id, str(none))
        else:
            self._context.on_lock()
            self._ledger.finish(self._record.id, self._id_of(found.trajectory), found.locks)

    @property
    def _executor(self) -> _Executor:
        """This thread's own calls and replayer."""
        if not hasattr(self._own, "executor"):
            context, harness = self._context, self._workload.harness
            calls = Calls(
                self._instance,
                harness,
                context.provider,
                context.cache,
                context.on_call,
                context.budget,
                self._question_locks,
            )
            panel, subject = context.protocol.judge, "/".join(self._instance.key)
            judge = partial(rule_on_case, panel=panel, source=calls, subject=subject) if panel else None
            self._own.executor = _Executor(calls, Replayer(self._instance, harness, self._pool, calls, judge))
        executor: _Executor = self._own.executor
        return executor

    @contextmanager
    def _probing(self) -> Iterator[SearchRules]:
        """The rules of the search; where the config asks for it, with threads that probe a tier's models together."""
        if not self._context.protocol.rules.cascade_parallel:
            yield self._rules
            return
        with ThreadPoolExecutor(max(map(len, self._rules.cascades))) as threads:
            # All of them are waited for: which trials are recorded must not depend on which was the fastest.
            yield replace(self._rules, each=lambda draw, models: list(threads.map(draw, models)))

    # The seed

    def _seed(self) -> Trajectory:
        """The first trajectory that passes in a fresh episode. Sets the instance's strong model."""
        reason = self._workload.seeds.why_none(self._instance.id) if self._workload.seeds else "no seed"
        unknown = ""
        for outcome, trial_id, model in self._seed_attempts():
            if outcome.verdict is Verdict.PASS:
                self._strong = model
                self._ids.append((outcome.trajectory, trial_id))
                if self._record.seed != trial_id:
                    self._ledger.set_seed(self._record.id, trial_id)
                return outcome.trajectory
            if outcome.verdict is Verdict.TECHNICAL:
                unknown = unknown or outcome.reason
            why = outcome.reason if outcome.verdict is Verdict.INCOMPLETE else outcome.verdict.value
            reason = f"no seed passed: {why}"
        if unknown:
            raise Blocked(0, self._pool.strong, unknown)
        raise _NoSeed(reason)

    def _seed_attempts(self) -> Iterator[tuple[Outcome, int, str]]:
        """Seed trajectories in order, each as its verification in a fresh episode leaves it, with its trial's id."""
        if self._workload.seeds is not None:
            for number, imported in enumerate(self._workload.seeds.of(self._instance.id)):
                trial = self._seed_trial(imported.model, number)
                verify = partial(Replayer.verify, responses=imported.responses, model=imported.model)
                outcome, trial_id = self._once(Purpose.SEED, trial, verify)
                yield outcome, trial_id, imported.model
            return
        for model in strong_models(self._workload.config.seeds, self._pool):
            for number in range(self._workload.config.seeds.attempts):
                trial = self._seed_trial(model, number)
                outcome, trial_id = self._once(
                    Purpose.SEED, trial, partial(Replayer.collect, model=model, attempt=number)
                )
                if outcome.verdict is Verdict.PASS:
                    verified = self._verified(outcome.trajectory, trial)
                    outcome = replace(verified, trajectory=outcome.trajectory)
                yield outcome, trial_id, model

    def _seed_trial(self, model: str, number: int) -> Trial:
        return Trial(0, self._pool.strong, model, None, Sample(Purpose.SEED, number))

    def _verified(self, seed: Trajectory, trial: Trial) -> Outcome:
        """A collected seed's second execution: its responses, in a fresh episode."""
        responses = [step.response for step in seed]
        outcome, _ = self._once(
            Purpose.VERIFY, trial, lambda replayer: replayer.verify(responses, trial.model, recorded=seed)
        )
        return outcome

    # The search's questions

    def _hint(self, step: int, seed: Trajectory) -> int | None:
        if self._context.hints is None:
            return None
        asked, tier = self._ledger.hint(self._record.id, step)
        if not asked:
            tier = self._context.hints.ask(self._instance, step, seed[step - 1], self._executor.calls)
            self._ledger.record_hint(self._record.id, step, tier, self._executor.calls.take_receipt())
        return tier

    def _trial(self, current: Trajectory, trial: Trial) -> Outcome:
        if trial.step != self._step:
            if self._step:
                self._context.on_lock()
            self._step = trial.step
        self._currents[trial.step] = current
        base = self._id_of(current)
        outcome, trial_id = self._once(
            Purpose.SEARCH, trial, lambda replayer: replayer.run(current, trial, self._strong), base
        )
        if is_accepted(outcome, trial.limit, self._rules):
            self._ids.append((outcome.trajectory, trial_id))
        return outcome

    def _id_of(self, trajectory: Trajectory) -> int:
        return next(number for known, number in reversed(self._ids) if known is trajectory)

    # Evidence beside the labels

    def _confirm(self, found: SearchResult) -> None:
        """Execute the final mixed trajectory afresh, each step by its lock."""
        locks, limit = found.locks, len(found.trajectory)
        for number in range(self._context.protocol.rules.confirm):
            trial = Trial(1, locks[0].tier, locks[0].model, limit, Sample("confirm", number))
            self._known(
                Purpose.CONFIRM,
                trial,
                partial(Replayer.repeat, trial=trial, assigned=lambda step: locks[step - 1].model),
            )

    def _control(self, found: SearchResult) -> None:
        """Draw the strong model afresh at the steps that stayed strong, in place of the candidates that failed."""
        for step, lock in enumerate(found.locks, 1):
            for number in range(self._context.protocol.rules.control if lock.tier == self._pool.strong else 0):
                current = self._currents[step]
                trial = Trial(step, lock.tier, self._strong, len(current), Sample("control", number))
                run = partial(Replayer.run, current=current, trial=trial, strong=self._strong)
                self._known(Purpose.CONTROL, trial, run, base=self._id_of(current))

    def _known(self, purpose: Purpose, trial: Trial, execute: Execute, base: int | None = None) -> None:
        """Execute and record what must come to a verdict. Raises Blocked where it is technical."""
        outcome, _ = self._once(purpose, trial, execute, base)
        if outcome.verdict is Verdict.TECHNICAL:
            raise Blocked(trial.step, trial.tier, outcome.reason)

    # Every execution is recorded before its outcome is acted upon, and made once

    def _once(self, purpose: Purpose, trial: Trial, execute: Execute, base: int | None = None) -> tuple[Outcome, int]:
        known = self._recorded.get(_place(purpose, trial))
        if known is not None:
            return self._recalled(known), known.id
        if self._context.stop.is_set():
            raise Interrupted("stopped")
        executor = self._executor
        outcome = execute(executor.replayer)
        accepted = is_accepted(outcome, trial.limit, self._rules)
        trial_id = self._ledger.record(
            self._record.id, purpose, trial, outcome, executor.calls.take_receipt(), accepted=accepted, base=base
        )
        return outcome, trial_id

    def _recalled(self, known: TrialRecord) -> Outcome:
        kept = known.accepted and known.purpose in KEPT
        trajectory = self._ledger.trajectory(known.id, self._workload.harness.mask) if kept else ()
        return Outcome(known.verdict, trajectory, known.reason, known.grading)
