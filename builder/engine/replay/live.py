"""Steps made now: each prefix shown to a model, its answer acted upon, until the trial's outcome is certain."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stepdown.builder.cache.question import Question
from stepdown.builder.config.pool import Pool
from stepdown.builder.engine.calls import Calls
from stepdown.builder.engine.reasoning import own_reasoning
from stepdown.builder.engine.replay.episodes import Episodes
from stepdown.builder.engine.replay.outcomes import no_answer
from stepdown.builder.records import FIRST, Outcome, Prefix, Response, Ruling, Sample, Step, Trajectory, Trial, Verdict
from stepdown.harnesses.base import Episode

Assigned = Callable[[Prefix, Sequence[Step]], str]
"""Names the model of the next step, from what it will be shown and the steps before it."""
Made = Callable[[Step, int], Ruling | None]
"""Told of a step that was made, and its number, before it is acted upon; a ruling ends the execution in its place."""


class _Halted(Exception):
    """The trial is over: its outcome is certain."""

    def __init__(self, ruling: Ruling, cut_off: bool = False) -> None:
        self.ruling, self.cut_off = ruling, cut_off


class LiveSteps:
    """Makes the steps of one instance's trajectories. Used by one thread."""

    def __init__(self, episodes: Episodes, pool: Pool, calls: Calls, multi_step: bool) -> None:
        self._episodes, self._pool, self._calls, self._multi_step = episodes, pool, calls, multi_step

    def go_on(
        self,
        episode: Episode,
        current: Trajectory,
        trial: Trial,
        assigned: Assigned,
        made: Made = lambda step, number: None,
    ) -> Outcome:
        """Make the steps from the trial's on, each by the model that it is assigned to; `made` is told of each."""
        steps = list(current[: trial.step - 1])
        live = episode.prefix()
        served = current[trial.step - 1].prefix if current else live
        try:
            while True:
                self._episodes.check_stop()
                model = assigned(served, steps)
                response = self._ask(model, served, steps, trial.sample, current)
                steps.append(Step(served, response, model))
                if (ended := made(steps[-1], len(steps))) is not None:
                    raise _Halted(ended)
                self._act(episode, response)
                if len(steps) == trial.limit:
                    raise _Halted(Ruling(Verdict.INCOMPLETE, f"stopped at the limit of {trial.limit} calls"))
                live, served = self._read_next_prefix(episode, live, served)
        except _Halted as end:
            return self._episodes.outcome(episode, end.ruling, steps, end.cut_off)

    def _act(self, episode: Episode, response: Response) -> None:
        """Act on one response. Raises _Halted as soon as the trial's outcome is certain."""
        if without := no_answer(response):
            raise _Halted(without)
        going = episode.advance(response)
        if certain := episode.doomed():
            raise _Halted(certain, cut_off=going)
        if not going:
            raise _Halted(self._episodes.rule(episode, episode.verdict))

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
        grows = self._multi_step and len(before) + 1 != len(current)
        question = self._calls.question(
            self._pool.by_name[name], prefix, len(before) + 1, sample, reasoning, grows=grows
        )
        known = _from_current(question, current)
        return known if known is not None else self._calls.fetch(question).response


def _from_current(question: Question, current: Trajectory) -> Response | None:
    """`current`'s own response, where the question is its own: sample 0, the same model, the same prefix."""
    if question.sample != FIRST or len(current) < question.step:
        return None
    own = current[question.step - 1]
    if own.model != question.model.name or own.prefix.canonical != question.prefix.canonical:
        return None
    return own.response if question.served_by(own.prefix.exact, own.response) else None
