"""What a run records and reads back: every write is one transaction, every read is indexed and in portions."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from stepdown.builder.common.faults import TRACEBACK
from stepdown.builder.records import (
    Instance,
    Lock,
    OutcomeState,
    Receipt,
    Sample,
    Trial,
    Usage,
    Verdict,
    exact_json,
)
from stepdown.builder.run.ledger.browsing import Browsing
from stepdown.builder.run.ledger.database import open_database
from stepdown.builder.run.ledger.entries import TrialEntry
from stepdown.builder.run.ledger.finding import Finding
from stepdown.builder.run.ledger.meta import MetaStore
from stepdown.builder.run.ledger.probed import ProbedSteps
from stepdown.builder.run.ledger.schema import (
    BESIDE_LABELS,
    INSTANCE_COLUMNS,
    BookedCall,
    CallTotal,
    InstanceRecord,
    InstanceState,
    Purpose,
    TrialRecord,
    instance_record,
)
from stepdown.builder.run.ledger.trajectories import Trajectories
from stepdown.builder.run.ledger.written import WrittenArtifacts


class Ledger:
    """One run's record: its instances, their trials, calls and hints, and the parts that it shares its file with.

    Threads share one object.
    """

    def __init__(self, folder: Path, read_only: bool = False) -> None:
        """Open the ledger of a run's folder, making it where there is none. Raises BadInput where it is unusable.

        `read_only` looks at a run that another process may be working on.
        """
        self._file = open_database(folder, read_only)
        self.meta = MetaStore(self._file)
        self.trajectories = Trajectories(self._file)
        self.artifacts = WrittenArtifacts(self._file)
        self.browsing, self.finding = Browsing(self._file), Finding(self._file)
        self.probed = ProbedSteps(self._file)

    def close(self) -> None:
        self._file.close()

    # Instances

    @property
    def is_begun(self) -> bool:
        """Whether the run's instances have been admitted; until then nothing of it is frozen."""
        return self._file.meta("begun") is not None

    def admit(self, instances: Iterable[Instance]) -> None:
        """Register instances in order: all of them or, where one raises, none."""
        with self._file.transaction() as db:
            db.execute("INSERT INTO meta VALUES ('begun', 'true')")
            db.executemany(
                "INSERT INTO instances (benchmark, instance_id, grouped_by, state, reason) VALUES (?, ?, ?, ?, ?)",
                (
                    (
                        one.benchmark,
                        one.id,
                        one.group or one.id,
                        InstanceState.DROPPED if one.dropped else InstanceState.OPEN,
                        one.dropped or "",
                    )
                    for one in instances
                ),
            )

    def instances(self, *states: InstanceState) -> Iterator[InstanceRecord]:
        """Instances of the given states (all, where none is given), in the run's order, read in portions."""
        wanted = [state.value for state in states or InstanceState]
        marks = ",".join("?" * len(wanted))
        last = 0
        while page := self._file.read(
            f"SELECT {INSTANCE_COLUMNS} FROM instances "  # noqa: S608
            f"WHERE state IN ({marks}) AND id > ? ORDER BY id LIMIT 500",
            (*wanted, last),
        ):
            last = page[-1][0]
            yield from map(instance_record, page)

    def instance(self, benchmark: str, instance_id: str) -> InstanceRecord:
        """The record of an instance. Raises KeyError."""
        found = self._file.read(
            f"SELECT {INSTANCE_COLUMNS} FROM instances "  # noqa: S608
            "WHERE benchmark = ? AND instance_id = ?",
            (benchmark, instance_id),
        )
        if not found:
            raise KeyError((benchmark, instance_id))
        return instance_record(found[0])

    def counts(self) -> dict[InstanceState, int]:
        """Instances by state."""
        return {
            InstanceState(state): n
            for state, n in self._file.read("SELECT state, count(*) FROM instances GROUP BY state")
        }

    def locked_steps(self) -> int:
        """Steps of finished instances."""
        return int(self._file.read("SELECT coalesce(sum(json_array_length(locks)), 0) FROM instances")[0][0])

    def labelled_steps(self) -> dict[str, int]:
        """Steps of finished instances by benchmark."""
        query = "SELECT benchmark, sum(json_array_length(locks)) FROM instances WHERE state = ? GROUP BY benchmark"
        return dict(self._file.read(query, (InstanceState.DONE.value,)))

    def labels(self) -> Iterator[tuple[str, str, list[int]]]:
        """Benchmark, id, and the tier (an index) of every step, of finished instances in the run's order.

        The same as of their records, at a third of the cost: a corpus has a million steps.
        """
        last = 0
        query = (
            "SELECT id, benchmark, instance_id, locks FROM instances WHERE state = ? AND id > ? ORDER BY id LIMIT 2000"
        )
        while page := self._file.read(query, (InstanceState.DONE.value, last)):
            last = page[-1][0]
            for _, benchmark, instance_id, locks in page:
                yield benchmark, instance_id, [tier for tier, _ in json.loads(locks)]

    def finish(self, instance: int, final: int, locks: Sequence[Lock]) -> None:
        """The search has ended: the accepted trial whose trajectory is the final one, and its locks."""
        text = json.dumps([[lock.tier, lock.model] for lock in locks])
        with self._file.transaction() as db:
            db.execute(
                "UPDATE instances SET state = ?, reason = '', final = ?, locks = ? WHERE id = ?",
                (InstanceState.DONE.value, final, text, instance),
            )

    def drop(self, instance: int, reason: str) -> None:
        """The instance will have no rows."""
        with self._file.transaction() as db:
            self._set_state(db, instance, InstanceState.DROPPED, reason)

    def block(self, instance: int, reason: str) -> None:
        """Technical outcomes leave a tier, or the seed, unknown: the instance waits for a resume."""
        with self._file.transaction() as db:
            self._set_state(db, instance, InstanceState.BLOCKED, reason)

    @staticmethod
    def _set_state(db: sqlite3.Connection, instance: int, state: InstanceState, reason: str) -> None:
        db.execute("UPDATE instances SET state = ?, reason = ? WHERE id = ?", (state.value, reason, instance))

    def reopen(self) -> None:
        """Blocked instances are open again, and what is unknown about open ones will be executed anew.

        Unknown are the technical trials of the step under search, which is the last one that has any, of a seed that
        was not found yet, and of fresh draws. Earlier steps are decided: there a technical trial was passed over. So
        are all steps once there are fresh draws, which speak of the trajectory that the search came to.
        """
        counts = self.counts()
        if not counts.get(InstanceState.BLOCKED, 0) and not counts.get(InstanceState.OPEN, 0):
            return
        fresh = [Purpose.CONFIRM.value, Purpose.CONTROL.value]
        with self._file.transaction() as db:
            blocked, opened = InstanceState.BLOCKED.value, InstanceState.OPEN.value
            db.execute("UPDATE instances SET state = ?, reason = '' WHERE state = ?", (opened, blocked))
            db.execute(
                "UPDATE trials SET superseded = 1 WHERE verdict = ? AND superseded = 0 "
                "AND instance IN (SELECT id FROM instances WHERE state = ?) "
                "AND (purpose IN (?, ?) OR NOT EXISTS (SELECT 1 FROM trials AS others "
                "WHERE others.instance = trials.instance AND (others.purpose IN (?, ?) OR others.step > trials.step)))",
                (Verdict.TECHNICAL.value, opened, *fresh, *fresh),
            )

    def forget_technical(self, purpose: Purpose) -> None:
        """What came to no verdict for technical reasons, of executions for a purpose, will be executed anew."""
        with self._file.transaction() as db:
            db.execute(
                "UPDATE trials SET superseded = 1 WHERE purpose = ? AND verdict = ? AND superseded = 0",
                (purpose.value, Verdict.TECHNICAL.value),
            )

    def drop_blocked(self) -> int:
        """Give up on blocked instances. How many."""
        with self._file.transaction() as db:
            return db.execute(
                "UPDATE instances SET state = ?, reason = 'given up: ' || reason WHERE state = ?",
                (InstanceState.DROPPED.value, InstanceState.BLOCKED.value),
            ).rowcount

    def set_seed(self, instance: int, trial: int) -> None:
        """The trial whose trajectory is the instance's verified seed."""
        with self._file.transaction() as db:
            db.execute("UPDATE instances SET seed = ? WHERE id = ?", (trial, instance))

    def shapes(self, instance: int) -> tuple[str, ...]:
        """The shapes of volatile text that were found in the instance's seed, by name."""
        return tuple(self._file.meta(f"shapes of {instance}") or ())

    def keep_shapes(self, instance: int, shapes: Sequence[str]) -> None:
        """Keep the shapes of volatile text that were found when the instance's seed was played back."""
        self._file.set_meta(f"shapes of {instance}", list(shapes))

    # Trials

    def record(self, entry: TrialEntry) -> int:
        """Keep a trial, in one transaction; returns its id."""
        trial = entry.trial
        with self._file.transaction() as db:
            cursor = db.execute(
                "INSERT INTO trials (instance, purpose, base, step, tier, model, sample, call_limit, verdict, "
                "accepted, calls, reason, grading, attempts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    entry.instance,
                    entry.purpose.value,
                    entry.base,
                    trial.step,
                    trial.tier,
                    trial.model,
                    trial.sample.number,
                    trial.limit,
                    entry.verdict.value,
                    entry.accepted,
                    entry.calls,
                    entry.reason,
                    exact_json(entry.grading) if entry.grading is not None else None,
                    exact_json(entry.receipt.attempts),
                ),
            )
            trial_id = int(cursor.lastrowid or 0)
            if entry.cut_off:
                db.execute("INSERT INTO cut_off VALUES (?)", (trial_id,))
            if entry.state is not None:
                db.execute("INSERT INTO states VALUES (?, ?)", (trial_id, entry.state.value))
            self._add_calls(db, entry.instance, entry.purpose, entry.receipt, trial_id)
            self.trajectories.write(db, trial_id, entry.steps)
        return trial_id

    def trials(self, instance: int) -> list[TrialRecord]:
        """Every trial of an instance, in the order of execution."""
        return [
            TrialRecord(
                id=row[0],
                purpose=Purpose(row[1]),
                base=row[2],
                trial=Trial(row[3], row[4], row[5], row[7], Sample(row[1], row[6])),
                verdict=Verdict(row[8]),
                accepted=bool(row[9]),
                calls=row[10],
                reason=row[11],
                grading=json.loads(row[12]) if row[12] is not None else None,
                attempts=tuple(json.loads(row[13])),
                superseded=bool(row[14]),
                cut_off=row[15] is not None,
                state=OutcomeState(row[16]) if row[16] is not None else None,
            )
            for row in self._file.read(
                "SELECT id, purpose, base, step, tier, model, sample, call_limit, verdict, accepted, calls, reason, "
                "grading, attempts, superseded, cut_off.trial, state "
                "FROM trials LEFT JOIN cut_off ON cut_off.trial = trials.id "
                "LEFT JOIN states ON states.trial = trials.id WHERE instance = ? ORDER BY id",
                (instance,),
            )
        ]

    def gradings(self) -> Iterator[Any]:
        """What verdicts rest on, of every trial that counts for labels, in the order of execution, read in portions."""
        last = 0
        beside = [purpose.value for purpose in BESIDE_LABELS]
        query = (
            "SELECT id, grading FROM trials WHERE grading IS NOT NULL AND superseded = 0 "  # noqa: S608
            f"AND purpose NOT IN ({','.join('?' * len(beside))}) AND id > ? ORDER BY id LIMIT 500"
        )
        while page := self._file.read(query, (*beside, last)):
            last = page[-1][0]
            yield from (json.loads(grading) for _, grading in page)

    @staticmethod
    def _add_calls(
        db: sqlite3.Connection, instance: int, purpose: Purpose, receipt: Receipt, trial: int | None = None
    ) -> None:
        name, booked, accounts = purpose.value, [], []
        for key, model, usage, paid, reported_usd, is_estimated in receipt.calls:
            digest = bytes.fromhex(key)
            tokens = usage.prompt, usage.cache_read, usage.cache_write, usage.completion
            booked.append((instance, digest, name, model, paid, *tokens, trial))
            if reported_usd is not None or is_estimated:
                accounts.append((instance, digest, reported_usd, is_estimated))
        db.executemany("INSERT OR IGNORE INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", booked)
        if accounts:
            db.executemany("INSERT OR IGNORE INTO accounts VALUES (?, ?, ?, ?)", accounts)

    def book_ahead(self, instance: int, receipt: Receipt) -> None:
        """Keep the calls that this run paid for a trial which nothing has asked for yet."""
        rows = [
            (
                instance,
                bytes.fromhex(call.key),
                call.model,
                *(call.usage.prompt, call.usage.cache_read, call.usage.cache_write, call.usage.completion),
            )
            for call in receipt.calls
            if call.paid
        ]
        if rows:
            with self._file.transaction() as db:
                db.executemany("INSERT OR IGNORE INTO ahead VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def calls_in_vain(self) -> list[tuple[str, int, Usage]]:
        """Of each model, how many calls were made ahead for trials that no search has asked for, and what they took."""
        return [
            (model, calls, Usage(*tokens))
            for model, calls, *tokens in self._file.read(
                "SELECT model, count(*), sum(prompt), sum(cache_read), sum(cache_write), sum(completion) FROM ahead "
                "WHERE (instance, key) NOT IN (SELECT instance, key FROM calls) GROUP BY model ORDER BY model"
            )
        ]

    def call_totals(self) -> list[CallTotal]:
        """The run's distinct calls by purpose, model, and whether this run paid for them."""
        return [
            CallTotal(purpose, model, bool(paid), calls, Usage(*tokens), usd, reported, estimated)
            for purpose, model, paid, calls, usd, reported, estimated, *tokens in self._file.read(
                "SELECT purpose, model, paid, count(*), total(reported_usd), count(reported_usd), "
                "count(CASE WHEN estimated THEN 1 END), sum(prompt), sum(cache_read), sum(cache_write), "
                "sum(completion) FROM calls LEFT JOIN accounts USING (instance, key) "
                "GROUP BY purpose, model, paid ORDER BY purpose, model, paid"
            )
        ]

    def calls(self, instance: int) -> list[BookedCall]:
        """The distinct calls of an instance."""
        return [
            BookedCall(trial, model, bool(paid), Usage(*usage))
            for trial, model, paid, *usage in self._file.read(
                "SELECT trial, model, paid, prompt, cache_read, cache_write, completion FROM calls WHERE instance = ?",
                (instance,),
            )
        ]

    def call_keys(self) -> Iterator[str]:
        """The cache's key of every call that a trial or a hint used, read in portions."""
        last = (0, b"")
        while page := self._file.read(
            "SELECT instance, key FROM calls WHERE (instance, key) > (?, ?) ORDER BY instance, key LIMIT 5000", last
        ):
            last = page[-1]
            yield from (key.hex() for _, key in page)

    def paid_keys(self, instance: int) -> list[str]:
        """The cache's keys of the calls of an instance that this run paid."""
        found = self._file.read("SELECT key FROM calls WHERE instance = ? AND paid", (instance,))
        return [key.hex() for (key,) in found]

    def retried_errors(self) -> int:
        """Errors of calls that were tried again, over the whole run; the traceback of a harness is none."""
        return sum(
            int(
                self._file.read(
                    f"SELECT count(*) FROM {table}, json_each({table}.attempts) "  # noqa: S608
                    "WHERE attempts != '[]' AND value NOT LIKE ?",
                    (f"{TRACEBACK}%",),
                )[0][0]
            )
            for table in ("trials", "hints")
        )

    # Hints

    def hint(self, instance: int, step: int) -> tuple[bool, int | None]:
        """Whether a hint was asked for at a step, and the tier (an index) it named."""
        found = self._file.read("SELECT tier FROM hints WHERE instance = ? AND step = ?", (instance, step))
        return (True, found[0][0]) if found else (False, None)

    def hints(self, instance: int) -> dict[int, int]:
        """The tiers (indexes) that hints named, by step."""
        rows = self._file.read("SELECT step, tier FROM hints WHERE instance = ? AND tier IS NOT NULL", (instance,))
        return dict(rows)

    def record_hint(self, instance: int, step: int, tier: int | None, receipt: Receipt) -> None:
        """Keep what a hint named, None where none was to be had, and what asking for it took."""
        with self._file.transaction() as db:
            attempts = json.dumps(receipt.attempts, ensure_ascii=False)
            db.execute("INSERT OR REPLACE INTO hints VALUES (?, ?, ?, ?)", (instance, step, tier, attempts))
            self._add_calls(db, instance, Purpose.HINT, receipt)
