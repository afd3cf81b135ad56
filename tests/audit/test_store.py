"""The audit's store: what is recorded is on disk, what is taken back is kept, and nobody sees another one's queue."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from stepdown.audit.store import FILE_NAME, AuditStore
from stepdown.audit.verdicts import AuditStep, AuditVerdict, PreLabel
from stepdown.builder.errors import BadInput
from tests.conftest import ROOT

SHOWN = "0f" * 32


def audit_step(number: int) -> AuditStep:
    return AuditStep(f"made/job-{number}/1", "made", f"job-{number}", 1, "mid", 1, False, "ab")


@pytest.fixture
def store(tmp_path: Path) -> AuditStore:
    made = AuditStore(tmp_path, create=True)
    made.add(audit_step(number) for number in range(5))
    return made


def said(store: AuditStore, reviewer: str) -> dict[str, str]:
    return {step: one.verdict.value for step, one in store.current(reviewer).items()}


def test_a_run_without_a_sample_says_how_to_draw_one(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="stepdown audit sample"):
        AuditStore(tmp_path)


def test_a_step_once_sampled_stays_and_keeps_its_place(store: AuditStore) -> None:
    assert store.add([audit_step(7), audit_step(0)]) == 1
    assert [step.id for step in store.steps()] == [f"made/job-{number}/1" for number in (0, 1, 2, 3, 4, 7)]


def test_a_later_verdict_replaces_the_earlier_and_undo_brings_it_back(store: AuditStore) -> None:
    store.record("ann", "made/job-0/1", "tight", prefix_digest=SHOWN)
    store.record("ann", "made/job-1/1", "tight", prefix_digest=SHOWN)
    store.record("ann", "made/job-0/1", "uncertain", "odd", prefix_digest=SHOWN)
    assert said(store, "ann") == {"made/job-0/1": "uncertain", "made/job-1/1": "tight"}
    assert store.undo("ann") == "made/job-0/1"
    assert said(store, "ann") == {"made/job-0/1": "tight", "made/job-1/1": "tight"}
    assert store.undo("ann", "made/job-0/1") == "made/job-0/1"
    assert store.undo("ann", "made/job-0/1") is None
    assert said(store, "ann") == {"made/job-1/1": "tight"}
    assert store.undo("ann") == "made/job-1/1"
    assert store.undo("ann") is None
    assert said(store, "ann") == {}


def test_the_log_can_only_grow(store: AuditStore) -> None:
    store.record("ann", "made/job-0/1", "tight", prefix_digest=SHOWN)
    store.undo("ann")
    db = sqlite3.connect(store.path)
    for change in ("DELETE FROM log", "UPDATE log SET verdict = 'uncertain'"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute(change)
    assert db.execute("SELECT count(*) FROM log").fetchone() == (2,)


def test_reviewers_have_queues_of_their_own(store: AuditStore) -> None:
    store.reviewers.assign([("ann", "made/job-0/1"), ("ann", "made/job-1/1"), ("bob", "made/job-1/1")], ["ann", "bob"])
    assert [item.step.instance_id for item in store.queue("ann")] == ["job-0", "job-1"]
    assert [item.step.instance_id for item in store.queue("bob")] == ["job-1"]
    store.reviewers.join("cy")
    assert len(store.queue("cy")) == 5
    store.record("ann", "made/job-1/1", "tight", "sure", prefix_digest=SHOWN)
    assert [item.verdict for item in store.queue("bob")] == [None]
    assert [(item.verdict, item.notes) for item in store.queue("ann")] == [(None, ""), (AuditVerdict.TIGHT, "sure")]
    assert (store.progress("ann").done, store.progress("ann").total, store.progress("bob").done) == (1, 2, 0)
    with pytest.raises(BadInput, match="not in the queue of 'bob'"):
        store.record("bob", "made/job-0/1", "tight", prefix_digest=SHOWN)


@pytest.mark.parametrize("name", ["", "  ", "a\x1b[31m", "x" * 81, "a\nb"])
def test_a_name_that_could_not_stand_in_a_table_is_refused(store: AuditStore, name: str) -> None:
    with pytest.raises(BadInput, match="reviewer"):
        store.reviewers.join(name)


def test_a_prelabel_is_not_shown_before_the_reviewer_has_answered(store: AuditStore) -> None:
    store.set_prelabels({"made/job-0/1": PreLabel(AuditVerdict.LOWER, "easy")})
    assert store.prelabel("ann", "made/job-0/1") is None
    store.record("bob", "made/job-0/1", "tight", prefix_digest=SHOWN)
    assert store.prelabel("ann", "made/job-0/1") is None
    store.record("ann", "made/job-0/1", "tight", prefix_digest=SHOWN)
    assert store.prelabel("ann", "made/job-0/1") == PreLabel(AuditVerdict.LOWER, "easy")
    store.undo("ann")
    assert store.prelabel("ann", "made/job-0/1") is None


def test_several_verdicts_are_kept_all_or_none(store: AuditStore) -> None:
    store.record("ann", "made/job-0/1", "tight", prefix_digest=SHOWN)
    good = store.said("made/job-0/1")[0]
    with pytest.raises(BadInput):
        store.record_all([replace(good, verdict=AuditVerdict.LOWER), replace(good, step_id="made/nowhere/1")])
    assert said(store, "ann") == {"made/job-0/1": "tight"}


def test_threads_and_stores_share_a_file(store: AuditStore) -> None:
    others = [AuditStore(store.path.parent) for _ in range(2)]

    def work(number: int) -> None:
        mine = [store, *others][number % 3]
        for step in range(5):
            mine.record(f"reviewer-{number}", f"made/job-{step}/1", "tight", prefix_digest=SHOWN)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(store.standing())) == 30
    assert [said.reviewer for said in store.said("made/job-3/1")] == [f"reviewer-{number}" for number in range(6)]


RECORDS = """
import os, sys
from pathlib import Path
from stepdown.audit.store import AuditStore
store = AuditStore(Path(sys.argv[1]))
for number in range(5):
    store.record("ann", f"made/job-{number}/1", "tight", f"note {number}", prefix_digest="00")
    print(number, flush=True)
    sys.stdin.readline()
"""


def test_a_kill_right_after_a_verdict_was_acknowledged_loses_nothing(store: AuditStore, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", RECORDS, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout
    assert process.stdin
    for number in range(3):
        assert process.stdout.readline() == f"{number}\n"
        if number < 2:
            process.stdin.write("\n")
            process.stdin.flush()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stdout.close()
    again = AuditStore(tmp_path)
    assert [(step, one.notes) for step, one in again.current("ann").items()] == [
        (f"made/job-{number}/1", f"note {number}") for number in range(3)
    ]


def test_a_file_of_another_schema_or_of_none_is_refused(store: AuditStore, tmp_path: Path) -> None:
    store.close()
    with sqlite3.connect(tmp_path / FILE_NAME) as db:
        db.execute("PRAGMA user_version=99")
    with pytest.raises(BadInput, match="schema 99"):
        AuditStore(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / FILE_NAME).write_text("no database at all, but text that is long enough to be one" * 20)
    with pytest.raises(BadInput, match="can not be used"):
        AuditStore(tmp_path / "other")
