"""A reviewer who has left is replaced: what they left open goes to others, what they said stays."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from stepdown.audit.store import FILE_NAME, AuditStore
from tests.audit.reviewing import above_lowest, only, review, said, tight
from tests.conftest import Result, stepdown


@pytest.fixture
def shared(run: Path) -> Path:
    """A run whose steps are shared out between ann and bo; both have a few of them together."""
    options = ("--rate", "0.4", "--reviewers", "ann,bo", "--overlap", "0.3")
    assert stepdown("audit", "sample", str(run), *options).code == 0
    return run


def reassign(run: Path, giver: str, takers: str) -> Result:
    return stepdown("audit", "reassign", str(run), giver, takers)


def queue(run: Path, reviewer: str) -> set[str]:
    with AuditStore(run) as store:
        return {item.step.id for item in store.queue(reviewer)}


def waiting(run: Path) -> Counter[str]:
    with AuditStore(run) as store:
        return Counter(name for step in store.reviewed() for name in step.awaited_by)


def log(run: Path) -> list[tuple[str, str, str]]:
    with closing(sqlite3.connect(run / FILE_NAME)) as db:
        return db.execute("SELECT step, giver, taker FROM reassignments ORDER BY entry").fetchall()


def test_what_an_absent_reviewer_left_open_is_reviewed_by_another_and_released(shared: Path, tmp_path: Path) -> None:
    anns = sorted(queue(shared, "ann"))
    answered, left = set(anns[:2]), set(anns[2:])
    review(shared, "ann", lambda step: "tight" if step.id in answered else None, "by ann")
    review(shared, "bo", tight)
    assert "held back" in stepdown("audit", "apply", str(shared)).out
    assert stepdown("publish", str(shared), "--out", str(tmp_path / "before")).code == 2
    before = said(shared)

    result = reassign(shared, "ann", "cy")
    assert (result.code, f"{len(left)} steps do not wait for ann any more: {len(left)} to cy" in result.out) == (
        0,
        True,
    )
    assert "revision 1 is from before: stepdown audit apply" in result.err
    assert said(shared) == before
    assert (queue(shared, "ann"), queue(shared, "cy"), waiting(shared)) == (answered, left, {"cy": len(left)})
    assert {(step, giver, taker) for step, giver, taker in log(shared)} == {(step, "ann", "cy") for step in left}
    stale = stepdown("publish", str(shared), "--out", str(tmp_path / "stale"))
    assert f"{len(left)} things since the latest revision: stepdown audit apply" in stale.out

    review(shared, "cy", tight)
    applied = stepdown("audit", "apply", str(shared))
    assert (applied.code, "held back" in applied.out) == (0, False)
    assert stepdown("publish", str(shared), "--out", str(tmp_path / "release")).code == 0


def test_a_reassignment_alone_makes_the_last_apply_stale(shared: Path, tmp_path: Path) -> None:
    """Also where nobody says anything further: one who is awaited no more settles what they were awaited for."""
    both = queue(shared, "ann") & queue(shared, "bo")
    assert both
    review(shared, "bo", tight)
    review(shared, "ann", lambda step: None if step.id in both else "tight")
    assert stepdown("audit", "apply", str(shared)).code == 0
    result = reassign(shared, "ann", "bo")
    assert f"{len(both)} steps do not wait for ann any more: 0 to bo" in result.out
    assert f"{len(both)} of them were with bo already: one answer less is awaited there" in result.out
    stale = stepdown("publish", str(shared), "--out", str(tmp_path / "stale"))
    assert (stale.code, "since the latest revision: stepdown audit apply" in stale.out) == (2, True)
    assert "held back" not in stepdown("audit", "apply", str(shared)).out
    assert stepdown("publish", str(shared), "--out", str(tmp_path / "release")).code == 0


def test_several_share_the_steps_and_those_who_have_one_are_passed_over(shared: Path) -> None:
    anns, bos = queue(shared, "ann"), queue(shared, "bo")
    result = reassign(shared, "ann", "bo, cy")
    assert (result.code, "already" in result.out) == (0, False)
    assert queue(shared, "ann") == set()
    cys, more = queue(shared, "cy"), queue(shared, "bo") - bos
    assert (cys | more, cys & more) == (anns, set())
    assert anns & bos <= cys
    assert abs(len(cys) - len(more)) <= max(1, len(anns & bos))


def test_steps_that_are_shared_out_later_do_not_go_to_who_has_left(shared: Path) -> None:
    assert reassign(shared, "ann", "cy").code == 0
    assert stepdown("audit", "sample", str(shared), "--rate", "1").code == 0
    assert queue(shared, "ann") == set()
    assert queue(shared, "bo") | queue(shared, "cy") == {step.id for step in above_lowest(shared)}


def test_who_settles_in_place_of_another_is_no_measure_of_agreement(sampled: Path) -> None:
    target = above_lowest(sampled)[0]
    review(sampled, "ann", only("further-downgradeable", target))
    review(sampled, "bo", tight)
    assert stepdown("audit", "sample", str(sampled), "--settle", "cy").code == 0
    assert reassign(sampled, "cy", "dan").code == 0
    with AuditStore(sampled) as store:
        assert store.reviewers.settling() == {("dan", target.id)}
        assert [item.step for item in store.queue("dan")] == [target]


def test_what_was_taken_back_goes_on_and_can_come_back(shared: Path) -> None:
    review(shared, "ann", tight)
    step = sorted(queue(shared, "ann"))[0]
    with AuditStore(shared) as store:
        store.undo("ann", step)
    assert "1 steps do not wait for ann any more: 1 to cy" in reassign(shared, "ann", "cy").out
    assert "1 steps do not wait for cy any more: 1 to ann" in reassign(shared, "cy", "ann").out
    assert (step in queue(shared, "ann"), queue(shared, "cy")) == (True, set())
    assert log(shared) == [(step, "ann", "cy"), (step, "cy", "ann")]


def test_wrong_names_and_nothing_to_reassign_are_told_in_a_line_and_change_nothing(shared: Path) -> None:
    review(shared, "bo", tight)
    with AuditStore(shared) as store:
        store.reviewers.join("eve")
    before = waiting(shared)
    for giver, takers, words in (
        ("zoe", "cy", "FROM: no reviewer 'zoe'; known are ann, bo, eve"),
        ("bo", "cy", "FROM: nothing to reassign: no step waits for 'bo'"),
        ("eve", "cy", "FROM: nothing to reassign: no step waits for 'eve'"),
        ("ann", "ann", "TO: a reviewer is named twice"),
        ("ann", "cy,cy", "TO: a reviewer is named twice"),
        ("ann", "cy,", "TO: a reviewer's name is"),
        ("ann", "cy,Bo", "'Bo' is new and looks like the reviewer 'bo'"),
        ("a/b", "cy", "FROM: a reviewer's name is"),
    ):
        result = reassign(shared, giver, takers)
        assert (result.code, words in result.err, result.err.count("\n")) == (2, True, 1), result.err
    with AuditStore(shared) as store:
        assert store.reviewers.names() == ["ann", "bo", "eve"]
    assert (waiting(shared), log(shared)) == (before, [])


def test_the_log_of_reassignments_can_only_grow(shared: Path) -> None:
    assert reassign(shared, "ann", "cy").code == 0
    entries = log(shared)
    with closing(sqlite3.connect(shared / FILE_NAME)) as db:
        for change in ("DELETE FROM reassignments", "UPDATE reassignments SET taker = 'bo'"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                db.execute(change)
    assert log(shared) == entries


def test_an_audit_of_the_earlier_schema_goes_on(shared: Path) -> None:
    review(shared, "bo", tight)
    before, open_steps = said(shared), waiting(shared)["ann"]
    with closing(sqlite3.connect(shared / FILE_NAME)) as db:
        db.execute("DROP TABLE reassignments")
        db.execute("PRAGMA user_version=1")
    assert said(shared) == before
    assert f"{open_steps} to cy" in reassign(shared, "ann", "cy").out
    assert waiting(shared) == {"cy": open_steps}
