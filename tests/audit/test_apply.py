"""Applying what reviewers settled: one tier lower and no more, in a revision that can be taken back."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepdown.audit.revisions import current_files
from stepdown.audit.settling import ReviewOutcome, review_outcome
from stepdown.audit.store import AuditStore
from stepdown.audit.verdicts import AuditStep, AuditVerdict, RecordedVerdict, ReviewedStep
from stepdown.builder.errors import BadInput
from tests import workshop
from tests.audit.reviewing import above_lowest, by_id, only, read_steps, review, rows, tight
from tests.conftest import Shop, started, stepdown
from tests.provider import Provider

BASE = ("question_bank.jsonl", "evidence.jsonl", "audit_queue.jsonl", "manifest.json", "spend.json")
TIERS = ["low", "mid", "mid_high", "high"]


def base_bytes(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in BASE}


def applied(run: Path) -> tuple[Path, dict[str, Any]]:
    result = stepdown("audit", "apply", str(run))
    assert result.code == 0, result.err
    folder = current_files(run)
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return folder, manifest


def test_a_label_is_lowered_by_exactly_one_tier_and_says_who_when_and_why(sampled: Path) -> None:
    target = above_lowest(sampled)[0]
    review(sampled, "ann", only("further-downgradeable", target), "the answer was right")
    before = base_bytes(sampled)
    folder, manifest = applied(sampled)
    assert folder == sampled / "revisions" / "1"
    assert base_bytes(sampled) == before
    old, new = (by_id(rows(where / "question_bank.jsonl")) for where in (sampled, folder))
    assert old.keys() == new.keys()
    lowered = {key for key in old if old[key] != new[key]}
    assert lowered == {target.id}
    assert TIERS.index(new[target.id]["target_tier"]) == TIERS.index(old[target.id]["target_tier"]) - 1
    assert new[target.id]["target_tier_id"] == old[target.id]["target_tier_id"] - 1
    assert {**new[target.id], "target_tier": 0, "target_tier_id": 0} == {
        **old[target.id],
        "target_tier": 0,
        "target_tier_id": 0,
    }
    proof, executed = (by_id(rows(where / "evidence.jsonl")) for where in (folder, sampled))
    assert {key: one["basis"] for key, one in proof.items() if one["basis"] != "executed"} == {target.id: "audit"}
    (verdict,) = proof[target.id]["audit"]["verdicts"]
    assert (verdict["reviewer"], verdict["verdict"], verdict["notes"]) == (
        "ann",
        "further-downgradeable",
        "the answer was right",
    )
    assert verdict["at"].startswith("20")
    assert proof[target.id]["trials"] == executed[target.id]["trials"]
    assert {key for key, one in proof.items() if "audit" in one} == {step.id for step in read_steps(sampled)}
    audit = manifest["audit"]
    count = len(read_steps(sampled))
    assert (audit["revision"], audit["sampled"], audit["settled"], audit["unsettled"]) == (1, count, count, 0)
    assert (audit["tight"], audit["lowered"], audit["reviewers"], audit["held_back"]) == (count - 1, 1, 1, {})
    assert audit["lowest"] == count - len(above_lowest(sampled)) > 0
    assert audit["workloads"] == [
        {
            "workload": "planted",
            "steps": 72,
            "sampled": count,
            "downgradeable": 1,
            "tight": count - 1,
            "lowest": count - len(above_lowest(sampled)),
            "uncertain": 0,
        }
    ]


def test_the_manifest_counts_the_rows_that_are_there(sampled: Path) -> None:
    steps = above_lowest(sampled)
    review(
        sampled,
        "ann",
        lambda step: "uncertain" if step == steps[0] else "further-downgradeable",
    )
    folder, manifest = applied(sampled)
    found = rows(folder / "question_bank.jsonl")
    kept = {row["instance_id"] for row in found}
    assert manifest["rows"] == len(found) == 72 - 6
    assert steps[0].instance_id not in kept
    assert manifest["instances"] == {"planted": len(kept)} == {"planted": 11}
    assert sum(manifest["seeds"]["models"]["planted"].values()) == 11
    tiers = Counter(row["target_tier"] for row in found)
    assert manifest["labels"] == {"planted": {tier: tiers[tier] for tier in TIERS}}
    assert manifest["audit"]["held_back"] == {"uncertain": 1}
    assert manifest["audit"]["lowered"] == sum(step.instance_id in kept for step in steps)
    for name, said in manifest["files"].items():
        data = (folder / name).read_bytes()
        assert (said["sha256"], said["bytes"]) == (hashlib.sha256(data).hexdigest(), len(data))
        assert said["lines"] == data.count(b"\n")


def test_steps_nobody_reviewed_hold_their_instances_back(sampled: Path) -> None:
    steps = above_lowest(sampled)
    review(sampled, "ann", lambda step: None if step.instance_id == steps[0].instance_id else "tight")
    folder, manifest = applied(sampled)
    assert manifest["audit"]["held_back"] == {"not reviewed": 1}
    assert manifest["audit"]["unsettled"] == sum(step.instance_id == steps[0].instance_id for step in steps)
    assert steps[0].instance_id not in {row["instance_id"] for row in rows(folder / "question_bank.jsonl")}


def test_a_third_reviewer_settles_a_disagreement(sampled: Path) -> None:
    target = above_lowest(sampled)[0]
    review(sampled, "ann", only("further-downgradeable", target))
    review(sampled, "bob", tight)
    _, manifest = applied(sampled)
    assert manifest["audit"]["held_back"] == {"reviewers disagree": 1}
    count = len(read_steps(sampled))
    found = {name: manifest["audit"][name] for name in ("settled", "unsettled", "disputed")}
    assert found == {"settled": count - 1, "unsettled": 1, "disputed": 1}
    settle = ("audit", "sample", str(sampled), "--settle")
    already = stepdown(*settle, "ann")
    assert (already.code, "'ann' reviews every step already" in already.err) == (2, True)
    assert "1 steps on which reviewers disagree are for cy" in stepdown(*settle, "cy").out
    assert "0 steps on which" in stepdown(*settle, "cy").out
    with AuditStore(sampled) as store:
        assert [item.step.id for item in store.queue("cy")] == [target.id]
    _, manifest = applied(sampled)
    assert (manifest["audit"]["held_back"], manifest["audit"]["unsettled"]) == ({"not reviewed": 1}, 1)
    review(sampled, "cy", lambda step: "further-downgradeable" if step == target else None)
    folder, manifest = applied(sampled)
    assert (manifest["audit"]["revision"], manifest["audit"]["held_back"], manifest["audit"]["lowered"]) == (3, {}, 1)
    assert len(by_id(rows(folder / "evidence.jsonl"))[target.id]["audit"]["verdicts"]) == 3


def test_who_is_to_settle_what_nobody_disagrees_on_reviews_nothing(sampled: Path) -> None:
    review(sampled, "ann", tight)
    result = stepdown("audit", "sample", str(sampled), "--settle", "eve")
    assert (result.code, "0 steps on which reviewers disagree are for eve" in result.out) == (0, True)
    assert "the queue of eve is empty: settle again when reviewers disagree" in result.err
    with AuditStore(sampled) as store:
        assert "eve" in store.reviewers.names()
        store.reviewers.join("eve")  # as serving to her does
        assert store.queue("eve") == []
    target = above_lowest(sampled)[0]
    review(sampled, "bob", only("further-downgradeable", target))
    later = stepdown("audit", "sample", str(sampled), "--settle", "eve")
    assert ("1 steps on which" in later.out, "is empty" in later.err) == (True, False)
    with AuditStore(sampled) as store:
        assert [item.step for item in store.queue("eve")] == [target]


def test_a_verdict_on_another_prefix_counts_for_nothing(sampled: Path) -> None:
    review(sampled, "ann", tight)
    target = above_lowest(sampled)[0]
    with AuditStore(sampled) as store:
        store.record("ann", target.id, "further-downgradeable", prefix_digest="0f" * 32)
    _, manifest = applied(sampled)
    assert (manifest["audit"]["lowered"], manifest["audit"]["held_back"]) == (0, {"not reviewed": 1})


def test_a_revision_is_taken_back_and_what_stood_before_it_stands_again(sampled: Path) -> None:
    assert current_files(sampled) == sampled
    review(sampled, "ann", tight)
    applied(sampled)
    target = above_lowest(sampled)[0]
    review(sampled, "ann", only("further-downgradeable", target))
    second, _ = applied(sampled)
    assert second.name == "2"
    result = stepdown("audit", "undo", str(sampled))
    assert (result.code, "revision 2 is taken back" in result.out) == (0, True)
    assert current_files(sampled) == sampled / "revisions" / "1"
    assert stepdown("audit", "undo", str(sampled)).code == 0
    assert current_files(sampled) == sampled
    nothing = stepdown("audit", "undo", str(sampled))
    assert (nothing.code, "no revision stands" in nothing.err) == (2, True)
    # Nothing is overwritten: what was taken back is still there, and the next one has a number of its own.
    assert len(rows(second / "question_bank.jsonl")) == 72
    third, manifest = applied(sampled)
    assert (third.name, manifest["audit"]["revision"]) == ("3", 3)
    with AuditStore(sampled) as store:
        assert [(one.number, one.action) for one in store.revisions.all()] == [
            (1, "applied"),
            (2, "applied"),
            (2, "undone"),
            (1, "undone"),
            (3, "applied"),
        ]


def test_a_revision_is_a_function_of_the_run_and_what_was_said(sampled: Path, copy: Callable[[Path], Path]) -> None:
    review(sampled, "ann", only("further-downgradeable", above_lowest(sampled)[0]))
    other = copy(sampled)
    first, second = applied(sampled)[0], applied(other)[0]
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()


def test_a_run_that_grew_makes_its_revision_stale(shop: Shop, provider: Callable[..., Provider]) -> None:
    url, needs = provider().url, [[0, 1], [1, 5], [0, 0], [5, 1]]
    assert shop.build(workshop.config(url, needs, operation={"budget": {"calls": 16}})).code == 3
    assert stepdown("audit", "sample", str(shop.run), "--rate", "1").code == 0
    review(shop.run, "ann", tight)
    assert applied(shop.run)[0].name == "1"
    assert shop.resume("--config", str(shop.write(workshop.config(url, needs), "more.yaml"))).code == 0
    with pytest.raises(BadInput, match="the run has changed since revision 1"):
        current_files(shop.run)
    # Nor is a new one made of it in which nobody was to look at the new steps.
    unsampled = stepdown("audit", "apply", str(shop.run))
    assert unsampled.code == 2
    assert f"stepdown audit sample {shop.run} --rate 1.0 --seed 0" in unsampled.err
    assert stepdown("audit", "sample", str(shop.run), "--rate", "1").code == 0
    review(shop.run, "ann", tight)
    folder, manifest = applied(shop.run)
    assert (folder.name, manifest["audit"]["settled"]) == ("2", 8)
    # Taking that one back works, though the one before it is of no use any more.
    taken_back = stepdown("audit", "undo", str(shop.run))
    assert (taken_back.code, taken_back.out) == (0, "revision 2 is taken back\n")
    assert "the run has changed since revision 1" in taken_back.err


def test_files_that_are_not_the_runs_are_refused(sampled: Path) -> None:
    review(sampled, "ann", tight)
    bank = sampled / "question_bank.jsonl"
    bank.write_bytes(bank.read_bytes().replace(b'"low"', b'"mid"', 1))
    result = stepdown("audit", "apply", str(sampled))
    assert (result.code, "not the file that the run's manifest names" in result.err) == (2, True)
    assert not list((sampled / "revisions").iterdir())
    assert current_files(sampled) == sampled
    for text in ("[]", '{"files": 7}', "[" * 100_000, "{"):
        (sampled / "manifest.json").write_text(text)
        result = stepdown("audit", "apply", str(sampled))
        assert (result.code, "manifest.json: not " in result.err) == (2, True), text[:20]
    (sampled / "manifest.json").unlink()
    result = stepdown("audit", "apply", str(sampled))
    assert (result.code, "manifest.json" in result.err) == (2, True)


def test_a_revision_whose_files_were_changed_is_refused(sampled: Path) -> None:
    review(sampled, "ann", tight)
    folder, _ = applied(sampled)
    (folder / "manifest.json").write_text((folder / "manifest.json").read_text().replace('"settled"', '"settles"'))
    with pytest.raises(BadInput, match="not the one that was applied"):
        current_files(sampled)
    (folder / "manifest.json").unlink()
    with pytest.raises(BadInput, match="stepdown audit undo takes it back"):
        current_files(sampled)


def test_a_revision_that_a_killed_process_left_unsaid_is_none(sampled: Path) -> None:
    (sampled / "revisions" / "1").mkdir(parents=True)
    (sampled / "revisions" / "\u00b2").mkdir()  # a digit to some, and no number
    assert current_files(sampled) == sampled
    review(sampled, "ann", tight)
    assert applied(sampled)[0].name == "2"


def test_a_run_that_was_never_sampled_can_not_be_applied(run: Path) -> None:
    for command in ("apply", "undo", "summary", "export", "import", "repeat"):
        extra = {"export": ["-o", "-"], "import": ["x.csv"]}.get(command, [])
        if command == "import":
            (run / "x.csv").write_text("id,reviewer,verdict,notes,prefix\n")
            extra = [str(run / "x.csv")]
        if command == "export":
            extra += ["--format", "csv"]
        result = stepdown("audit", command, str(run), *extra)
        assert (result.code, "stepdown audit sample" in result.err) == (2, True), (command, result.err)


VERDICTS = list(AuditVerdict)


@given(st.lists(st.sampled_from(VERDICTS), max_size=6), st.integers(0, 3), st.booleans())
def test_a_step_is_settled_by_more_than_half_and_by_itself_at_the_lowest_tier(
    given_verdicts: list[AuditVerdict], awaited: int, lowest: bool
) -> None:
    step = AuditStep("made/job/1", "made", "job", 1, "mid", 1, lowest, "")
    said = tuple(RecordedVerdict(step.id, f"r{n}", verdict, "", "", "", "") for n, verdict in enumerate(given_verdicts))
    found = review_outcome(ReviewedStep(step, said, awaited))
    assert found.is_settled is not found.holds_back or found is ReviewOutcome.UNCERTAIN
    if lowest:
        assert found is ReviewOutcome.LOWEST
        return
    counts = Counter(given_verdicts)
    winners = [verdict for verdict, count in counts.items() if count * 2 > counts.total() + awaited]
    if winners:
        assert found.value == winners[0].value
    else:
        assert found.holds_back
        assert not found.is_verdict
        assert (found is ReviewOutcome.OPEN) == (awaited > 0 or not counts.total())


def test_a_release_waits_for_what_was_said_after_the_revision(sampled: Path, tmp_path: Path) -> None:
    review(sampled, "ann", tight)
    applied(sampled)
    step = above_lowest(sampled)[0]
    review(sampled, "ann", only("further-downgradeable", step))
    refused = stepdown("publish", str(sampled), "--out", str(tmp_path / "release"))
    assert (refused.code, "since the latest revision: stepdown audit apply" in refused.out) == (2, True), refused.out
    applied(sampled)
    assert stepdown("publish", str(sampled), "--out", str(tmp_path / "release")).code == 0
    # Who takes a revision back has decided which one stands, whatever was said since that one was made.
    assert stepdown("audit", "undo", str(sampled)).code == 0
    assert stepdown("publish", str(sampled), "--out", str(tmp_path / "earlier")).code == 0
    with AuditStore(sampled) as store:
        store.undo("ann", step.id)
    assert stepdown("publish", str(sampled), "--out", str(tmp_path / "later")).code == 2


def test_an_apply_waits_for_another_and_leaves_its_files_alone(sampled: Path) -> None:
    review(sampled, "ann", tight)
    folder = sampled / "revisions"
    (folder / ".1.part").mkdir(parents=True)
    (folder / ".1.part" / "of another process").touch()
    handle = os.open(folder, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    second = started("audit", "apply", str(sampled))
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(4)
    assert (folder / ".1.part" / "of another process").exists()
    (folder / ".1.part").rename(folder / "1")
    os.close(handle)
    assert second.communicate()[0].startswith("revision 2:")
    assert current_files(sampled) == folder / "2"
