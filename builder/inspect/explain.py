"""Why a step has its label: every trial that led to it, with its calls and cost."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stepdown.builder.config.price import Price
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Lock, Response, clean_text
from stepdown.builder.run.ledger import BookedCall, InstanceRecord, InstanceState, Ledger, Purpose, TrialRecord

NEAR = 3
"""So many similar ids are named where one is not found."""


@dataclass(frozen=True, slots=True)
class TrialCost:
    """The distinct calls that a trial was the first to need, and their list price in USD."""

    calls: int = 0
    paid_calls: int = 0
    usd: float = 0.0
    paid_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Explained:
    """A trial and what it cost. `tier` is its tier's name."""

    record: TrialRecord
    tier: str
    cost: TrialCost
    answer: Response | None = None
    """What its candidate answered at the step, where that is asked for and was kept."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that the ledger holds about a step's label."""

    instance: InstanceRecord
    step: int
    lock: Lock | None
    """None where the instance is not finished."""
    tiers: tuple[str, ...]
    hint_asked: bool
    hint: int | None
    seeds: tuple[Explained, ...]
    """Attempts at a seed and their verification."""
    trials: tuple[Explained, ...]
    """The trials of this step, in the order of execution, superseded ones included; then those that confirm the whole
    trajectory, and so every step of it."""


@dataclass(frozen=True, slots=True)
class StepInShort:
    """A step of an instance: its lock, None where there is none yet, and its trials as models and verdicts."""

    step: int
    lock: Lock | None
    trials: tuple[TrialRecord, ...]
    """Of the search, without superseded ones."""


@dataclass(frozen=True, slots=True)
class InstanceExplanation:
    """An instance with all its steps in short."""

    instance: InstanceRecord
    tiers: tuple[str, ...]
    seeds: tuple[Explained, ...]
    steps: tuple[StepInShort, ...]


def explain(ledger: Ledger, name: str, file: Path, with_answers: bool = False) -> Explanation | InstanceExplanation:
    """What led to the label of a row, or of all steps of an instance, whichever the name is of.

    Raises BadInput, which names similar ids, where there is neither.
    """
    record, step = _find(ledger, name, file)
    run = ledger.meta.run
    tiers, costs = run.tiers, _Costs(ledger.calls(record.id), run.prices)

    def answer(trial: TrialRecord) -> Response | None:
        at = trial.trial.step or step or 1  # a seed's trial has all steps
        return ledger.trajectories.candidate_response(trial.id, at) if with_answers else None

    explained = [
        Explained(trial, tiers[trial.trial.tier], costs.of(trial.id), answer(trial))
        for trial in ledger.trials(record.id)
    ]
    if step is None:
        seeds = tuple(one for one in explained if _is_of_seed(one.record))
        return InstanceExplanation(record, tiers, seeds, tuple(_in_short(record, explained)))
    asked, hint = ledger.hint(record.id, step)
    return Explanation(
        instance=record,
        step=step,
        lock=record.locks[step - 1] if record.state is InstanceState.DONE else None,
        tiers=tiers,
        hint_asked=asked,
        hint=hint,
        seeds=tuple(one for one in explained if _is_of_seed(one.record)),
        trials=tuple(one for one in explained if _is_of_step(one.record, step)),
    )


def _in_short(record: InstanceRecord, explained: Iterable[Explained]) -> Iterator[StepInShort]:
    searched = [one.record for one in explained if one.record.purpose is Purpose.SEARCH and not one.record.superseded]
    last = len(record.locks) or max((trial.trial.step for trial in searched), default=0)
    for step in range(1, last + 1):
        lock = record.locks[step - 1] if record.state is InstanceState.DONE else None
        yield StepInShort(step, lock, tuple(trial for trial in searched if trial.trial.step == step))


def _is_of_seed(trial: TrialRecord) -> bool:
    return trial.purpose in (Purpose.SEED, Purpose.VERIFY)


def _is_of_step(trial: TrialRecord, step: int) -> bool:
    return trial.purpose is Purpose.CONFIRM or (not _is_of_seed(trial) and trial.trial.step == step)


class _Costs:
    """What each trial of an instance cost."""

    def __init__(self, calls: Iterable[BookedCall], prices: Mapping[str, Price]) -> None:
        self._prices = prices
        self._calls: dict[int | None, list[BookedCall]] = {}
        for call in calls:
            self._calls.setdefault(call.trial, []).append(call)

    def of(self, trial: int) -> TrialCost:
        calls = self._calls.get(trial, [])
        paid = [call for call in calls if call.paid]
        return TrialCost(len(calls), len(paid), self._usd(calls), self._usd(paid))

    def _usd(self, calls: Iterable[BookedCall]) -> float:
        priced = (call for call in calls if call.model in self._prices)
        return round(sum(self._prices[call.model].cost(call.usage) for call in priced), 6)


def _find(ledger: Ledger, name: str, file: Path) -> tuple[InstanceRecord, int | None]:
    """The instance, and the step where the name is a row's; an instance's own name may end like that of a row."""
    given = clean_text(name)
    head, _, number = given.rpartition("/")
    step = int(number) if re.fullmatch(r"[1-9][0-9]{0,8}", number) else None
    of_row = _instance(ledger, head)
    if of_row is not None and step is not None and _may_have(of_row, step):
        return of_row, step
    if (whole := _instance(ledger, given)) is not None:
        return whole, None
    if of_row is not None:
        last = len(of_row.locks)
        near = [f"{head}/1", f"{head}/{last}"] if last > 1 else [f"{head}/1"]
    else:
        near = _find_near(ledger, given, head, step)
    raise BadInput(f"no row {name!r}; near: {', '.join(near)}" if near else f"no row {name!r}", file=file)


def _instance(ledger: Ledger, name: str) -> InstanceRecord | None:
    benchmark, _, instance_id = name.partition("/")
    try:
        return ledger.instance(benchmark, instance_id)
    except KeyError:
        return None


def _may_have(record: InstanceRecord, step: int) -> bool:
    """An instance that is not finished has no rows, but the trials of its steps may be looked at."""
    return record.state is not InstanceState.DONE or step <= len(record.locks)


def _find_near(ledger: Ledger, given: str, head: str, step: int | None) -> list[str]:
    """Ids of rows whose instance has a similar name, with or without its workload; else the first ones of the run.

    Without a step, or where the instance is not finished, the instance's own id.
    """
    lengths = {f"{one.benchmark}/{one.instance_id}": len(one.locks) for one in ledger.instances()}
    spelt: dict[str, str] = {}  # what a person may have meant to write: the instance
    for name in lengths:
        spelt.setdefault(name.lower(), name)
        spelt.setdefault(name.partition("/")[2].lower(), name)
    wanted = {text.lower() for text in (head if step is not None else given, given) if text}
    close = [spelt[text] for text in wanted if text in spelt] or [
        spelt[text] for one in sorted(wanted) for text in difflib.get_close_matches(one, spelt, NEAR)
    ]
    names = list(dict.fromkeys(close))[:NEAR] or list(lengths)[:NEAR]
    return [f"{name}/{max(1, min(step or 1, lengths[name]))}" if lengths[name] else name for name in names]
