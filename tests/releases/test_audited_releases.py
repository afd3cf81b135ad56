"""Gate 4: a run whose steps were sampled is published only when every verdict is settled, as the reviewers left it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepdown.audit.store import AuditStore
from stepdown.builder.common.files import digest_of
from stepdown.releases.layout import read_manifest, read_released_rows
from tests import workshop
from tests.audit.reviewing import only, read_steps, review, tight
from tests.conftest import Result, Shop, stepdown
from tests.provider import Provider
from tests.releases.test_planted_defects import copied


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the workshop, every step of it sampled."""
    made = Shop(tmp_path_factory.mktemp("audited"))
    with Provider(workshop.ABILITIES) as provider:
        settings = workshop.config(provider.url, [[0, 1, 2], [1], [0, 0]], protocol={"audit": {"rate": 1.0}})
        assert made.build(settings).code == 0
    return made.run


@pytest.fixture
def run(built: Path, tmp_path: Path) -> Path:
    """A copy of it with its sample drawn."""
    run = copied(built, tmp_path / "run")
    assert stepdown("audit", "sample", str(run)).code == 0
    return run


def publish(run: Path, *options: str) -> Result:
    return stepdown("publish", str(run), "--out", str(run.parent / "release"), *options)


def apply(run: Path) -> None:
    assert stepdown("audit", "apply", str(run)).code == 0


def test_a_sample_that_nobody_reviewed_is_refused(built: Path, run: Path) -> None:
    for folder in (built, run):
        done = publish(folder)
        assert done.code == 2
        assert "audit: 3 steps were sampled for the audit and no revision stands" in done.out
        assert (
            "stepdown audit apply RUN; or have no audit: `audit: {rate: 0}` in the config, and stepdown rel" in done.out
        )


def test_a_sample_of_nothing_is_no_audit_of_a_run_that_is_to_be_audited(built: Path, tmp_path: Path) -> None:
    run = copied(built, tmp_path / "run")
    assert stepdown("audit", "sample", str(run), "--rate", "0").code == 0
    apply(run)
    done = publish(run)
    assert done.code == 2
    assert "audit.sampled: no step was sampled, and the run has 3 to audit: stepdown audit sample " in done.out


def test_verdicts_that_are_not_settled_are_refused(run: Path) -> None:
    review(run, "ann", lambda step: "tight" if step.instance_id == "job-0" else None)
    apply(run)
    done = publish(run)
    assert done.code == 2
    assert "audit.unsettled: 1 audit verdicts are not settled" in done.out
    assert "revisions/1/manifest.json" in done.out


def test_what_is_in_dispute_is_refused_until_a_further_reviewer_has_settled_it(run: Path) -> None:
    disputed = next(step for step in read_steps(run) if step.tier == "mid")
    review(run, "ann", tight)
    review(run, "bo", only("further-downgradeable", disputed))
    told = stepdown("audit", "apply", str(run))
    assert "3 at the lowest tier settle themselves, 2 settled by 2 reviewers" in told.out
    assert "not settled: on 1 steps reviewers disagree: stepdown audit sample RUN --settle NAME" in told.out
    done = publish(run)
    assert done.code == 2
    assert "audit.unsettled: 1 audit verdicts are not settled: on 1 reviewers disagree" in done.out
    assert "stepdown audit sample RUN --settle NAME asks one more); then stepdown audit apply RUN" in done.out
    assert stepdown("audit", "sample", str(run), "--settle", "cy").code == 0
    review(run, "cy", tight)
    apply(run)
    done = publish(run)
    assert done.code == 0, done.out


def test_all_that_is_in_the_way_is_listed_at_once(run: Path) -> None:
    review(run, "ann", lambda step: "tight" if step.instance_id == "job-0" else None)
    apply(run)
    bank = run / "revisions" / "1" / "question_bank.jsonl"
    bank.write_text(bank.read_text().replace('"step_index": 1', '"step_index": "1"', 1))
    done = publish(run)
    assert done.code == 2
    for word in ("audit.unsettled: 1 audit", "step_index: must be a whole number", "question_bank.jsonl: its bytes"):
        assert word in done.out
    assert not (run.parent / "release").exists()


def test_reviewers_verdicts_are_published_and_counted(run: Path) -> None:
    lowered = next(step for step in read_steps(run) if step.tier == "mid")
    review(run, "ann", only("further-downgradeable", lowered))
    apply(run)
    done = publish(run)
    assert done.code == 0, done.out
    release = run.parent / "release"
    assert stepdown("verify", str(release)).code == 0
    tiers = {row.id: row.target_tier for row in read_released_rows(release)}
    assert tiers[lowered.id] == "low"
    audit = read_manifest(release).runs[0].audit
    assert audit is not None
    assert (audit["sampled"], audit["settled"], audit["lowered"]) == (6, 6, 1)
    card = (release / "README.md").read_text()
    told = (
        "6 of 6 sampled steps settled: 3 by themselves, since their label is the lowest tier, the others by 1 reviewer"
    )
    assert f"{told}; 5 tight, 1 lowered" in card
    assert "3 steps were judged by a person, who lowered 1" in (release / "croissant.json").read_text()


def test_an_uncertain_step_holds_its_instance_back_and_the_release_counts_it(run: Path) -> None:
    review(run, "ann", only("uncertain", "workshop/job-1/1"))
    apply(run)
    done = publish(run)
    assert done.code == 0, done.out
    release = run.parent / "release"
    assert {row.instance_id for row in read_released_rows(release)} == {"job-0", "job-2"}
    manifest = read_manifest(release)
    assert manifest.left_out == {"*": {"audit: uncertain": 1}}
    assert stepdown("verify", str(release)).code == 0


def test_a_revision_taken_back_is_no_audit(run: Path) -> None:
    review(run, "ann", tight)
    apply(run)
    assert stepdown("audit", "undo", str(run)).code == 0
    assert publish(run).code == 2


def test_a_label_lowered_by_more_than_one_tier_is_refused(run: Path) -> None:
    high = next(step for step in read_steps(run) if step.tier == "high")
    review(run, "ann", only("further-downgradeable", high))
    apply(run)
    folder = run / "revisions" / "1"
    bank = folder / "question_bank.jsonl"
    changed = [json.loads(line) for line in bank.read_text().splitlines()]
    for row in changed:
        if row["id"] == high.id:
            row.update(target_tier="low", target_tier_id=0)
    bank.write_text("".join(json.dumps(row) + "\n" for row in changed))
    done = publish(run)
    assert done.code == 2
    assert "basis: a reviewer lowers a label by one tier, not high to low" in done.out


def test_a_sample_that_has_grown_since_is_refused(built: Path, tmp_path: Path) -> None:
    run = copied(built, tmp_path / "run")
    assert stepdown("audit", "sample", str(run), "--rate", "0.4").code == 0
    review(run, "ann", tight)
    apply(run)
    first = len(read_steps(run))
    assert stepdown("audit", "sample", str(run), "--rate", "1").code == 0
    done = publish(run)
    assert done.code == 2
    assert f"audit.sampled: 6 steps are sampled, and the revision that stands has {first}" in done.out
    assert 0 < first < 6


def test_a_revision_that_was_changed_by_hand_is_refused(run: Path) -> None:
    review(run, "ann", only("uncertain", "workshop/job-1/1"))
    apply(run)
    manifest = run / "revisions" / "1" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"unsettled": 0', '"unsettled":  0'))
    done = publish(run)
    assert done.code == 2
    assert "is not the one that was applied" in done.out


def test_nobody_is_waited_for_where_all_sampled_steps_have_the_lowest_label(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    with Provider(workshop.ABILITIES) as provider:
        settings = workshop.config(provider.url, [[0, 0], [0]], protocol={"audit": {"rate": 1.0}})
        assert shop.build(settings).code == 0
    assert shop.read("audit_queue.jsonl") == []
    assert stepdown("publish", str(shop.run), "--out", str(tmp_path / "unsampled")).code == 0
    drawn = stepdown("audit", "sample", str(shop.run))
    assert "labels of the lowest tier settle themselves: 3 steps; 0 are for people" in drawn.out
    served = stepdown("audit", "serve", str(shop.run))
    assert (served.code, served.out) == (0, "")
    assert f"nobody is to be asked; go on with stepdown audit apply {shop.run}" in served.err
    assert stepdown("publish", str(shop.run), "--out", str(tmp_path / "sampled")).code == 0
    apply(shop.run)
    assert stepdown("publish", str(shop.run), "--out", str(tmp_path / "applied")).code == 0
    evidence = [json.loads(line) for line in (shop.run / "revisions/1/evidence.jsonl").read_text().splitlines()]
    due = {"verdict": "tight", "executed_tier": "low", "settles_itself": "the label is the lowest tier", "verdicts": []}
    assert [one["audit"] for one in evidence] == [due] * 3


def test_a_sample_that_was_drawn_by_hand_waits_though_the_protocol_has_none(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    with Provider(workshop.ABILITIES) as provider:
        assert shop.build(workshop.config(provider.url, [[0, 1]], protocol={"audit": {"rate": 0}})).code == 0
    assert publish(shop.run).code == 0
    assert stepdown("audit", "sample", str(shop.run), "--rate", "1").code == 0
    done = stepdown("publish", str(shop.run), "--out", str(tmp_path / "again"))
    remedy = f"stepdown audit serve {shop.run}, then stepdown audit apply {shop.run}"
    assert (done.code, f"1 sampled steps, and no revision stands: {remedy}" in done.out) == (2, True), done.out


def test_a_revision_that_waited_for_the_lowest_tier_only_is_made_anew_without_anybody(run: Path) -> None:
    """As one of before labels of the lowest tier settled themselves."""
    review(run, "ann", tight)
    apply(run)
    manifest = run / "revisions" / "1" / "manifest.json"
    older = json.loads(manifest.read_text())
    older["audit"] |= {"settled": 3, "unsettled": 3, "tight": 3}
    del older["audit"]["lowest"]
    manifest.write_text(json.dumps(older))
    with AuditStore(run) as store:
        store.revisions.record(1, "applied", str(digest_of(manifest)), store.revisions.count_entries())
    done = publish(run)
    assert done.code == 2
    assert f"settled now, and the revision that stands is from before: stepdown audit apply {run}" in done.out
    apply(run)
    assert publish(run).code == 0


def test_runs_that_can_not_be_read_or_have_other_tiers_hide_nothing_of_the_others(run: Path, tmp_path: Path) -> None:
    with Provider(workshop.ABILITIES) as provider:
        other = Shop(tmp_path / "other")
        other.folder.mkdir()
        settings = workshop.config(provider.url, [[1]], protocol={"audit": {"rate": 0}})
        settings["protocol"]["pool"]["tiers"][-1]["id"] = 9
        assert other.build(settings).code == 0
    bank = other.run / "question_bank.jsonl"
    bank.write_text(bank.read_text().replace('"step_index": 1', '"step_index": "1"', 1))
    (tmp_path / "empty").mkdir()
    broken = copied(run, tmp_path / "broken")
    (broken / "manifest.json").write_text("{")
    review(run, "ann", tight)
    folders = [tmp_path / "nowhere", run, tmp_path / "empty", other.run, broken]
    done = stepdown("publish", *map(str, folders), "--out", str(tmp_path / "release"), "--without", "workshop/job-7")
    assert done.code == 2
    lines = done.out.splitlines()
    for words in (
        f"{tmp_path}/nowhere: no finished run is here",
        "revision stands: stepdown audit serve",
        f"{tmp_path}/empty: no finished run is here",
        f"{other.run}/manifest.json: pool.tiers: not the tiers of",
        f"{bank}:1: step_index: must be a whole number",
        f"{broken}/manifest.json: not JSON",
    ):
        assert any(words in line for line in lines), (words, lines)
    assert "target_tier" not in done.out  # rows are looked at by their own run's tiers
    assert "job-7" not in done.out  # it may be in a run that can not be read
    taken = stepdown("publish", *map(str, folders), "--out", str(run))
    assert (taken.code, f"{run}: is there and not an empty folder" in taken.out) == (2, True)
    assert f"{tmp_path}/nowhere: no finished run is here" in taken.out
    assert not (tmp_path / "release").exists()
