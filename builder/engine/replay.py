"""Executes one trajectory in a live environment of its harness, each step by the model that it is assigned to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from stepdown.builder.cache.question import Question
from stepdown.builder.common.faults import place_of, said, whole_traceback
from stepdown.builder.common.secrets import SECRETS
from stepdown.builder.config.pool import Pool
from stepdown.builder.digests import masked
from stepdown.builder.engine.calls import Calls, NoAnswer
from stepdown.builder.engine.divergence import first_difference
from stepdown.builder.engine.reasoning import own_reasoning
from stepdown.builder.engine.volatile import InstanceMask
from stepdown.builder.errors import Interrupted, Lost, StepdownError, Technical
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
from stepdown.harnesses.checked import opened
from stepdown.judges.case import JudgeCase

_EXECUTIONS = 5
"""How often a trial is executed whose environment is lost each time. The waits between let a daemon restart."""

_BESIDE = Sample("beside")
"""What an episode asks beside its steps is asked once, whatever trial it is asked in."""

MOST_SEED_CALLS = 1000
"""Of one attempt at an instance's seed: an episode that never halts must end some day."""

_LONGEST_REASON = 300
"""Characters of the reason that names a harness's own error."""
UNREPEATABLE = "it can not be replayed: played once more, what followed was not the same"
"""Why a candidate fails whose trial was accepted otherwise."""

Assigned = Callable[[Prefix, Sequence[Step]], str]
"""Names the model of the next step, from what it will be shown and the steps before it."""
Judge = Callable[[JudgeCase], Ruling]
"""Gives a verdict on a case; technical where that is not possible."""


class Signal(Protocol):
    """Says whether to stop: an event, or something that watches several."""

    def is_set(self) -> bool: ...


class _Halted(Exception):
    """The trial is over: its outcome is certain."""

    def __init__(self, ruling: Ruling, cut_off: bool = False) -> None:
        self.ruling, self.cut_off = ruling, cut_off


class _Diverged(Technical):
    """A recorded step, replayed, did not come out as it was recorded."""

    def __init__(self, reason: str, step: int) -> None:
        super().__init__(f"replay diverged: {reason}")
        self.step, self.difference = step, reason


class Replayer:
    """Executes the trajectories of one instance. Used by one thread.

    It keeps two checkpoints, at the step under search and after a candidate for it that was accepted, so that the
    commands of locked steps are run once for each lock and not once for each trial. Where the harness cannot capture
    its state, every trial replays the locked steps.
    """

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
        self._instance, self._harness, self._pool, self._calls = instance, harness, pool, calls
        self._judge, self._stop = judge, stop or threading.Event()
        self._mask = mask or InstanceMask(harness)
        self._shapes: set[str] = set()
        """Shapes of volatile text that differed in the replays so far."""
        self._kept: tuple[tuple[Trajectory, Checkpoint], ...] = ()

    # What the search, the seeds and their verification ask for

    def run(self, current: Trajectory, trial: Trial, strong: str) -> Outcome:
        """Execute a trial: `current` up to its step, the candidate at the step, the strong model after it."""

        def execute() -> Outcome:
            with self._open_episode_at(current, trial.step) as episode:
                return self._go_on(episode, current, trial, _first_then(trial, strong))

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
                with self._open_episode_at(accepted, trial.step + 1) as episode:
                    for step in range(trial.step + 2, len(accepted) + 1):
                        self._replay_step(episode, accepted, step - 1)
                        self._read_recorded(episode, accepted, step)
                    return outcome
            except _Diverged as diverged:
                if diverged.step < trial.step:
                    raise
                return Outcome(Verdict.FAIL, accepted, UNREPEATABLE, outcome.grading)

        return self._execute_to_outcome(replay) if len(accepted) > trial.step else outcome

    def collect(self, model: str, attempt: int) -> Outcome:
        """Make a whole trajectory by one model, of at most MOST_SEED_CALLS calls.

        Incomplete where the model is a pseudo-model that has no answer for this instance.
        """
        sample = Sample("seed", attempt)
        trial = Trial(step=1, tier=self._pool.strong, model=model, limit=MOST_SEED_CALLS, sample=sample)

        def execute() -> Outcome:
            try:
                with self._opened() as episode:
                    return self._go_on(episode, (), trial, _first_then(trial, model))
            except NoAnswer as error:
                return Outcome(Verdict.INCOMPLETE, reason=error.reason)

        return self._execute_to_outcome(execute)

    def repeat(self, trial: Trial, assigned: Callable[[int], str]) -> Outcome:
        """Make a whole trajectory from the start, each step afresh by the model that it is assigned to."""

        def execute() -> Outcome:
            with self._opened() as episode:
                return self._go_on(episode, (), trial, lambda prefix, steps: assigned(len(steps) + 1))

        return self._execute_to_outcome(execute)

    def route(self, choose: Assigned, made: Callable[[Step, int], None], sample: Sample, limit: int) -> Outcome:
        """Make a whole trajectory from the start, each step by the model that `choose` names for it.

        `made` is told of each step and its number before it is acted upon. An environment that is lost is begun anew:
        `choose` is then asked about the first step again.
        """
        trial = Trial(step=1, tier=self._pool.strong, model="", limit=limit, sample=sample)

        def execute() -> Outcome:
            with self._opened() as episode:
                return self._go_on(episode, (), trial, choose, made)

        return self._execute_to_outcome(execute)

    def verify(self, responses: Sequence[Response], model: str, recorded: Trajectory | None = None) -> Outcome:
        """Replay responses from the start in a fresh episode, to the official verdict.

        Where there is a recorded trajectory, every live observation must equal the recorded one. The verdict is
        incomplete where the responses go on after the agent has halted, or end before it halts.

        For a harness that finds volatile text they are replayed twice. What differs becomes the instance's mask; a
        difference that is not volatile text makes the verdict incomplete.
        """

        def execute(against: Trajectory | None = recorded) -> Outcome:
            with self._opened() as episode:
                return self._play_back(episode, responses, model, against)

        if not self._harness.finds_volatile:
            return self._execute_to_outcome(execute)
        return self._execute_to_outcome(lambda: self._verify_twice(execute, recorded))

    def _verify_twice(self, play: Callable[[Trajectory | None], Outcome], recorded: Trajectory | None) -> Outcome:
        """Play responses back twice, and keep the shapes of what differs from the recorded or the first time."""
        self._shapes.clear()
        try:
            first = play(recorded)
            second = play(recorded or first.trajectory) if first.verdict is Verdict.PASS else first
        except _Diverged as diverged:
            return Outcome(Verdict.INCOMPLETE, reason=f"it can not be replayed: {diverged.difference}")
        if first.verdict is Verdict.PASS and second.verdict is not Verdict.PASS:
            return Outcome(Verdict.INCOMPLETE, reason=f"it does not pass every time: {second.reason}")
        self._mask.keep(self._shapes)
        return first

    @contextmanager
    def _opened(self, at: Checkpoint | None = None) -> Iterator[Episode]:
        """An episode of the instance, under its mask and with models for what it asks beside its steps."""
        with opened(self._harness, self._instance, at, self._mask.mask) as episode:
            episode.answer_beside(self._ask_beside)
            yield episode

    def _execute_to_outcome(self, execute: Callable[[], Outcome]) -> Outcome:
        """Execute a trajectory: the outcome is technical where the apparatus broke. What stops the run is raised.

        Where its environment is lost the trial is executed again from its checkpoint. No call is paid for twice, since
        the answers so far are in the cache.
        """
        try:
            return self._retry_where_lost(execute)
        except Technical as error:
            self._calls.note_failed([SECRETS.hidden(attempt) for attempt in error.attempts])
            return Outcome(Verdict.TECHNICAL, reason=SECRETS.hidden(error.reason))
        except StepdownError:
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # it may call sys.exit, or be cancelled: the run is not
            # A harness is anybody's code and reads hostile data: its faults must not end the work on other instances.
            # The reason is evidence and names no folder of this machine; the traceback goes to the ledger only.
            self._calls.note_failed([whole_traceback(error)])
            place = place_of(error, type(self._harness).__module__)
            broken = f"the harness broke: {f'{place}: ' if place else ''}{said(error)}"
            return Outcome(Verdict.TECHNICAL, reason=broken[:_LONGEST_REASON])

    def _retry_where_lost(self, execute: Callable[[], Outcome]) -> Outcome:
        try:
            return execute()
        except Lost as error:
            return self._execute_again(execute, error)

    def _execute_again(self, execute: Callable[[], Outcome], first: Lost) -> Outcome:
        """Execute a trajectory until its environment is not lost, after the first time that it was."""
        lost: list[str] = []
        before = [first]

        def attempt() -> Outcome:
            if before:
                raise before.pop()
            return execute()

        retrying = Retrying(
            retry=retry_if_exception_type(Lost),
            stop=stop_after_attempt(_EXECUTIONS),
            wait=wait_exponential(max=8),
            before_sleep=lambda state: lost.append(
                SECRETS.hidden(str(state.outcome.exception())) if state.outcome else ""
            ),
            reraise=True,
        )
        try:
            return retrying(attempt)
        finally:
            self._calls.note_failed(lost)

    # One trajectory, from a live step on

    def _go_on(
        self,
        episode: Episode,
        current: Trajectory,
        trial: Trial,
        assigned: Assigned,
        made: Callable[[Step, int], None] = lambda step, number: None,
    ) -> Outcome:
        """Make the steps from the trial's on, each by the model that it is assigned to; `made` is told of each."""
        steps = list(current[: trial.step - 1])
        live = episode.prefix()
        served = current[trial.step - 1].prefix if current else live
        try:
            while True:
                self._check_stop()
                model = assigned(served, steps)
                response = self._ask(model, served, steps, trial.sample, current)
                steps.append(Step(served, response, model))
                made(steps[-1], len(steps))
                self._act(episode, response)
                if len(steps) == trial.limit:
                    raise _Halted(Ruling(Verdict.INCOMPLETE, f"stopped at the limit of {trial.limit} calls"))
                live, served = self._read_next_prefix(episode, live, served)
        except _Halted as end:
            return _outcome(end.ruling, steps, end.cut_off)

    def _check_stop(self) -> None:
        """Raises Interrupted where the run is to stop: the trial is not recorded, and its answers are in the cache."""
        if self._stop.is_set():
            raise Interrupted("stopped")

    def _act(self, episode: Episode, response: Response) -> None:
        """Act on one response. Raises _Halted as soon as the trial's outcome is certain."""
        if without := no_answer(response):
            raise _Halted(without)
        going = episode.advance(response)
        if certain := episode.doomed():
            raise _Halted(certain, cut_off=going)
        if not going:
            raise _Halted(self._rule(episode, episode.verdict))

    @staticmethod
    def _read_next_prefix(episode: Episode, live: Prefix, served: Prefix) -> tuple[Prefix, Prefix]:
        """The next live prefix, and the one that a model is shown: the recorded messages so far, then the live ones."""
        following = episode.prefix()
        if live.exact == served.exact or not following.grew_from(live):
            return following, following
        added = following.messages[len(live.messages) :]
        return following, served.extend(added).with_tools(following.tools)

    def _ask(self, name: str, prefix: Prefix, before: Sequence[Step], sample: Sample, current: Trajectory) -> Response:
        reasoning = own_reasoning(name, prefix, before)
        # A trial is stopped at its current trajectory's length: nothing goes on from the call before that.
        grows = self._harness.multi_step and len(before) + 1 != len(current)
        question = self._calls.question(
            self._pool.by_name[name], prefix, len(before) + 1, sample, reasoning, grows=grows
        )
        known = _from_current(question, current)
        return known if known is not None else self._calls.fetch(question).response

    def _ask_beside(self, name: str, prefix: Prefix) -> Response:
        """A model's answer to a call that is no step: cached and counted, and the same wherever the call is."""
        shown = prefix if self._mask.mask is None else Prefix.start(prefix.messages, prefix.tools, self._mask.mask)
        model = self._pool.by_name[name]
        return self._calls.fetch(self._calls.question(model, shown, 0, _BESIDE)).response

    # Recorded steps

    def _play_back(
        self, episode: Episode, responses: Sequence[Response], model: str, recorded: Trajectory | None
    ) -> Outcome:
        steps: list[Step] = []
        going = True
        for number, response in enumerate(responses, 1):
            if not going:
                return Outcome(Verdict.INCOMPLETE, reason=f"the agent halts before step {number}, but steps follow")
            self._check_stop()
            prefix = self._read_recorded(episode, recorded, number) if recorded is not None else episode.prefix()
            steps.append(Step(prefix, response, model))
            if without := no_answer(response):
                return _outcome(without, ())
            if recorded is not None and number < len(recorded):
                episode.expect(recorded[number].prefix)
            going = episode.advance(response)
        if going:
            return Outcome(Verdict.INCOMPLETE, reason="the agent has not halted after the last step")
        return _outcome(self._rule(episode, episode.seed_verdict), steps)

    def _rule(self, episode: Episode, own: Callable[[], Ruling]) -> Ruling:
        """Rule on an episode that has ended: by the judge where it has a case for one, else by its own predicate."""
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
    def _open_episode_at(self, current: Trajectory, step: int) -> Iterator[Episode]:
        """An episode in which the steps before `step` have been replayed with their recorded responses."""
        nearest = self._nearest_checkpoint(current[: step - 1])
        done, checkpoint = (len(nearest[0]), nearest[1]) if nearest is not None else (0, None)
        with self._opened(checkpoint) as episode:
            for number in range(done + 1, step):
                self._read_recorded(episode, current, number)
                self._replay_step(episode, current, number)
            self._read_recorded(episode, current, step)
            if done < step - 1 and (taken := episode.checkpoint()) is not None:
                before = () if nearest is None else (nearest,)
                self._kept = (*before, (current[: step - 1], taken))
            yield episode

    def _replay_step(self, episode: Episode, trajectory: Trajectory, step: int) -> None:
        """Act on a recorded response, after which the agent went on."""
        self._check_stop()
        episode.expect(trajectory[step].prefix)
        if not episode.advance(trajectory[step - 1].response):
            raise _Diverged(f"the agent halts at step {step}", step)

    def _nearest_checkpoint(self, replayed: Trajectory) -> tuple[Trajectory, Checkpoint] | None:
        """The kept checkpoint that holds the most of the steps to be replayed, with these steps."""

        def holds(steps: Trajectory) -> bool:
            return len(steps) <= len(replayed) and all(a is b for a, b in zip(steps, replayed, strict=False))

        return max((kept for kept in self._kept if holds(kept[0])), key=lambda kept: len(kept[0]), default=None)

    def _read_recorded(self, episode: Episode, trajectory: Trajectory, step: int) -> Prefix:
        """The recorded prefix of a step, which the live one must equal but for volatile text."""
        recorded = trajectory[step - 1].prefix
        episode.expect(recorded)
        live = episode.prefix()
        if live.canonical != recorded.canonical:
            shapes = self._harness.shapes_between(recorded, live)
            if shapes is not None:
                self._shapes |= shapes
                return recorded
            problem = f"the observation before step {step} is not the recorded one"
            raise _Diverged(f"{problem}: {first_difference(recorded, live)}", step - 1)
        return recorded


def _first_then(trial: Trial, model: str) -> Assigned:
    """The trial's own model at its step, and another one from there on."""
    return lambda prefix, steps: trial.model if len(steps) == trial.step - 1 else model


def _outcome(ruling: Ruling, steps: Sequence[Step], cut_off: bool = False) -> Outcome:
    """What an execution came to, without keys: a grader's words are anybody's."""
    reason = SECRETS.removed(ruling.reason) if ruling.reason else ""
    grading = masked(ruling.grading, SECRETS.removed) if ruling.grading is not None else None
    return Outcome(ruling.verdict, tuple(steps), reason, grading, cut_off)


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
