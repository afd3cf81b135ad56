"""A trial as pages show it: who answered what, how the run went on, what its verdict rests on, what it cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stepdown.builder.inspect.explain import TrialCost
from stepdown.builder.pages.turns import TextView
from stepdown.builder.records import Verdict
from stepdown.builder.run.ledger import CallsOfModel, InstanceRecord, Purpose
from stepdown.builder.run.ledger.browsing import TrialInShort
from stepdown.builder.view.reading import PageReader, ShownTurn
from stepdown.builder.view.shown_run import ShownRun
from stepdown.builder.view.steps import StepTexts, step_texts

STEPS = 10
"""Later steps of a page."""
MADE_FOR = {
    Purpose.SEED: "an attempt at a seed",
    Purpose.VERIFY: "the seed, executed once more to verify it",
    Purpose.CONFIRM: "the whole trajectory, each step drawn afresh by its lock",
    Purpose.CONTROL: "the strong model, drawn afresh at this step",
    Purpose.REPEAT: "a labelled step, executed afresh for the audit",
    Purpose.PROBE: "a model that the search did not try at this step, tried for the grid of probes",
}


@dataclass(frozen=True, slots=True)
class TrialView:
    """A trial in a timeline."""

    short: TrialInShort
    tier: str
    level: int
    verdict: str
    """In words, with what became of it where the verdict alone would mislead."""
    cost: TrialCost
    answer: ShownTurn | None
    """What its candidate answered; None where the ledger keeps none."""
    went_on: tuple[str, ...]
    """How the run went on, in sentences."""
    grading: TextView | None
    has_errors: bool

    @property
    def kind(self) -> str:
        """What its verdict looks like."""
        if self.short.accepted:
            return "good"
        return "weak" if self.short.verdict in (Verdict.TECHNICAL, Verdict.PASS) else "bad"


@dataclass(frozen=True, slots=True)
class TrialPage:
    """All that a ledger holds of a trial."""

    view: TrialView
    record: InstanceRecord
    made_for: str
    step: StepTexts | None
    """What its candidate saw and answered."""
    later: tuple[StepTexts, ...]
    """Kept steps after it, of this page."""
    rest: int | None
    """The first step after this page; None where there is none."""
    errors: tuple[str, ...]
    calls: tuple[CallsOfModel, ...]
    """The distinct calls that it was the first to need, by model."""


def verdict_words(trial: TrialInShort) -> str:
    """A trial's verdict, and what became of it where the verdict alone would mislead."""
    if trial.superseded:
        return f"{trial.verdict.value}, tried again"
    if trial.verdict is Verdict.PASS and not trial.accepted:
        return f"{trial.verdict.value}, not accepted"
    return trial.verdict.value


def trial_view(
    run: ShownRun, trial: TrialInShort, cost: TrialCost, reader: PageReader, has_errors: bool = False
) -> TrialView:
    """A trial with its texts, as far as the page may read them."""
    answer = reader.answer(trial.id, trial.step) if trial.step else None
    return TrialView(
        short=trial,
        tier=run.tiers[trial.tier],
        level=run.level(trial.tier),
        verdict=verdict_words(trial),
        cost=cost,
        answer=answer,
        went_on=tuple(_went_on(trial, answer is not None)),
        grading=reader.grading(trial.id),
        has_errors=has_errors,
    )


def _went_on(trial: TrialInShort, has_answer: bool) -> Iterator[str]:
    """How the run went on after the trial's step, and what of it is kept."""
    if trial.purpose in (Purpose.SEED, Purpose.VERIFY, Purpose.CONFIRM):
        yield f"{_calls(trial.calls)} in all."
    elif trial.calls < trial.step:
        yield "The run ended before its candidate had answered."
    elif trial.calls == trial.step:
        yield "The run made no call after this one."
    else:
        yield f"The run went on for {_calls(trial.calls - trial.step)}, to {_calls(trial.calls)} in all."
    if trial.cut_off:
        yield "It was cut off there: its outcome was certain."
    if trial.limit is not None and trial.calls >= trial.limit and trial.verdict is Verdict.INCOMPLETE:
        yield f"It was stopped at its limit of {_calls(trial.limit)}."
    if trial.purpose is Purpose.PROBE:
        yield f"It is {MADE_FOR[trial.purpose]}. Of such a run the ledger keeps what its candidate answered alone."
    elif trial.purpose not in (Purpose.SEED, Purpose.SEARCH):
        yield f"The ledger keeps the outcome of such a run, not its steps: it is {MADE_FOR[trial.purpose]}."
    elif not trial.accepted and trial.purpose is Purpose.SEED:
        yield "It was not accepted: of such a run the ledger keeps the outcome, not its steps."
    elif not trial.accepted and has_answer and trial.calls > trial.step:
        yield "It was not accepted: of such a run the ledger keeps what its candidate answered, not what came later."


def _calls(count: int) -> str:
    return f"{count} call" if count == 1 else f"{count} calls"


def read_trial(run: ShownRun, trial: TrialInShort, record: InstanceRecord, first: int, reader: PageReader) -> TrialPage:
    """The page of a trial, with its kept steps from number `first` on."""
    browsing = run.ledger.browsing
    calls = tuple(call for call in browsing.calls_by_trial(trial.instance) if call.owner == trial.id)
    cost = run.costs(calls).get(trial.id, TrialCost())
    own = max(trial.step, 1)
    first = max(first, own + 1) if trial.step else max(first, 1)
    names: dict[str, str] = {}
    has_steps = browsing.kept_count(trial.id) > 0
    kept = browsing.steps(trial.id, own, own) if has_steps and trial.step else []
    view = trial_view(run, trial, cost, reader)
    step = step_texts(kept[0], reader, names, has_answer=False) if kept else None
    later = browsing.steps(trial.id, first, first + STEPS) if has_steps and trial.accepted else []
    return TrialPage(
        view=view,
        record=record,
        made_for=MADE_FOR.get(trial.purpose, ""),
        step=step,
        later=tuple(step_texts(one, reader, names) for one in later[:STEPS]),
        rest=later[STEPS].number if len(later) > STEPS else None,
        errors=tuple(browsing.attempts(trial.id)),
        calls=calls,
    )
