"""Recorded steps replayed: each observation must be the recorded one, and checkpoints save what was replayed before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from stepdown.builder.engine.divergence import first_difference
from stepdown.builder.engine.replay.episodes import Episodes
from stepdown.builder.engine.replay.outcomes import no_answer
from stepdown.builder.errors import Technical
from stepdown.builder.records import Outcome, Prefix, Response, Ruling, Step, Trajectory, Verdict
from stepdown.harnesses.base import Checkpoint, Episode, Harness


class Diverged(Technical):
    """A recorded step, replayed, did not come out as it was recorded."""

    def __init__(self, reason: str, step: int) -> None:
        super().__init__(f"replay diverged: {reason}")
        self.step, self.difference = step, reason


class RecordedSteps:
    """Replays the recorded steps of one instance's trajectories. Used by one thread.

    It keeps two checkpoints, at the step under search and after a candidate for it that was accepted, so that the
    commands of locked steps are run once for each lock and not once for each trial. Where the harness cannot capture
    its state, every trial replays the locked steps.
    """

    def __init__(self, episodes: Episodes, harness: Harness) -> None:
        self._episodes, self._harness = episodes, harness
        self._shapes: set[str] = set()
        """Shapes of volatile text that differed in the replays so far."""
        self._kept: tuple[tuple[Trajectory, Checkpoint], ...] = ()

    @contextmanager
    def open_at(self, current: Trajectory, step: int) -> Iterator[Episode]:
        """An episode in which the steps before `step` have been replayed with their recorded responses."""
        nearest = self._nearest_checkpoint(current[: step - 1])
        done, checkpoint = (len(nearest[0]), nearest[1]) if nearest is not None else (0, None)
        with self._episodes.open(checkpoint) as episode:
            for number in range(done + 1, step):
                self._read_recorded(episode, current, number)
                self._replay_step(episode, current, number)
            self._read_recorded(episode, current, step)
            if done < step - 1 and (taken := episode.checkpoint()) is not None:
                before = () if nearest is None else (nearest,)
                self._kept = (*before, (current[: step - 1], taken))
            yield episode

    def replay_from(self, trajectory: Trajectory, step: int) -> None:
        """Replay a trajectory up to its last prefix, the steps before `step` from a checkpoint where there is one.

        Raises Diverged where the observations do not come out as they were recorded.
        """
        with self.open_at(trajectory, step) as episode:
            for number in range(step + 1, len(trajectory) + 1):
                self._replay_step(episode, trajectory, number - 1)
                self._read_recorded(episode, trajectory, number)

    def _replay_step(self, episode: Episode, trajectory: Trajectory, step: int) -> None:
        """Act on a recorded response, after which the agent went on."""
        self._episodes.check_stop()
        episode.expect(trajectory[step].prefix)
        if not episode.advance(trajectory[step - 1].response):
            raise Diverged(f"the agent halts at step {step}", step)

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
            raise Diverged(f"{problem}: {first_difference(recorded, live)}", step - 1)
        return recorded

    # Whole trajectories

    def play_back(self, responses: Sequence[Response], model: str, recorded: Trajectory | None) -> Outcome:
        """Replay responses from the start in a fresh episode, to the official verdict. Raises Diverged.

        Where there is a recorded trajectory, every live observation must equal the recorded one.
        """
        with self._episodes.open() as episode:
            return self._play_back(episode, responses, model, recorded)

    def _play_back(
        self, episode: Episode, responses: Sequence[Response], model: str, recorded: Trajectory | None
    ) -> Outcome:
        steps: list[Step] = []
        going = True
        for number, response in enumerate(responses, 1):
            if not going:
                halted = f"the agent halts before step {number}, but steps follow"
                return self._episodes.outcome(episode, Ruling(Verdict.INCOMPLETE, halted), ())
            self._episodes.check_stop()
            prefix = self._read_recorded(episode, recorded, number) if recorded is not None else episode.prefix()
            steps.append(Step(prefix, response, model))
            if without := no_answer(response):
                return self._episodes.outcome(episode, without, ())
            if recorded is not None and number < len(recorded):
                episode.expect(recorded[number].prefix)
            going = episode.advance(response)
        if going:
            going_on = Ruling(Verdict.INCOMPLETE, "the agent has not halted after the last step")
            return self._episodes.outcome(episode, going_on, ())
        return self._episodes.outcome(episode, self._episodes.rule(episode, episode.seed_verdict), steps)

    def play_back_twice(self, responses: Sequence[Response], model: str, recorded: Trajectory | None) -> Outcome:
        """Play responses back twice, and keep the shapes of what differs from the recorded or the first time."""
        self._shapes.clear()
        try:
            first = second = self.play_back(responses, model, recorded)
            if first.verdict is Verdict.PASS:
                second = self.play_back(responses, model, recorded or first.trajectory)
        except Diverged as diverged:
            return Outcome(Verdict.INCOMPLETE, reason=f"it can not be replayed: {diverged.difference}")
        if first.verdict is Verdict.PASS and second.verdict is not Verdict.PASS:
            return Outcome(Verdict.INCOMPLETE, reason=f"it does not pass every time: {second.reason}")
        self._episodes.mask.keep(self._shapes)
        return first
