"""Runs one trajectory under an assignment of models to steps, in a live environment of its harness."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from stepdown.builder.cache.question import Question
from stepdown.builder.config.pool import Pool
from stepdown.builder.engine.calls import Calls, NoAnswer
from stepdown.builder.errors import Lost, StepdownError, Technical
from stepdown.builder.records import (
    FIRST,
    Instance,
    Outcome,
    Prefix,
    Response,
    Ruling,
    Sample,
    Step,
    Stop,
    Trajectory,
    Trial,
    Verdict,
)
from stepdown.harnesses.base import Checkpoint, Episode, Harness
from stepdown.judges.case import JudgeCase

_EXECUTIONS = 5
"""Of one trial, where its environment is lost each time. The waits between them give a daemon time to come back."""

Judge = Callable[[JudgeCase], Ruling]
"""Comes to a verdict on a case; technical where none could be come to."""


class _Halted(Exception):
    """The trial is over: its outcome is certain."""

    def __init__(self, ruling: Ruling) -> None:
        self.ruling = ruling


class Replayer:
    """Executes the trajectories of one instance. Used by one thread.

    It keeps one checkpoint, at the step under search, so that the commands of locked steps run once per lock and not
    once per trial; where the harness cannot capture its state, every trial replays the locked steps.
    """

    def __init__(
        self, instance: Instance, harness: Harness, pool: Pool, calls: Calls, judge: Judge | None = None
    ) -> None:
        """`judge` is asked about the cases of episodes that have one."""
        self._instance, self._harness, self._pool, self._calls = instance, harness, pool, calls
        self._judge = judge
        self._kept: tuple[Trajectory, Checkpoint] | None = None

    # What the search, the seeds and their verification ask for

    def run(self, current: Trajectory, trial: Trial, strong: str) -> Outcome:
        """A trial: `current` up to its step, the candidate at it, the strong model after it."""

        def execute() -> Outcome:
            with self._episode_at(current, trial.step) as episode:
                return self._go_on(episode, current, trial, lambda step: strong)

        return self._settled(execute)

    def collect(self, model: str, attempt: int) -> Outcome:
        """A whole trajectory made by one model, as far as the harness lets it go."""
        trial = Trial(step=1, tier=self._pool.strong, model=model, limit=None, sample=Sample("seed", attempt))

        def execute() -> Outcome:
            with self._harness.open(self._instance) as episode:
                return self._go_on(episode, (), trial, lambda step: model)

        return self._settled(execute)

    def repeat(self, trial: Trial, assigned: Callable[[int], str]) -> Outcome:
        """A whole trajectory from the start, each step made afresh by the model it is assigned to."""

        def execute() -> Outcome:
            with self._harness.open(self._instance) as episode:
                return self._go_on(episode, (), trial, assigned)

        return self._settled(execute)

    def verify(self, responses: Sequence[Response], model: str, recorded: Trajectory | None = None) -> Outcome:
        """Replay responses from the start in a fresh episode, to the official verdict.

        Every live observation must equal the recorded one where there is a recorded trajectory. Responses that go on
        after the agent halted, or end before it does, are no trajectory of this instance: incomplete.
        """

        def execute() -> Outcome:
            with self._harness.open(self._instance) as episode:
                return self._play_back(episode, responses, model, recorded)

        return self._settled(execute)

    def _settled(self, execute: Callable[[], Outcome]) -> Outcome:
        """The outcome of an execution: technical where the apparatus broke. What stops the run goes on upwards.

        Where an environment was lost the trial is executed again, from its checkpoint: no call is paid twice for that,
        since what was answered is in the cache.
        """
        try:
            return self._again_where_lost(execute)
        except Technical as error:
            self._calls.note_failed(error.attempts)
            return Outcome(Verdict.TECHNICAL, reason=error.reason)
        except StepdownError:
            raise
        except Exception as error:
            # A harness is anybody's code and lives on hostile data: its faults must not end other instances' work.
            broken = f"the harness broke: {type(error).__name__}: {error}"
            return Outcome(Verdict.TECHNICAL, reason=" ".join(broken.split())[:300])

    def _again_where_lost(self, execute: Callable[[], Outcome]) -> Outcome:
        lost: list[str] = []
        again = Retrying(
            retry=retry_if_exception_type(Lost),
            stop=stop_after_attempt(_EXECUTIONS),
            wait=wait_exponential(max=8),
            before_sleep=lambda state: lost.append(str(state.outcome.exception()) if state.outcome else ""),
            reraise=True,
        )
        try:
            return again(execute)
        finally:
            self._calls.note_failed(lost)

    # One trajectory, from a live step on

    def _go_on(self, episode: Episode, current: Trajectory, trial: Trial, assigned: Callable[[int], str]) -> Outcome:
        """The trial's model makes the episode's next step; later ones are made by the models they are assigned to."""
        steps = list(current[: trial.step - 1])
        live = episode.prefix()
        served = current[trial.step - 1].prefix if current else live
        model = trial.model
        try:
            while True:
                response = self._ask(model, served, len(steps) + 1, trial.sample, current)
                steps.append(Step(served, response, model))
                self._act(episode, response)
                if len(steps) == trial.limit:
                    raise _Halted(Ruling(Verdict.INCOMPLETE, f"stopped at the limit of {trial.limit} calls"))
                live, served = self._next(episode, live, served)
                model = assigned(len(steps) + 1)
        except _Halted as end:
            return _outcome(end.ruling, steps)

    def _act(self, episode: Episode, response: Response) -> None:
        """Advance by one response. Raises _Halted as soon as the trial's outcome is certain."""
        if without := no_answer(response):
            raise _Halted(without)
        going = episode.advance(response)
        if certain := episode.doomed():
            raise _Halted(certain)
        if not going:
            raise _Halted(self._ruling(episode, episode.verdict))

    @staticmethod
    def _next(episode: Episode, live: Prefix, served: Prefix) -> tuple[Prefix, Prefix]:
        """The next live prefix, and what is served for it: the recorded messages so far, then the live ones."""
        following = episode.prefix()
        if live.exact == served.exact or not following.grew_from(live):
            return following, following
        added = following.messages[len(live.messages) :]
        return following, served.extend(added).with_tools(following.tools)

    def _ask(self, name: str, prefix: Prefix, step: int, sample: Sample, current: Trajectory) -> Response:
        question = self._calls.question(self._pool.by_name[name], prefix, step, sample)
        known = _from_current(question, current)
        try:
            return known if known is not None else self._calls.fetch(question).response
        except NoAnswer as error:
            raise _Halted(Ruling(Verdict.INCOMPLETE, str(error))) from None

    # Recorded steps

    def _play_back(
        self, episode: Episode, responses: Sequence[Response], model: str, recorded: Trajectory | None
    ) -> Outcome:
        steps: list[Step] = []
        going = True
        for number, response in enumerate(responses, 1):
            if not going:
                return Outcome(Verdict.INCOMPLETE, reason=f"the agent halts before step {number}, but steps follow")
            prefix = episode.prefix()
            if recorded is not None:
                prefix = self._as_recorded(prefix, recorded, number)
            steps.append(Step(prefix, response, model))
            if without := no_answer(response):
                return _outcome(without, ())
            going = episode.advance(response)
        if going:
            return Outcome(Verdict.INCOMPLETE, reason="the agent has not halted after the last step")
        return _outcome(self._ruling(episode, episode.seed_verdict), steps)

    def _ruling(self, episode: Episode, own: Callable[[], Ruling]) -> Ruling:
        """The ruling on an episode that has ended: the judge's where it has a case to be judged, else its own."""
        case = episode.case()
        if case is None:
            return own()
        if self._judge is None:
            raise Technical("the workload has a case to be judged and the config has no judge")
        ruling = self._judge(case)
        if ruling.verdict is Verdict.TECHNICAL:
            raise Technical(ruling.reason)
        return ruling

    @contextmanager
    def _episode_at(self, current: Trajectory, step: int) -> Iterator[Episode]:
        """An episode in which the steps before `step` have been replayed with their recorded responses."""
        done, checkpoint = self._nearest(current[: step - 1])
        with self._harness.open(self._instance, checkpoint) as episode:
            for number in range(done + 1, step):
                self._as_recorded(episode.prefix(), current, number)
                if not episode.advance(current[number - 1].response):
                    raise Technical(f"replay diverged: the agent halts at step {number}")
            self._as_recorded(episode.prefix(), current, step)
            if done < step - 1 and (taken := episode.checkpoint()) is not None:
                self._kept = (current[: step - 1], taken)
            yield episode

    def _nearest(self, replayed: Trajectory) -> tuple[int, Checkpoint | None]:
        """How many of the steps to be replayed the kept checkpoint holds, and the checkpoint."""
        if self._kept is not None:
            steps, checkpoint = self._kept
            if len(steps) <= len(replayed) and all(a is b for a, b in zip(steps, replayed, strict=False)):
                return len(steps), checkpoint
        return 0, None

    @staticmethod
    def _as_recorded(live: Prefix, trajectory: Trajectory, step: int) -> Prefix:
        """The recorded prefix of a step, which the live one must equal under the mask."""
        recorded = trajectory[step - 1].prefix
        if live.canonical != recorded.canonical:
            raise Technical(f"replay diverged: the observation before step {step} is not the recorded one")
        return recorded


def _outcome(ruling: Ruling, steps: Sequence[Step]) -> Outcome:
    return Outcome(ruling.verdict, tuple(steps), ruling.reason, ruling.grading)


def no_answer(response: Response) -> Ruling | None:
    """The ruling on a response with which no episode can go on, whatever the workload; None for an answer."""
    if response.stop is Stop.REFUSED:
        return Ruling(Verdict.REFUSED, "the model refused")
    if response.stop is Stop.OVERFLOW:
        return Ruling(Verdict.FAIL, "the prefix does not fit the model's context")
    if not response.content.strip() and not response.tool_calls:
        # Also for later steps' sake: a provider that rejects empty messages would look like one that is down.
        return Ruling(Verdict.FAIL, "an empty answer")
    return None


def _from_current(question: Question, current: Trajectory) -> Response | None:
    """`current`'s own response, where the question is its own: sample 0, the same model, the same prefix."""
    if question.sample != FIRST or len(current) < question.step:
        return None
    own = current[question.step - 1]
    if own.model != question.model.name or own.prefix.canonical != question.prefix.canonical:
        return None
    return own.response if question.served_by(own.prefix.exact, own.response) else None
