"""A ledger read for somebody who looks at a run: an instance, a trial, a step, each on its own.

An answer may be of megabytes and an instance have hundreds of trials: no more texts are read than are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from stepdown.builder.common.sqlite import SQLiteFile
from stepdown.builder.records import Message, OutcomeState, Response, Tool, Usage, Verdict
from stepdown.builder.run.ledger.schema import INSTANCE_COLUMNS, InstanceRecord, Purpose, instance_record

_TRIAL = (
    "trials.id, instance, purpose, base, step, tier, model, sample, call_limit, verdict, accepted, calls, reason, "
    "superseded, EXISTS (SELECT 1 FROM cut_off WHERE cut_off.trial = trials.id), "
    "(SELECT state FROM states WHERE states.trial = trials.id)"
)
_CALLS = "count(*), sum(prompt), sum(cache_read), sum(cache_write), sum(completion)"


@dataclass(frozen=True, slots=True)
class TrialInShort:
    """A trial without what may be long: what its verdict rests on, its errors, its steps."""

    id: int
    instance: int
    purpose: Purpose
    base: int | None
    step: int
    tier: int
    model: str
    sample: int
    limit: int | None
    verdict: Verdict
    accepted: bool
    calls: int
    """Length of the trajectory as executed."""
    reason: str
    superseded: bool
    cut_off: bool
    state: OutcomeState | None
    """What it came to; None where the workload does not tell."""


@dataclass(frozen=True, slots=True)
class CallsOfModel:
    """Distinct calls of one model: who asked for them first, and what they took."""

    owner: int | None
    """The trial, or the instance, that they are of; None: a hint."""
    model: str
    paid: bool
    calls: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class KeptStep:
    """A step as a trial's record holds it, without its texts."""

    trial: int
    """The trial that made it."""
    number: int
    model: str
    continues: int
    """How many messages of the step before its prefix goes on from."""
    added: tuple[int, ...]
    """Ids of the messages that follow them."""
    tools: int | None


class Browsing:
    """Reads of one thing each, indexed."""

    def __init__(self, file: SQLiteFile) -> None:
        self._file = file

    def benchmarks(self) -> list[str]:
        """The workloads that have instances."""
        return [name for (name,) in self._file.read("SELECT DISTINCT benchmark FROM instances ORDER BY benchmark")]

    def has_states(self) -> bool:
        """Whether a trial has a state."""
        return bool(self._file.read("SELECT 1 FROM states LIMIT 1"))

    def records(self, instances: Sequence[int]) -> list[InstanceRecord]:
        """Instances by their places in the run."""
        query = f"SELECT {INSTANCE_COLUMNS} FROM instances WHERE id IN (SELECT value FROM json_each(?))"  # noqa: S608
        return [instance_record(row) for row in self._file.read(query, (json.dumps(instances),))]

    # Trials

    def trial(self, trial: int) -> TrialInShort | None:
        found = self._file.find(f"SELECT {_TRIAL} FROM trials WHERE id = ?", (trial,))  # noqa: S608
        return _in_short(found) if found else None

    def trials(self, instance: int) -> list[TrialInShort]:
        """All trials of an instance, in the order of execution."""
        query = f"SELECT {_TRIAL} FROM trials WHERE instance = ? ORDER BY id"  # noqa: S608
        return [_in_short(row) for row in self._file.read(query, (instance,))]

    def grading(self, trial: int) -> str:
        """What a trial's verdict rests on, as JSON text; empty where the workload says no more than the reason."""
        found = self._file.find("SELECT grading FROM trials WHERE id = ?", (trial,))
        return (found[0] or "") if found else ""

    def attempts(self, trial: int) -> list[str]:
        """The errors before a trial's retries."""
        (text,) = self._file.find("SELECT attempts FROM trials WHERE id = ?", (trial,))
        found: list[str] = json.loads(text)
        return found

    def trials_with_errors(self, instance: int) -> set[int]:
        """The trials of an instance that have errors before retries."""
        query = "SELECT id FROM trials WHERE instance = ? AND attempts != '[]'"
        return {trial for (trial,) in self._file.read(query, (instance,))}

    # Calls

    def calls_by_trial(self, instance: int) -> list[CallsOfModel]:
        """The distinct calls of an instance, by the trial that asked first."""
        query = f"SELECT trial, model, paid, {_CALLS} FROM calls WHERE instance = ? GROUP BY trial, model, paid"  # noqa: S608
        return [_calls(row) for row in self._file.read(query, (instance,))]

    def calls_by_instance(self, instances: Sequence[int]) -> list[CallsOfModel]:
        """The distinct calls of each of some instances."""
        query = (
            f"SELECT instance, model, paid, {_CALLS} FROM calls "  # noqa: S608
            "WHERE instance IN (SELECT value FROM json_each(?)) GROUP BY instance, model, paid"
        )
        return [_calls(row) for row in self._file.read(query, (json.dumps(instances),))]

    def trial_counts(self, instances: Sequence[int]) -> dict[int, int]:
        """How many trials each of some instances has."""
        query = (
            "SELECT instance, count(*) FROM trials WHERE instance IN (SELECT value FROM json_each(?)) GROUP BY instance"
        )
        return dict(self._file.read(query, (json.dumps(instances),)))

    # Steps

    def steps(self, trial: int, first: int, last: int) -> list[KeptStep]:
        """The steps from number `first` to `last` that a trial's record holds, those of the trajectories that it
        started from included.
        """
        found: list[KeptStep] = []
        for holder, begins, ends in self._holders(trial):
            if begins <= last and ends >= first:
                rows = self._file.read(
                    "SELECT trial, step, model, kept, added, tools FROM steps WHERE trial = ? AND step BETWEEN ? AND ?",
                    (holder, max(begins, first), min(ends, last)),
                )
                found += [
                    KeptStep(maker, number, model, kept, tuple(json.loads(added)), tools)
                    for maker, number, model, kept, added, tools in rows
                ]
        return sorted(found, key=lambda step: step.number)

    def _holders(self, trial: int) -> list[tuple[int, int, int]]:
        """The trials that hold the steps of a trajectory, each with the first and the last number that it holds."""
        rows = self._file.read(
            "WITH RECURSIVE chain (id, base, first, place) AS ("
            "SELECT id, base, max(step, 1), 0 FROM trials WHERE id = ? UNION ALL "
            "SELECT trials.id, trials.base, max(trials.step, 1), place + 1 FROM trials JOIN chain "
            "ON trials.id = chain.base) SELECT id, first FROM chain ORDER BY place",
            (trial,),
        )
        holders: list[tuple[int, int, int]] = []
        end = 1 << 40
        for holder, first in rows:
            if first <= end:
                holders.append((holder, first, end))
                end = first - 1
        return holders

    def kept_count(self, trial: int) -> int:
        """How many steps of its own are kept of a trial."""
        return int(self._file.find("SELECT count(*) FROM steps WHERE trial = ?", (trial,))[0])

    # Texts

    def response(self, trial: int, step: int) -> tuple[Response, int] | None:
        """What was answered at a step of a trial's own, and how long its record is; None where it is not kept."""
        found = self._file.find("SELECT response FROM steps WHERE trial = ? AND step = ?", (trial, step))
        return (Response.from_json(json.loads(found[0])), len(found[0])) if found else None

    def message(self, text: int) -> tuple[Message, int] | None:
        """A message by its id, and how long its record is; None where there is none."""
        found = self._file.find("SELECT body FROM texts WHERE id = ?", (text,))
        value = json.loads(found[0]) if found else None
        return (value, len(found[0])) if isinstance(value, dict) else None

    def tools(self, text: int) -> list[Tool]:
        """Tool definitions by their id; none where there are none."""
        found = self._file.find("SELECT body FROM texts WHERE id = ?", (text,))
        value = json.loads(found[0]) if found else None
        return value if isinstance(value, list) else []


def _in_short(row: Any) -> TrialInShort:
    identity, instance, purpose, *rest = row
    base, step, tier, model, sample, limit, verdict, accepted, calls, reason, superseded, cut_off, state = rest
    return TrialInShort(
        identity,
        instance,
        Purpose(purpose),
        base,
        step,
        tier,
        model,
        sample,
        limit,
        Verdict(verdict),
        bool(accepted),
        calls,
        reason,
        bool(superseded),
        bool(cut_off),
        OutcomeState(state) if state is not None else None,
    )


def _calls(row: Iterable[Any]) -> CallsOfModel:
    owner, model, paid, calls, *tokens = row
    return CallsOfModel(owner, model, bool(paid), calls, Usage(*tokens))
