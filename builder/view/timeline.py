"""An instance as a timeline: its seed, its steps with every trial of each, and the fresh runs of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stepdown.builder.inspect.explain import TrialCost
from stepdown.builder.records import Lock
from stepdown.builder.run.ledger import InstanceRecord, Purpose
from stepdown.builder.run.ledger.browsing import KeptStep, TrialInShort
from stepdown.builder.view.reading import PageReader
from stepdown.builder.view.shown_run import ShownRun
from stepdown.builder.view.steps import StepTexts, step_texts
from stepdown.builder.view.trial import TrialView, trial_view

STEPS, TRIALS = 10, 60
"""Steps and trials of a page. Of a step with more trials the rest has pages of its own."""
_OF_SEED = (Purpose.SEED, Purpose.VERIFY)


@dataclass(frozen=True, slots=True)
class StepView:
    """A step of the timeline."""

    texts: StepTexts
    lock: Lock | None
    """None where it is not decided yet."""
    hint: str
    """The tier that a hint named; empty where none did."""
    trials: tuple[TrialView, ...]
    skipped: int
    """Trials of it on earlier pages."""
    left: int
    """Trials of it on later pages."""

    @property
    def number(self) -> int:
        return self.texts.number


@dataclass(frozen=True, slots=True)
class Timeline:
    """A page of an instance's timeline."""

    record: InstanceRecord
    cost: TrialCost
    trials: int
    length: int
    """Steps of the trajectory that the search has come to."""
    seeds: tuple[TrialView, ...]
    steps: tuple[StepView, ...]
    fresh: tuple[TrialView, ...]
    """Runs that confirm the whole trajectory."""

    @property
    def first(self) -> int:
        return self.steps[0].number if self.steps else 1

    @property
    def last(self) -> int:
        return self.steps[-1].number if self.steps else 0


def timeline(run: ShownRun, record: InstanceRecord, first: int, skip: int, reader: PageReader) -> Timeline:
    """The page that begins at step `first`, without its first `skip` trials."""
    browsing = run.ledger.browsing
    trials = browsing.trials(record.id)
    costs = run.costs(browsing.calls_by_trial(record.id))
    broken = browsing.trials_with_errors(record.id)

    def view(trial: TrialInShort) -> TrialView:
        return trial_view(run, trial, costs.get(trial.id, TrialCost()), reader, trial.id in broken)

    current = _current(record, trials)
    length = current.calls if current else 0
    first = max(1, min(first, length))
    kept = browsing.steps(current.id, first, first + STEPS - 1) if current else []
    by_step = _by_step(trials)
    hints = run.ledger.hints(record.id)
    names: dict[str, str] = {}
    steps = []
    for step, skipped, shown in _within(kept, by_step, skip):
        of_step = by_step.get(step.number, [])
        steps.append(
            StepView(
                texts=step_texts(step, reader, names),
                lock=record.locks[step.number - 1] if len(record.locks) >= step.number else None,
                hint=run.tiers[hints[step.number]] if step.number in hints else "",
                trials=tuple(map(view, of_step[skipped : skipped + shown])),
                skipped=skipped,
                left=max(0, len(of_step) - skipped - shown),
            )
        )
    at_start, at_end = first == 1 and not skip, not steps or steps[-1].number == length
    return Timeline(
        record=record,
        cost=_sum(costs.values()),
        trials=len(trials),
        length=length,
        seeds=tuple(view(trial) for trial in trials if trial.purpose in _OF_SEED)[:TRIALS] if at_start else (),
        steps=tuple(steps),
        fresh=tuple(view(trial) for trial in trials if trial.purpose is Purpose.CONFIRM)[:TRIALS] if at_end else (),
    )


def _current(record: InstanceRecord, trials: Sequence[TrialInShort]) -> TrialInShort | None:
    """The trial whose trajectory is the final one, or the one that the search has come to so far."""
    by_id = {trial.id: trial for trial in trials}
    if record.final is not None:
        return by_id[record.final]
    accepted = [
        trial
        for trial in trials
        if trial.accepted and trial.purpose in (Purpose.SEED, Purpose.SEARCH) and not trial.superseded
    ]
    return accepted[-1] if accepted else None


def _by_step(trials: Sequence[TrialInShort]) -> dict[int, list[TrialInShort]]:
    """The trials of each step, in the order of execution."""
    found: dict[int, list[TrialInShort]] = {}
    for trial in trials:
        if trial.purpose not in (*_OF_SEED, Purpose.CONFIRM):
            found.setdefault(trial.step, []).append(trial)
    return found


def _within(
    kept: Sequence[KeptStep], by_step: dict[int, list[TrialInShort]], skip: int
) -> Iterator[tuple[KeptStep, int, int]]:
    """The steps of a page, each with how many of its trials come before the page and how many stand on it."""
    room = TRIALS
    for place, step in enumerate(kept):
        count = len(by_step.get(step.number, ()))
        skipped = min(skip, count) if place == 0 else 0
        if place and count > room:
            return
        shown = min(count - skipped, room)
        room -= shown
        yield step, skipped, shown


def _sum(costs: Iterable[TrialCost]) -> TrialCost:
    total = TrialCost()
    for cost in costs:
        total = TrialCost(
            total.calls + cost.calls,
            total.paid_calls + cost.paid_calls,
            round(total.usd + cost.usd, 6),
            round(total.paid_usd + cost.paid_usd, 6),
        )
    return total
