"""What a reviewer gets for a sampled step, read from the run's ledger one step at a time. It names no model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from builder.config import Protocol
from builder.errors import BadInput
from builder.ledger import InstanceRecord, Ledger, Purpose, State, TrialRecord
from builder.pool import Model, Pool
from builder.records import Message, Response, Tool, Trajectory, Verdict, assistant_message
from builder.runs import looked_at

MASKED = "[model]"


@dataclass(frozen=True, slots=True)
class LowerAnswer:
    """What one candidate of the tier below the label answered, and why its trial did not count."""

    number: int
    """The candidate's place in its tier's cascade, from 1; one that was drawn several times has one number."""
    response: Message | None
    """None where it came to no answer."""
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class ReviewCase:
    """A step as its reviewer sees it."""

    id: str
    benchmark: str
    instance_id: str
    step_index: int
    total_steps: int
    messages: tuple[Message, ...]
    """The frozen prefix, exactly as a router would see it."""
    tools: tuple[Tool, ...]
    prefix: str
    """The prefix's exact digest; a verdict is recorded with it."""
    tier: str
    """The label."""
    tier_id: int
    below: str | None
    """The tier that the reviewer is asked about: one lower. None where the label is the lowest."""
    response: Message
    """What was locked at the label's tier."""
    lower: tuple[LowerAnswer, ...]
    """The trials one tier lower that came to a verdict, in the cascade's order; a technical one tells nothing."""


class Cases:
    """The cases of a run. Threads may share it. Made by `cases_of`."""

    def __init__(self, ledger: Ledger, protocol: Protocol, run: Path) -> None:
        self._ledger, self._run = ledger, run
        self._pool = protocol.pool
        self._mask = NameMask(protocol.models.values())
        self._latest: tuple[int, Trajectory] = (0, ())

    def of(self, benchmark: str, instance_id: str, step_index: int) -> ReviewCase:
        """The case of a step of a finished instance. Raises BadInput where the run has no such row."""
        record = self._record(benchmark, instance_id, step_index)
        trajectory = self._trajectory(record)
        step, lock = trajectory[step_index - 1], record.locks[step_index - 1]
        tiers = self._pool.tiers
        return ReviewCase(
            id=f"{benchmark}/{instance_id}/{step_index}",
            benchmark=benchmark,
            instance_id=instance_id,
            step_index=step_index,
            total_steps=len(trajectory),
            messages=step.prefix.messages,
            tools=step.prefix.tools,
            prefix=step.prefix.exact,
            tier=tiers[lock.tier].name,
            tier_id=tiers[lock.tier].id,
            below=tiers[lock.tier - 1].name if lock.tier else None,
            response=shown(step.response),
            lower=tuple(
                lower_answers(
                    self._ledger, self._ledger.trials(record.id), step_index, lock.tier, self._pool, self._mask
                )
            ),
        )

    def prefix(self, benchmark: str, instance_id: str, step_index: int) -> str:
        """The exact digest of a step's prefix. Raises BadInput where the run has no such row."""
        record = self._record(benchmark, instance_id, step_index)
        return self._trajectory(record)[step_index - 1].prefix.exact

    def _trajectory(self, record: InstanceRecord) -> Trajectory:
        # Steps are mostly asked for in the run's order: the latest trajectory is likely to be the next one.
        number, trajectory = self._latest
        if number != record.id:
            trajectory = self._ledger.trajectory(record.final or 0)
            self._latest = (record.id, trajectory)
        return trajectory

    def _record(self, benchmark: str, instance_id: str, step_index: int) -> InstanceRecord:
        try:
            record = self._ledger.instance(benchmark, instance_id)
        except KeyError:
            record = None
        if record is None or record.state is not State.DONE or not 1 <= step_index <= len(record.locks):
            raise BadInput(f"the run has no row {f'{benchmark}/{instance_id}/{step_index}'[:200]!r}", file=self._run)
        return record


def lower_answers(
    ledger: Ledger, trials: Iterable[TrialRecord], step: int, tier: int, pool: Pool, mask: NameMask
) -> Iterator[LowerAnswer]:
    """What the candidates one tier below a step's label (`tier`, an index) answered.

    In the cascade's order: models that were probed together are recorded as they ended, which may give them away.
    """
    cascade = [model.name for model in pool.tiers[tier - 1].models] if tier > 0 else []
    found = [
        trial
        for trial in trials
        if trial.purpose is Purpose.SEARCH
        and not trial.superseded
        and (trial.trial.step, trial.trial.tier) == (step, tier - 1)
        and trial.verdict is not Verdict.TECHNICAL
    ]
    for trial in sorted(found, key=lambda one: (cascade.index(one.trial.model), one.trial.sample.number)):
        number = cascade.index(trial.trial.model) + 1
        response = ledger.candidate_response(trial.id, step)
        yield LowerAnswer(number, shown(response) if response else None, trial.verdict, mask(_why(trial)))


def shown(response: Response) -> Message:
    """The response as a reviewer sees it: the message, without reasoning and provider fields."""
    return assistant_message(response)


def _why(trial: TrialRecord) -> str:
    """Why a trial did not count; a pass has no reason of its own."""
    if trial.reason or trial.verdict is not Verdict.PASS:
        return trial.reason
    if trial.accepted:
        return "accepted, but too few of the candidate's samples were"
    return f"passed in {trial.calls} calls where {trial.trial.limit} were to be made"


class NameMask:
    """Replaces models' names in text that trials quote: a reviewer who knows the model would judge the name."""

    def __init__(self, models: Iterable[Model]) -> None:
        names: set[str] = set()
        for model in models:
            names |= {model.name, model.model, model.model.rpartition("/")[2], model.revision or ""}
        # The longest first: a name may begin another one.
        known = sorted(filter(None, names), key=lambda name: (-len(name), name))
        pattern = "|".join(map(re.escape, known))
        self._names = re.compile(rf"(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9])", re.IGNORECASE)

    def __call__(self, text: str) -> str:
        return self._names.sub(MASKED, text)


@contextmanager
def cases_of(run_folder: Path) -> Iterator[Cases]:
    """The cases of a run, to read while others may work on it. Raises BadInput where no run is there."""
    with looked_at(run_folder) as (ledger, protocol):
        yield Cases(ledger, protocol, run_folder)
