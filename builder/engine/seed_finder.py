"""Finds an instance's seed: tries its seed trajectories in order, and verifies them in a fresh episode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from stepdown.builder.engine.context import Job, RunContext
from stepdown.builder.engine.replay import Replayer
from stepdown.builder.engine.search import Blocked
from stepdown.builder.engine.seeds import SeedFile, strong_models
from stepdown.builder.engine.trials import TrialRecorder
from stepdown.builder.records import Outcome, Sample, Trajectory, Trial, Verdict
from stepdown.builder.run.ledger import Purpose


class NoSeed(Exception):
    """None of the instance's seed trajectories passed. Its text says why."""


@dataclass(frozen=True, slots=True)
class Seed:
    """A verified seed, and the strong model that made it."""

    trajectory: Trajectory
    model: str


class SeedFinder:
    """Finds the seed of one instance."""

    def __init__(self, job: Job, trials: TrialRecorder, context: RunContext) -> None:
        self._job, self._trials, self._ledger = job, trials, context.ledger
        self._pool = context.protocol.pool

    def find(self) -> Seed:
        """The first trajectory that passes in a fresh episode; the ledger is told which it is.

        Raises NoSeed, Blocked where technical outcomes leave it unknown, or Interrupted.
        """
        file = self._job.workload.seeds
        reason = file.why_none(self._job.instance.id) if file else "no seed"
        unknown = ""
        for model, outcome in self._attempts():
            if outcome.verdict is Verdict.PASS:
                return Seed(self._keep(outcome.trajectory), model)
            if outcome.verdict is Verdict.TECHNICAL:
                unknown = unknown or outcome.reason
            why = outcome.reason if outcome.verdict is Verdict.INCOMPLETE else outcome.verdict.value
            reason = f"no seed passed: {why}"
        if unknown:
            raise Blocked(0, self._pool.strong, unknown)
        raise NoSeed(reason)

    def _keep(self, seed: Trajectory) -> Trajectory:
        """Tell the ledger of the seed, and give it under the mask that was found when it was verified."""
        record, trial_id = self._job.record, self._trials.id_of(seed)
        if record.seed != trial_id:
            self._ledger.set_seed(record.id, trial_id)
        return self._trials.read_trajectory(trial_id) if self._job.workload.harness.finds_volatile else seed

    def _attempts(self) -> Iterator[tuple[str, Outcome]]:
        """Seed trajectories in order: who made each, and what its verification came to."""
        file = self._job.workload.seeds
        return self._play_imported(file) if file is not None else self._collect()

    def _play_imported(self, file: SeedFile) -> Iterator[tuple[str, Outcome]]:
        for number, imported in enumerate(file.read(self._job.instance.id)):
            verify = partial(Replayer.verify, responses=imported.responses, model=imported.model)
            yield imported.model, self._trials.execute(Purpose.SEED, self._trial(imported.model, number), verify)

    def _collect(self) -> Iterator[tuple[str, Outcome]]:
        seeds = self._job.workload.config.seeds
        for model in strong_models(seeds, self._pool):
            for number in range(seeds.attempts):
                trial = self._trial(model, number)
                collect = partial(Replayer.collect, model=model, attempt=number)
                outcome = self._trials.execute(Purpose.SEED, trial, collect)
                if outcome.verdict is Verdict.PASS:
                    outcome = replace(self._verify(outcome.trajectory, trial), trajectory=outcome.trajectory)
                yield model, outcome

    def _trial(self, model: str, number: int) -> Trial:
        return Trial(0, self._pool.strong, model, None, Sample(Purpose.SEED, number))

    def _verify(self, collected: Trajectory, trial: Trial) -> Outcome:
        """A collected seed's second execution: its responses, in a fresh episode."""
        responses = [step.response for step in collected]
        verify = partial(Replayer.verify, responses=responses, model=trial.model, recorded=collected)
        return self._trials.execute(Purpose.VERIFY, trial, verify)
