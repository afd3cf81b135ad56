"""What the search, the seeds and their verification ask for: whole executions of one instance, each to an outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from stepdown.builder.config.pool import Pool
from stepdown.builder.engine.calls import Calls, NoAnswer
from stepdown.builder.engine.replay.episodes import Episodes, Judge, Signal
from stepdown.builder.engine.replay.live import Assigned, LiveSteps, Made
from stepdown.builder.engine.replay.outcomes import execute_to_outcome
from stepdown.builder.engine.replay.recorded import Diverged, RecordedSteps
from stepdown.builder.engine.volatile import InstanceMask
from stepdown.builder.records import Instance, Outcome, Response, Sample, Trajectory, Trial, Verdict
from stepdown.harnesses.base import Harness

MOST_SEED_CALLS = 1000
"""Of one attempt at an instance's seed: an episode that never halts must end some day."""

UNREPEATABLE = "it can not be replayed: played once more, what followed was not the same"
"""Why a candidate fails whose trial was accepted otherwise."""


class Replayer:
    """Executes the trajectories of one instance. Used by one thread."""

    def __init__(
        self,
        instance: Instance,
        harness: Harness,
        pool: Pool,
        calls: Calls,
        judge: Judge | None = None,
        stop: Signal | None = None,
        mask: InstanceMask | None = None,
    ) -> None:
        """`judge` is asked about the cases of episodes that have one. Once `stop` is set, no further step is begun.

        `mask` is the instance's, which all its threads share.
        """
        self._harness, self._pool, self._calls = harness, pool, calls
        self._episodes = Episodes(instance, harness, pool, calls, judge, stop, mask)
        self._recorded = RecordedSteps(self._episodes, harness)
        self._live = LiveSteps(self._episodes, pool, calls, harness.multi_step)

    def run(self, current: Trajectory, trial: Trial, strong: str) -> Outcome:
        """Execute a trial: `current` up to its step, the candidate at the step, the strong model after it."""

        def execute() -> Outcome:
            with self._recorded.open_at(current, trial.step) as episode:
                return self._live.go_on(episode, current, trial, _first_then(trial, strong))

        return self._execute_to_outcome(execute)

    def probe(self, current: Trajectory, trial: Trial, strong: str, is_accepted: Callable[[Outcome], bool]) -> Outcome:
        """Execute a trial whose step is to be locked where the outcome is accepted.

        Later trials replay its step, and the steps after it for as long as these stay strong. So what is accepted is
        played once more, without a call, and what does not come out the same is a fail: a step that shows random
        numbers would block its instance for ever.
        """
        outcome = self.run(current, trial, strong)
        if not is_accepted(outcome):
            return outcome
        accepted = outcome.trajectory

        def replay() -> Outcome:
            try:
                self._recorded.replay_from(accepted, trial.step + 1)
            except Diverged as diverged:
                if diverged.step < trial.step:
                    raise
                return replace(outcome, verdict=Verdict.FAIL, reason=UNREPEATABLE, cut_off=False)
            return outcome

        return self._execute_to_outcome(replay) if len(accepted) > trial.step else outcome

    def collect(self, model: str, attempt: int) -> Outcome:
        """Make a whole trajectory by one model, of at most MOST_SEED_CALLS calls.

        Incomplete where the model is a pseudo-model that has no answer for this instance.
        """
        sample = Sample("seed", attempt)
        trial = Trial(step=1, tier=self._pool.strong, model=model, limit=MOST_SEED_CALLS, sample=sample)

        def execute() -> Outcome:
            try:
                with self._episodes.open() as episode:
                    return self._live.go_on(episode, (), trial, _first_then(trial, model))
            except NoAnswer as error:
                return Outcome(Verdict.INCOMPLETE, reason=error.reason)

        return self._execute_to_outcome(execute)

    def repeat(self, trial: Trial, assigned: Callable[[int], str]) -> Outcome:
        """Make a whole trajectory from the start, each step afresh by the model that it is assigned to."""

        def execute() -> Outcome:
            with self._episodes.open() as episode:
                return self._live.go_on(episode, (), trial, lambda prefix, steps: assigned(len(steps) + 1))

        return self._execute_to_outcome(execute)

    def go_on(self, current: Trajectory, trial: Trial, made: Made) -> Outcome:
        """Go on from `current` up to the trial's step, every step by the trial's model; `made` is told of each step."""

        def execute() -> Outcome:
            with self._recorded.open_at(current, trial.step) as episode:
                return self._live.go_on(episode, current, trial, lambda prefix, steps: trial.model, made)

        return self._execute_to_outcome(execute)

    def route(self, choose: Assigned, made: Made, sample: Sample, limit: int) -> Outcome:
        """Make a whole trajectory from the start, each step by the model that `choose` names for it.

        `made` is told of each step and its number before it is acted upon. An environment that is lost is begun anew:
        `choose` is then asked about the first step again.
        """
        trial = Trial(step=1, tier=self._pool.strong, model="", limit=limit, sample=sample)

        def execute() -> Outcome:
            with self._episodes.open() as episode:
                return self._live.go_on(episode, (), trial, choose, made)

        return self._execute_to_outcome(execute)

    def verify(self, responses: Sequence[Response], model: str, recorded: Trajectory | None = None) -> Outcome:
        """Replay responses from the start in a fresh episode, to the official verdict.

        Where there is a recorded trajectory, every live observation must equal the recorded one. The verdict is
        incomplete where the responses go on after the agent has halted, or end before it halts.

        For a harness that finds volatile text they are replayed twice. What differs becomes the instance's mask; a
        difference that is not volatile text makes the verdict incomplete.
        """
        play = self._recorded.play_back_twice if self._harness.finds_volatile else self._recorded.play_back
        return self._execute_to_outcome(lambda: play(responses, model, recorded))

    def _execute_to_outcome(self, execute: Callable[[], Outcome]) -> Outcome:
        return execute_to_outcome(execute, self._harness, self._calls)


def _first_then(trial: Trial, model: str) -> Assigned:
    """The trial's own model at its step, and another one from there on."""
    return lambda prefix, steps: trial.model if len(steps) == trial.step - 1 else model
