"""Labels one instance: find its seed, search, confirm, control."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from stepdown.builder.engine.ahead import Known, RunningAhead
from stepdown.builder.engine.context import Job, RunContext, search_rules
from stepdown.builder.engine.replay import Replayer
from stepdown.builder.engine.search import Blocked, SearchResult, SearchRules, Unforeseen, foreseen, is_accepted, search
from stepdown.builder.engine.seed_finder import NoSeed, Seed, SeedFinder
from stepdown.builder.engine.trials import Executed, Execution, TrialRecorder
from stepdown.builder.records import Outcome, Sample, Trajectory, Trial, Verdict
from stepdown.builder.run.ledger import Purpose


def label_instance(job: Job, context: RunContext) -> None:
    """Label an instance, or record why it has no labels. Raises RunStopped, BadInput or Interrupted."""
    InstanceLabelling(job, context).run()


class InstanceLabelling:
    """The labelling of one instance, from its record on. Trials that are in the ledger are not executed again."""

    def __init__(self, job: Job, context: RunContext) -> None:
        self._record, self._instance, self._context = job.record, job.instance, context
        self._protocol, self._ledger = context.protocol, context.ledger
        self._rules = search_rules(context.protocol)
        self._trials = TrialRecorder(job, context)
        self._seed_finder = SeedFinder(job, self._trials, context)
        # The current trajectory at each step under search, the step being searched last.
        self._currents: dict[int, Trajectory] = {}

    def run(self) -> None:
        """Label the instance, or record why it has no labels. Raises RunStopped, BadInput or Interrupted."""
        try:
            seed = self._seed_finder.find()
            found = self._search(seed)
            self._confirm(found)
            self._control(found, seed)
        except Blocked as blocked:
            self._ledger.block(self._record.id, blocked.reason)
            self._context.on_blocked(self._instance, blocked.reason)
        except NoSeed as none:
            self._ledger.drop(self._record.id, str(none))
        else:
            self._context.on_lock()
            self._ledger.finish(self._record.id, self._trials.id_of(found.trajectory), found.locks)

    # The search

    def _search(self, seed: Seed) -> SearchResult:
        with self._open_rules() as rules, self._open_ahead(seed) as ahead:
            return search(
                seed.trajectory,
                seed.model,
                rules,
                hint=lambda step: self._ask_hint(step, seed),
                run=lambda current, trial: self._probe(current, trial, seed, ahead),
            )

    @contextmanager
    def _open_rules(self) -> Iterator[SearchRules]:
        """The rules of the search; where the config asks for it, with threads that probe a tier's models together."""
        if not self._protocol.rules.cascade_parallel:
            yield self._rules
            return
        with ThreadPoolExecutor(max(map(len, self._rules.cascades))) as threads:
            # All of them are waited for: which trials are recorded must not depend on which was the fastest.
            yield replace(self._rules, each=lambda draw, models: list(threads.map(draw, models)))

    def _ask_hint(self, step: int, seed: Seed) -> int | None:
        if self._context.hints is None:
            return None
        was_asked, tier = self._ledger.hint(self._record.id, step)
        if not was_asked:
            calls = self._trials.calls
            tier = self._context.hints.ask(self._instance, step, seed.trajectory[step - 1], calls)
            self._ledger.record_hint(self._record.id, step, tier, calls.take_receipt())
        return tier

    def _probe(self, current: Trajectory, trial: Trial, seed: Seed, ahead: RunningAhead | None) -> Outcome:
        if self._currents and trial.step not in self._currents:
            self._context.on_lock()  # the step before it is decided
        self._currents[trial.step] = current
        execution = self._probing(current, trial, seed)
        if ahead is None:
            return self._trials.execute(Purpose.SEARCH, trial, execution, current)
        outcome = self._trials.execute(Purpose.SEARCH, trial, execution, current, partial(ahead.take, current, trial))
        ahead.note(trial, self._without_needless(outcome, trial))
        return outcome

    def _probing(self, current: Trajectory, trial: Trial, seed: Seed) -> Execution:
        accepts = partial(is_accepted, limit=trial.limit, rules=self._rules)
        return partial(Replayer.probe, current=current, trial=trial, strong=seed.model, is_accepted=accepts)

    # Ahead of the search

    @contextmanager
    def _open_ahead(self, seed: Seed) -> Iterator[RunningAhead | None]:
        """What executes trials ahead of the search, where the config asks for it."""
        if not self._context.speculate:
            yield None
            return

        def execute(current: Trajectory, trial: Trial, abandoned: threading.Event) -> Executed:
            return self._trials.execute_ahead(self._probing(current, trial, seed), abandoned)

        with RunningAhead(self._context.speculate, partial(self._foresee, seed), execute) as ahead:
            yield ahead

    def _foresee(self, seed: Seed, known: Known, most: int) -> list[tuple[Trajectory, Trial]]:
        def outcome_of(trial: Trial) -> Outcome | None:
            if (outcome := known(trial)) is not None:
                return outcome
            recorded = self._trials.recorded_verdict(Purpose.SEARCH, trial)
            if recorded is None:
                return None
            verdict, accepted = recorded
            if accepted:
                raise Unforeseen  # what follows starts from its trajectory, which is not read before it is needed
            return _rejected(verdict)

        return foreseen(seed.trajectory, seed.model, self._rules, self._known_hint, outcome_of, most)

    def _known_hint(self, step: int) -> int | None:
        if self._context.hints is None:
            return None
        was_asked, tier = self._ledger.hint(self._record.id, step)
        if not was_asked:
            raise Unforeseen
        return tier

    def _without_needless(self, outcome: Outcome, trial: Trial) -> Outcome:
        """An outcome as foresight needs it: of one that is not accepted, nothing is kept in memory."""
        return outcome if is_accepted(outcome, trial.limit, self._rules) else _rejected(outcome.verdict)

    # Evidence beside the labels

    def _confirm(self, found: SearchResult) -> None:
        """Execute the final mixed trajectory afresh, each step by its lock."""
        locks, limit = found.locks, len(found.trajectory)
        for number in range(self._protocol.rules.confirm):
            trial = Trial(1, locks[0].tier, locks[0].model, limit, Sample("confirm", number))
            repeat = partial(Replayer.repeat, trial=trial, assigned=lambda step: locks[step - 1].model)
            self._trials.execute_to_verdict(Purpose.CONFIRM, trial, repeat)

    def _control(self, found: SearchResult, seed: Seed) -> None:
        """Draw the strong model afresh at the steps that stayed strong, in place of the candidates that failed."""
        for step, lock in enumerate(found.locks, 1):
            for number in range(self._protocol.rules.control if lock.tier == self._protocol.pool.strong else 0):
                current = self._currents[step]
                trial = Trial(step, lock.tier, seed.model, len(current), Sample("control", number))
                run = partial(Replayer.run, current=current, trial=trial, strong=seed.model)
                self._trials.execute_to_verdict(Purpose.CONTROL, trial, run, base=current)


def _rejected(verdict: Verdict) -> Outcome:
    """An outcome that is not accepted, whatever its verdict was: pass too, where it took too many calls."""
    return Outcome(Verdict.FAIL if verdict is Verdict.PASS else verdict)
