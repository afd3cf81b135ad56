"""Probes: every model of the pool tried at labelled steps, so that their outcomes make a grid.

A probe of a step is the trial that the search would have executed there: the steps before it as they were locked, the
model at the step, the strong model after it, under the step's own limit of calls. A trial of the search is its own
probe. The strong model alone is drawn afresh: the answers of a seed are known to pass, which is why they are the seed.
Labels are found before, and nothing of them depends on a probe.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from stepdown.builder.config.protocol import RulesConfig
from stepdown.builder.engine.context import Job, RunContext, search_rules
from stepdown.builder.engine.progress import RunProgress
from stepdown.builder.engine.replay import Replayer
from stepdown.builder.engine.search import is_accepted
from stepdown.builder.engine.session import RunSession
from stepdown.builder.engine.trials import TrialRecorder
from stepdown.builder.records import FIRST, Sample, Trajectory, Trial, Verdict
from stepdown.builder.run.ledger import InstanceState, Purpose, TrialRecord, seed_model_of
from stepdown.builder.run.ledger.probed import Probed

_AFRESH = Sample(Purpose.PROBE)


def probed_steps(rules: RulesConfig, steps: int) -> range:
    """The numbers of the steps that are probed, of a trajectory of so many."""
    if rules.probe == "none":
        return range(0)
    return range(steps if rules.probe == "last" else 1, steps + 1)


class Probing:
    """Probes the finished instances of a run. What is recorded is not executed again."""

    def __init__(self, session: RunSession) -> None:
        self._session, self._ledger = session, session.run.ledger
        self._left: set[tuple[str, str]] = set()
        self.progress = RunProgress(counted="probes")

    def admit(self, again: bool) -> bool:
        """See which instances have steps that are not probed yet; whether any has. `again`: technical probes are
        executed anew.
        """
        counted = self._count()
        if again and any(one.technical for one in counted):
            self._ledger.forget_technical(Purpose.PROBE)
            counted = self._count()
        left = {one.instance for one in counted if one.tried < one.cells}
        done = self._ledger.instances(InstanceState.DONE) if left else ()
        self._left = {(record.benchmark, record.instance_id) for record in done if record.id in left}
        self.progress.total = len(self._left)
        return bool(self._left)

    def execute(self) -> None:
        """Probe what is not recorded yet. Raises RunStopped, BadInput, BudgetReached or Interrupted; the ledger then
        says where to go on.
        """
        if self._left:
            jobs = self._session.select_finished(self._left)
            self._session.work(jobs, probe_instance, lambda: bool(self._left), self.progress, self._note_done)

    def technical(self) -> int:
        """How many probes came to no verdict for technical reasons."""
        return sum(one.technical for one in self._count())

    def _count(self) -> list[Probed]:
        if self._session.protocol.rules.probe == "none":
            return []
        models = sum(1 for _ in self._session.protocol.pool.models())
        return self._ledger.probed.of_instances(models, self._session.protocol.rules.probe == "last")

    def _note_done(self, job: Job) -> None:
        self._left.discard(job.instance.key)
        self.progress.on_instance()


def probe_instance(job: Job, context: RunContext) -> None:
    """Probe the steps of one finished instance. Raises RunStopped, BadInput or Interrupted."""
    _InstanceProbing(job, context).run()


class _InstanceProbing:
    """Probes the steps of one finished instance."""

    def __init__(self, job: Job, context: RunContext) -> None:
        if job.record.final is None:
            raise ValueError(f"instance {job.record.instance_id!r} is finished without a trajectory")
        self._record, self._context = job.record, context
        self._recorder = TrialRecorder(job, context)
        self._final = self._recorder.read_trajectory(job.record.final)
        trials = [trial for trial in context.ledger.trials(job.record.id) if not trial.superseded]
        self._strong = seed_model_of(job.record, trials)
        self._searched = {trial.trial.step: trial for trial in trials if trial.purpose is Purpose.SEARCH}
        self._base: tuple[int, Trajectory] = (job.record.final, self._final)
        """The trajectory that the search had at the latest step that was probed, with its id."""

    def run(self) -> None:
        """Raises RunStopped, BadInput or Interrupted."""
        rules = search_rules(self._context.protocol)
        for step in probed_steps(self._context.protocol.rules, len(self._record.locks)):
            current = self._current_at(self._searched[step])
            for trial in self._trials(step, self._searched[step].trial.limit):
                if self._is_known(trial):
                    continue
                accepts = partial(is_accepted, limit=trial.limit, rules=rules)
                probe = partial(Replayer.probe, current=current, trial=trial, strong=self._strong, is_accepted=accepts)
                self._recorder.execute(Purpose.PROBE, trial, probe, base=self._final)
                self._context.on_lock()

    def _trials(self, step: int, limit: int | None) -> Iterator[Trial]:
        """One for every model of the pool, cheapest tier first."""
        for tier, model in self._context.protocol.pool.models():
            yield Trial(step, tier, model.name, limit, _AFRESH if model.name == self._strong else FIRST)

    def _is_known(self, trial: Trial) -> bool:
        """Whether the search came to a verdict on this trial itself."""
        found = self._recorder.recorded_verdict(Purpose.SEARCH, trial)
        return found is not None and found[0] is not Verdict.TECHNICAL

    def _current_at(self, searched: TrialRecord) -> Trajectory:
        """The trajectory that the search had at a step, by a trial of that step.

        What is locked before the step is the final trajectory's own, step for step: the environment that was replayed
        for the step before need not be begun anew.
        """
        if searched.base is None:
            raise ValueError(f"trial {searched.id} of the search started from no trajectory")
        if self._base[0] != searched.base:
            self._base = searched.base, self._recorder.read_trajectory(searched.base)
        locked = searched.trial.step - 1
        return (*self._final[:locked], *self._base[1][locked:])
