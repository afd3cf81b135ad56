"""What a ledger holds: its tables, and the records that are read from them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from stepdown.builder.records import Lock, OutcomeState, Trial, Usage, Verdict

SCHEMA_VERSION = 2

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE texts (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, body TEXT NOT NULL);
CREATE TABLE instances (
    id INTEGER PRIMARY KEY,              -- in the order of the config and its sources
    benchmark TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    grouped_by TEXT NOT NULL,            -- what an honest evaluation holds out whole
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    seed INTEGER REFERENCES trials (id),
    final INTEGER REFERENCES trials (id),
    locks TEXT NOT NULL DEFAULT '[]',    -- [[tier index, model], ...]
    UNIQUE (benchmark, instance_id)
);
CREATE TABLE trials (
    id INTEGER PRIMARY KEY,
    instance INTEGER NOT NULL REFERENCES instances (id),
    purpose TEXT NOT NULL,
    base INTEGER REFERENCES trials (id), -- the current trajectory that it started from
    step INTEGER NOT NULL,
    tier INTEGER NOT NULL,
    model TEXT NOT NULL,
    sample INTEGER NOT NULL,
    call_limit INTEGER,
    verdict TEXT NOT NULL,
    accepted INTEGER NOT NULL,
    calls INTEGER NOT NULL,              -- length of the trajectory as executed
    reason TEXT NOT NULL,
    grading TEXT,                        -- what the verdict rests on, JSON; null: the workload says no more
    attempts TEXT NOT NULL,              -- errors before retries
    superseded INTEGER NOT NULL DEFAULT 0 -- a technical trial that was tried again
);
CREATE INDEX trials_by_instance ON trials (instance);
CREATE TABLE steps (
    trial INTEGER NOT NULL REFERENCES trials (id),
    step INTEGER NOT NULL,
    model TEXT NOT NULL,
    kept INTEGER NOT NULL,               -- messages shared with the previous step's prefix
    added TEXT NOT NULL,                 -- ids of the messages that follow them
    tools INTEGER REFERENCES texts (id),
    response TEXT NOT NULL,
    PRIMARY KEY (trial, step)
) WITHOUT ROWID;
CREATE TABLE calls (                     -- every question once, however many trials asked it
    instance INTEGER NOT NULL REFERENCES instances (id),
    key BLOB NOT NULL,                   -- of the response cache
    purpose TEXT NOT NULL,               -- of the trial that asked first
    model TEXT NOT NULL,
    paid INTEGER NOT NULL,               -- by this run; else answered by what an earlier run paid
    prompt INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    completion INTEGER NOT NULL,
    trial INTEGER REFERENCES trials (id), -- that asked first; null: a hint
    PRIMARY KEY (instance, key)
) WITHOUT ROWID;
CREATE TABLE hints (
    instance INTEGER NOT NULL REFERENCES instances (id),
    step INTEGER NOT NULL,
    tier INTEGER,                        -- null: none was to be had
    attempts TEXT NOT NULL,              -- errors before retries
    PRIMARY KEY (instance, step)
) WITHOUT ROWID;
"""

ACCOUNTS = """
CREATE TABLE accounts (                  -- calls of which more is known; an older ledger has no such table
    instance INTEGER NOT NULL,
    key BLOB NOT NULL,
    reported_usd REAL,                   -- what a gateway said that the call cost; null: nothing
    estimated INTEGER NOT NULL,          -- whether its tokens are estimated, in part at least
    PRIMARY KEY (instance, key)
) WITHOUT ROWID
"""

CUT_OFF = """
CREATE TABLE cut_off (                   -- trials whose verdict was certain before the agent halted; as above
    trial INTEGER PRIMARY KEY REFERENCES trials (id)
)
"""

AHEAD = """
CREATE TABLE ahead (                     -- calls of trials that were executed ahead; in vain, unless in `calls` too
    instance INTEGER NOT NULL,
    key BLOB NOT NULL,
    model TEXT NOT NULL,
    prompt INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    completion INTEGER NOT NULL,
    PRIMARY KEY (instance, key)
) WITHOUT ROWID
"""

STATES = """
CREATE TABLE states (                    -- what trials came to, of workloads that tell it; as above
    trial INTEGER PRIMARY KEY REFERENCES trials (id),
    state TEXT NOT NULL
)
"""

LATER_TABLES = {"accounts": ACCOUNTS, "cut_off": CUT_OFF, "ahead": AHEAD, "states": STATES}
"""By name: what an older ledger lacks, which is otherwise the same."""


class InstanceState(StrEnum):
    """Where an instance stands."""

    OPEN = "open"
    DONE = "done"
    BLOCKED = "blocked"
    """A technical outcome left a tier, or the seed, unknown: it waits for a resume."""
    DROPPED = "dropped"
    """It will have no rows; the reason is kept and counted."""


class Purpose(StrEnum):
    """What a trajectory was executed for."""

    SEED = "seed"
    VERIFY = "verify"
    SEARCH = "search"
    HINT = "hint"
    CONFIRM = "confirm"
    CONTROL = "control"
    REPEAT = "repeat"
    """Fresh executions of labelled steps, for the audit: no label, row or manifest depends on them."""
    PROBE = "probe"
    """A model tried at a labelled step that the search did not try it at: no label or row depends on it."""


KEPT = frozenset({Purpose.SEED, Purpose.SEARCH})
"""Purposes whose accepted trajectories may become current ones: their steps are kept."""
BESIDE_LABELS = frozenset({Purpose.REPEAT, Purpose.PROBE})
"""Purposes that come after the labels: nothing that is said of what labels rest on, or cost, counts them."""
_CANDIDATES = frozenset({Purpose.SEARCH, Purpose.PROBE})
"""Purposes of which the candidate's own step is kept, whatever came of it."""


def kept_steps(purpose: Purpose, first: int, length: int, accepted: bool) -> int:
    """Up to which of its steps a trial's trajectory is kept, where `first` is the trial's own and `length` the last."""
    if accepted and purpose in KEPT:
        return length
    return min(first, length) if purpose in _CANDIDATES else 0


@dataclass(frozen=True, slots=True)
class InstanceRecord:
    """An instance as the ledger has it. `id` is its place in the run."""

    id: int
    benchmark: str
    instance_id: str
    group: str
    state: InstanceState
    reason: str
    seed: int | None
    final: int | None
    locks: tuple[Lock, ...]


INSTANCE_COLUMNS = "id, benchmark, instance_id, grouped_by, state, reason, seed, final, locks"
"""The columns of an instance's record, in its order."""


def instance_record(row: Any) -> InstanceRecord:
    """The record of a row of `INSTANCE_COLUMNS`."""
    locks = tuple(Lock(tier, model) for tier, model in json.loads(row[8]))
    return InstanceRecord(row[0], row[1], row[2], row[3], InstanceState(row[4]), row[5], row[6], row[7], locks)


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """A trial as the ledger has it; its trajectory is read by `Ledger.trajectory`."""

    id: int
    purpose: Purpose
    base: int | None
    trial: Trial
    verdict: Verdict
    accepted: bool
    calls: int
    reason: str
    grading: Mapping[str, Any] | None
    attempts: tuple[str, ...]
    superseded: bool
    cut_off: bool = False
    """Whether the verdict was certain before the agent had halted. An older run does not tell."""
    state: OutcomeState | None = None
    """None where the workload does not tell states."""


def seed_model_of(record: InstanceRecord, trials: Iterable[TrialRecord]) -> str:
    """The model that made an instance's seed; `trials` are the instance's."""
    return next(trial.trial.model for trial in trials if trial.id == record.seed)


@dataclass(frozen=True, slots=True)
class CallTotal:
    """Distinct calls of one model for one purpose."""

    purpose: str
    model: str
    paid: bool
    calls: int
    usage: Usage
    reported_usd: float = 0.0
    """What a gateway said that `reported_calls` of them cost together."""
    reported_calls: int = 0
    estimated_calls: int = 0
    """How many have estimated tokens."""


@dataclass(frozen=True, slots=True)
class BookedCall:
    """A question as the ledger has it: the trial that asked it first (None: a hint), and what it took."""

    trial: int | None
    model: str
    paid: bool
    usage: Usage
