"""One agent at work on one instance in a sandbox, from its first message to the grading of what it submits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from stepdown.builder.actions.forms import kept_as_text
from stepdown.builder.errors import Technical
from stepdown.builder.records import Instance, Prefix, Response, Ruling, Verdict
from stepdown.harnesses.base import Episode
from stepdown.harnesses.swebench.agent import AgentState, StepwiseAgent
from stepdown.harnesses.swebench.gradings import PatchGrading
from stepdown.harnesses.swebench.sandbox import Sandbox
from stepdown.harnesses.swebench.snapshots import Snapshot, Snapshots


class PatchGrader(Protocol):
    """Grades patches: `grading.Grader`."""

    def grade(self, instance: Instance, patch: bytes) -> PatchGrading: ...

    def verify(self, instance: Instance, patch: bytes, times: int = 0) -> PatchGrading: ...


@dataclass(frozen=True, slots=True, eq=False)
class EpisodeCheckpoint:
    """An episode's state after some steps. Never changed by use."""

    prefix: Prefix
    agent: AgentState
    responses: tuple[Response, ...]
    """All responses so far: what the state can be made of again where the snapshot is gone."""
    snapshot: Snapshot


class SWEBenchEpisode(Episode):
    """A live episode. Its sandbox is its own, and closed as soon as the agent has halted."""

    def __init__(
        self,
        instance: Instance,
        sandbox: Sandbox,
        agent: StepwiseAgent,
        shared: Shared,
        prefix: Prefix,
        responses: tuple[Response, ...] = (),
        snapshot: Snapshot | None = None,
        origin: Snapshot | None = None,
    ) -> None:
        """`snapshot` is what it goes on from; `origin` is what the sandbox was started from, and must outlive it."""
        self._instance, self._sandbox, self._agent, self._shared = instance, sandbox, agent, shared
        self._prefix, self._responses, self._snapshot, self._origin = prefix, responses, snapshot, origin
        self._standing: Snapshot | None = None
        self._steps = 0

    @property
    def standing(self) -> Snapshot | None:
        """The snapshot that was just taken of it, and whose state its sandbox is in; None once a command has run."""
        return self._standing

    def prefix(self) -> Prefix:
        """The agent's messages so far."""
        return self._prefix

    def advance(self, response: Response) -> bool:
        """Run the commands of a response. False once the agent has submitted, or can not go on."""
        self._prepare_for_others()
        answered = self._prefix.respond(response)
        turn = self._agent.turn(answered.messages[-1], response)
        if not turn.answered:
            # Calls that nobody answers would make the next request invalid: what was meant is kept as words.
            calls = [(call.name, call.arguments) for call in response.tool_calls]
            answered = self._prefix.respond(Response(kept_as_text(response.content, calls).content))
        self._prefix = answered.extend(turn.follow)
        self._responses = (*self._responses, response)
        return not self._agent.halted

    def doomed(self) -> Ruling | None:
        """A fail where the agent broke its container: no command will run in it any more."""
        broken = self._agent.environment.broken
        return Ruling(Verdict.FAIL, f"the model broke its environment: {broken}") if broken is not None else None

    def verdict(self) -> Ruling:
        """The official grading of the patch that was submitted."""
        return self._judged(lambda patch: self._shared.judge.grade(self._instance, patch))

    def seed_verdict(self) -> Ruling:
        """The same for a seed's patch, graded afresh as often as the options say."""
        times = self._shared.verify_grading
        return self._judged(lambda patch: self._shared.judge.verify(self._instance, patch, times))

    def checkpoint(self) -> EpisodeCheckpoint | None:
        """The state as it stands, its files as a snapshot.

        None where a snapshot would not hold all of it: where processes run on, where there is something in shared
        memory or in the files that Docker mounts, where files have what no layer keeps (hard links, sockets,
        attributes, holes beyond measure), or where the budget of disk is used up.
        """
        if not self._shared.checkpoints:
            return None
        if self._sandbox.running:
            self._shared.on_running(self._instance, len(self._responses), self._sandbox.running)
            return None
        if self._sandbox.unkept:
            return None
        if self._sandbox.outside() != self._shared.outside(self._sandbox.base):
            return None
        if self._origin is not None and self._origin.layers >= self._shared.snapshots.deepest:
            return self._anew()
        taken = self._standing = self._shared.snapshots.take(self._sandbox)
        if taken is None:
            return None
        return EpisodeCheckpoint(self._prefix, self._agent.state(), self._responses, taken)

    def _prepare_for_others(self) -> None:
        """Have a container made for whoever comes next to the snapshot that this leaves behind.

        That is the one that was just taken; else the one it went on from, once it goes further than one step.
        """
        base = self._sandbox.base
        if self._standing is not None:
            self._shared.prepare(self._standing, base)
        elif self._steps == 1 and self._snapshot is not None:
            self._shared.prepare(self._snapshot, base)
        self._standing, self._steps = None, self._steps + 1

    def _anew(self) -> EpisodeCheckpoint | None:
        """The checkpoint of a second episode with the same steps, whose snapshot has one layer of its own again."""
        try:
            with self._shared.replayed(self._instance, self._responses, self._prefix) as episode:
                return episode.checkpoint()
        except Technical:
            return None

    def _judged(self, judge: Callable[[bytes], PatchGrading]) -> Ruling:
        submission = self._agent.environment.submission
        if submission is None:
            return Ruling(Verdict.INCOMPLETE, _UNSUBMITTED.get(self._agent.halted, "nothing was submitted"))
        try:
            graded = judge(submission)
        except Technical:
            self._shared.check_daemon()
            raise
        return Ruling(graded.verdict, graded.reason, graded.evidence())


_UNSUBMITTED = {
    "LimitsExceeded": "the agent ran out of steps",
    "RepeatedFormatError": "the agent was stopped after several answers without a command",
}


@dataclass(frozen=True, slots=True)
class Shared:
    """What all episodes of a harness share."""

    judge: PatchGrader
    snapshots: Snapshots
    checkpoints: bool
    """Whether there are any."""
    verify_grading: int
    outside: Callable[[str], bytes]
    """What lies in no layer of a container of this image, at its start."""
    check_daemon: Callable[[], None]
    """Raises Lost where the daemon does not answer."""
    on_running: Callable[[Instance, int, tuple[str, ...]], None]
    """Told of the processes that made a snapshot impossible after so many steps."""
    prepare: Callable[[Snapshot, str], None]
    """Has a container of a snapshot, of this image's, started for the next episode from there."""
    replayed: Callable[[Instance, tuple[Response, ...], Prefix], AbstractContextManager[SWEBenchEpisode]]
    """An episode from the start, these responses replayed in it. Raises Technical where it comes to another prefix."""
