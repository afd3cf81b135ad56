"""A new version takes audit verdicts over where they still hold, and asks again where they do not."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from stepdown.audit.cases import open_cases
from stepdown.audit.settling import ReviewOutcome, review_outcome
from stepdown.audit.store import AuditStore
from tests.audit.reviewing import read_steps, review, said
from tests.conftest import Shop, stepdown
from tests.provider import Provider
from tests.workshop import ABILITIES, apprentice, config

Start = Callable[..., Provider]
NEEDS = [[0, 1, 2], [2, 1]]
SKILLS = {**ABILITIES, "clerk": apprentice(0, manner=" by the book"), "able": apprentice(1, manner=" well")}


def versions(shop: Shop, provider: Start, low: list[str]) -> tuple[Shop, Shop]:
    """A run that one reviewer has gone through, and one that relabels it with other models in the low tier.

    The reviewer was asked about labels of the lowest tier too, as people once were.
    """
    url = provider(SKILLS).url
    assert shop.build(config(url, NEEDS)).code == 0
    assert stepdown("audit", "sample", str(shop.run), "--rate", "1").code == 0
    review(shop.run, "ann", lambda step: "uncertain", "as it was")
    with open_cases(shop.run) as cases, AuditStore(shop.run) as store:
        for step in [step for step in store.steps() if step.lowest]:
            prefix = cases.read_prefix_digest(step.benchmark, step.instance_id, step.step_index)
            store.record("ann", step.id, "tight", "as it was", prefix_digest=prefix)
    new = Shop(shop.folder)
    new.run = shop.folder / "new"
    path = new.write(config(url, NEEDS, models={"low": low, "mid": ["hand"], "high": ["master"]}), "new.yaml")
    assert stepdown("relabel", str(shop.run), "--config", str(path), "--run", str(new.run)).code == 0
    return shop, new


def test_a_verdict_is_carried_where_prefix_label_and_the_tier_below_are_the_same(shop: Shop, provider: Start) -> None:
    _, new = versions(shop, provider, ["novice", "clerk"])
    result = stepdown("audit", "sample", str(new.run), "--rate", "0")
    told = "2 steps carried over, 2 queued again with what was said as history, 1 settle themselves, 0 gone"
    assert told in result.out
    assert {step.id for step in read_steps(new.run)} == {
        "workshop/job-0/1",
        "workshop/job-0/2",
        "workshop/job-0/3",
        "workshop/job-1/1",
        "workshop/job-1/2",
    }
    # The mid labels have another tier below them: what was said of them is history. So is what was said of the lowest
    # label; it stands, and nobody is asked again.
    assert {step for _, step in said(new.run)} == {"workshop/job-0/1", "workshop/job-0/3", "workshop/job-1/1"}
    with AuditStore(new.run) as store:
        assert {one.source for one in store.standing()} == {"carried"}
        (former,) = store.former("workshop/job-0/2")
        assert (former.reviewer, former.verdict.value, former.notes) == ("ann", "uncertain", "as it was")
        assert former.why == "the models one tier lower have changed"
        assert store.former("workshop/job-0/1") == []
        assert (store.progress("ann").done, store.progress("ann").total) == (2, 4)


def test_a_label_that_moved_or_a_prefix_that_changed_is_reviewed_again(shop: Shop, provider: Start) -> None:
    _, new = versions(shop, provider, ["able"])
    assert stepdown("audit", "sample", str(new.run), "--rate", "1").code == 0
    with AuditStore(new.run) as store:
        why = {step.id: [former.why for former in store.former(step.id)] for step in store.steps()}
        held = {one.step_id for one in store.standing()}
    # job-0's first step is made by another model now, so all later prefixes are others.
    assert why["workshop/job-0/2"] == ["the prefix has changed"]
    assert why["workshop/job-0/3"] == ["the prefix has changed"]
    assert why["workshop/job-1/2"] == ["the label has changed from mid to low"]
    assert held == {"workshop/job-0/1", "workshop/job-1/1"}


def test_a_step_that_waits_for_a_second_reviewer_waits_in_the_new_version_too(shop: Shop, provider: Start) -> None:
    old, new = versions(shop, provider, ["novice", "clerk"])
    assert stepdown("audit", "sample", str(old.run), "--reviewers", "ann,bo", "--overlap", "1").code == 0
    assert stepdown("audit", "sample", str(new.run), "--rate", "0").code == 0
    with AuditStore(new.run) as store:
        found = {one.step.id: review_outcome(one) for one in store.reviewed()}
        asked = {step for step, outcome in found.items() if outcome is not ReviewOutcome.LOWEST}
        assert {found[step] for step in asked} == {ReviewOutcome.OPEN}
        assert {item.step.id for item in store.queue("bo")} == asked == {*found} - {"workshop/job-0/1"}
    review(old.run, "bo", lambda step: "uncertain")
    assert stepdown("audit", "sample", str(new.run), "--rate", "0").code == 0
    with AuditStore(new.run) as store:
        found = {one.step.id: review_outcome(one) for one in store.reviewed()}
    assert found["workshop/job-0/1"] is ReviewOutcome.LOWEST
    assert found["workshop/job-0/3"] is ReviewOutcome.UNCERTAIN
    assert found["workshop/job-0/2"] is ReviewOutcome.OPEN


def test_what_was_carried_is_carried_once_and_stays_taken_back(shop: Shop, provider: Start) -> None:
    _, new = versions(shop, provider, ["novice", "clerk"])
    assert stepdown("audit", "sample", str(new.run), "--rate", "0").code == 0
    with AuditStore(new.run) as store:
        assert store.undo("ann", "workshop/job-0/3") == "workshop/job-0/3"
        assert store.undo("ann", "workshop/job-0/1") is None  # history of a step that settles itself
    assert stepdown("audit", "sample", str(new.run), "--rate", "0").code == 0
    assert {step for _, step in said(new.run)} == {"workshop/job-0/1", "workshop/job-1/1"}


def test_the_earlier_run_may_have_moved(shop: Shop, provider: Start) -> None:
    old, new = versions(shop, provider, ["novice", "clerk"])
    away = shop.folder / "away"
    away.mkdir()
    shutil.move(old.run / "audit.sqlite", away / "audit.sqlite")
    shutil.copy(old.run / "ledger.sqlite", away)
    quiet = stepdown("audit", "sample", str(new.run), "--rate", "0")
    assert (quiet.code, "carried over" in quiet.out) == (0, False)
    wrong = stepdown("audit", "sample", str(new.run), "--from", str(new.run))
    assert (wrong.code, "not the run that the new one relabels" in wrong.err) == (2, True)
    never = stepdown("audit", "sample", str(new.run), "--from", str(old.run))
    assert (never.code, "never sampled" in never.err) == (2, True)
    found = stepdown("audit", "sample", str(new.run), "--rate", "0", "--from", str(away))
    assert "2 steps carried over" in found.out
