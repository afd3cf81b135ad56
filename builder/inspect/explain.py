"""Why a step has its label: every trial that led to it, with its calls and cost."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from stepdown.builder.config.price import Price
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Lock, clean_text
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


def explain(ledger: Ledger, row_id: str, file: Path) -> Explanation:
    """What led to the label of a row. Raises BadInput, which names similar ids, where there is no such row."""
    record, step = _find_step(ledger, row_id, file)
    run = ledger.meta.run
    tiers, costs = run.tiers, _Costs(ledger.calls(record.id), run.prices)
    explained = [Explained(trial, tiers[trial.trial.tier], costs.of(trial.id)) for trial in ledger.trials(record.id)]
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


def _find_step(ledger: Ledger, row_id: str, file: Path) -> tuple[InstanceRecord, int]:
    name, _, number = clean_text(row_id).rpartition("/")
    benchmark, _, instance_id = name.partition("/")
    step = int(number) if re.fullmatch(r"[1-9][0-9]{0,8}", number) else 0
    try:
        record = ledger.instance(benchmark, instance_id)
    except KeyError:
        near = _find_near(ledger, name or row_id, step)
    else:
        # An instance that is not finished has no rows, but the trials of its steps may be looked at.
        if step and (record.state is not InstanceState.DONE or step <= len(record.locks)):
            return record, step
        near = [f"{name}/1", f"{name}/{len(record.locks)}"] if len(record.locks) > 1 else [f"{name}/1"]
    raise BadInput(f"no row {row_id!r}; near: {', '.join(near)}" if near else f"no row {row_id!r}", file=file)


def _find_near(ledger: Ledger, name: str, step: int) -> list[str]:
    """Ids of rows whose instance has a similar name; else the first ones of the run."""
    lengths = {f"{one.benchmark}/{one.instance_id}": len(one.locks) for one in ledger.instances(InstanceState.DONE)}
    close = difflib.get_close_matches(name, lengths, NEAR) or list(lengths)[:NEAR]
    return [f"{one}/{max(1, min(step, lengths[one]))}" for one in close]
