"""The summary's figures, against numbers worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepdown.audit.agreement import _cohens_kappa, _fleiss_kappa
from stepdown.audit.store import AuditStore
from stepdown.audit.summary import AuditSummary, summarise
from stepdown.audit.verdicts import AuditStep
from tests.audit.reviewing import above_lowest, only, read_steps, review, tight
from tests.conftest import stepdown

STEPS = {("bfcl", "low"): 120, ("bfcl", "mid"): 128, ("swe", "low"): 200, ("swe", "high"): 136, ("pinch", "low"): 48}


def step(workload: str, number: int, tier: str) -> AuditStep:
    return AuditStep(f"{workload}/job-{number}/1", workload, f"job-{number}", 1, tier, 0, tier == "low", "")


@pytest.fixture
def store(tmp_path: Path) -> AuditStore:
    """The paper's audit: 25 of 248, 34 of 336 and 5 of 48 steps, one of them lowered."""
    made = AuditStore(tmp_path, create=True)
    made.add(step("bfcl", n, "low" if n < 15 else "mid") for n in range(25))
    made.add(step("swe", n, "low" if n < 14 else "high") for n in range(34))
    made.add(step("pinch", n, "low") for n in range(5))
    for one in made.steps():
        lower = one.id == "swe/job-20/1"
        made.record("ann", one.id, "further-downgradeable" if lower else "tight", prefix_digest="00")
    return made


def summary(store: AuditStore) -> AuditSummary:
    return summarise(store, STEPS, "low")


def test_the_papers_table_comes_out(store: AuditStore) -> None:
    found = {one.name: one for one in summary(store).slices}
    assert {name: (one.steps, one.sampled, one.downgradeable) for name, one in found.items()} == {
        "bfcl": (248, 25, 0),
        "pinch": (48, 5, 0),
        "swe": (336, 34, 1),
        "all": (632, 64, 1),
    }
    shares = {name: round(100 * (one.tight_share or 0), 1) for name, one in found.items()}
    assert shares == {"bfcl": 100.0, "pinch": 100.0, "swe": 97.1, "all": 98.4}


def test_intervals_are_exact(store: AuditStore) -> None:
    found = {one.name: one for one in summary(store).slices}
    # All of n: the lower bound is the n-th root of 0.025.
    assert found["pinch"].tight_interval.low == pytest.approx(0.025 ** (1 / 5))
    assert found["bfcl"].tight_interval == pytest.approx((0.025 ** (1 / 25), 1.0))
    # All but one of n: the upper bound u solves u ** n = 1 - 0.025.
    assert found["all"].tight_interval.high == pytest.approx(0.975 ** (1 / 64))


def test_the_same_is_said_of_labels_above_the_lowest_alone(store: AuditStore) -> None:
    found = {one.name: one for one in summary(store).above_lowest}
    assert {name: (one.steps, one.sampled, one.downgradeable) for name, one in found.items()} == {
        "bfcl": (128, 10, 0),
        "pinch": (0, 0, 0),
        "swe": (136, 20, 1),
        "all": (264, 30, 1),
    }
    assert found["swe"].tight_share == 0.95
    assert found["pinch"].tight_share is None


def test_labels_that_are_still_too_high_are_extrapolated_by_stratum(store: AuditStore) -> None:
    found = {(one.workload, one.tier): one for one in summary(store).expected}
    # 136 high labels, 20 of them reviewed, one of those lowered and so mended: 116 / 20 more are expected.
    high = found["swe", "high"]
    assert (high.left, high.settled, high.downgradeable, high.expected) == (116, 20, 1, 5.8)
    assert high.low == pytest.approx(116 * (1 - 0.975 ** (1 / 20)), abs=1e-3)
    mid = found["bfcl", "mid"]
    assert (mid.left, mid.expected, mid.low) == (118, 0.0, 0.0)
    assert mid.high == pytest.approx(118 * (1 - 0.025 ** (1 / 10)), abs=1e-3)
    assert ("pinch", "low") not in found
    total = found["all", ""]
    assert (total.left, total.expected) == (234, 5.8)
    # The sum's bounds are those of both strata, each at 97.5%, so that both hold at once with 95%.
    assert total.low == pytest.approx(116 * (1 - 0.9875 ** (1 / 20)), abs=1e-3)
    assert total.high > high.high + mid.high


def test_a_stratum_that_nobody_reviewed_is_not_known(tmp_path: Path) -> None:
    store = AuditStore(tmp_path, create=True)
    store.add([step("swe", 1, "high")])
    found = summarise(store, {("swe", "high"): 10, ("swe", "low"): 5}, "low").expected
    assert [(one.left, one.expected, one.low, one.high) for one in found] == [(10, None, 0.0, 10.0)] * 3


def test_what_is_not_a_verdict_is_in_no_share(store: AuditStore) -> None:
    store.record("bob", "swe/job-21/1", "uncertain", prefix_digest="00")
    store.record("ann", "bfcl/job-20/1", "uncertain", prefix_digest="00")
    store.undo("ann", "swe/job-22/1")
    found = {one.name: one for one in summary(store).slices}
    swe = found["swe"]
    assert (swe.sampled, swe.settled, swe.tight, swe.disagree, swe.open) == (34, 32, 31, 1, 1)
    bfcl = found["bfcl"]
    assert (bfcl.settled, bfcl.uncertain, bfcl.tight_share) == (25, 1, 0.96)


def test_kappas_are_those_of_the_textbooks() -> None:
    # Cohen's kappa of 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: (0.7 - 0.5) / (1 - 0.5).
    assert _cohens_kappa([[20, 5, 0], [10, 15, 0], [0, 0, 0]]) == 0.4
    # Fleiss' own example (1971): ten subjects, fourteen raters, five categories.
    fleiss = [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
    assert _fleiss_kappa(fleiss) == pytest.approx(0.21, abs=0.0005)
    assert _cohens_kappa([[9, 0, 0], [0, 0, 0], [0, 0, 0]]) is None
    assert _fleiss_kappa([]) is None


def test_reviewers_agreement_is_over_the_steps_that_they_share(store: AuditStore) -> None:
    shared = [f"bfcl/job-{number}" for number in range(15, 25)] + [f"swe/job-{number}" for number in range(21, 31)]
    for number in range(20):
        verdict = "tight" if number < 15 else "uncertain"
        store.record("bob", f"{shared[number]}/1", verdict, prefix_digest="00")
    for number in range(0, 20, 2):
        store.record("cy", f"{shared[number]}/1", "tight", prefix_digest="00")
    for low in ("swe/job-1/1", "swe/job-2/1"):  # labels of the lowest tier: what is said of them is history
        store.record("bob", low, "uncertain", prefix_digest="00")
    found = summary(store)
    pairs = {one.reviewers: (one.steps, one.same) for one in found.cohen}
    assert pairs == {("ann", "bob"): (20, 15), ("ann", "cy"): (10, 10), ("bob", "cy"): (10, 8)}
    # ann says tight of all 20, bob of 15: observed and expected agreement are both 0.75.
    assert found.cohen[0].kappa == pytest.approx(0.0)
    assert found.cohen[1].kappa is None
    assert found.fleiss is not None
    assert (found.fleiss.steps, found.fleiss.same) == (10, 8)
    # Per step (1 or 1/3 agreeing pairs): P = (8 + 2/3) / 10; P_e = (28/30)**2 + (2/30)**2.
    expected = (28 / 30) ** 2 + (2 / 30) ** 2
    assert found.fleiss.kappa == pytest.approx(((8 + 2 / 3) / 10 - expected) / (1 - expected), abs=1e-6)


def test_who_only_settles_disagreements_is_not_asked_how_far_reviewers_agree(sampled: Path) -> None:
    steps = above_lowest(sampled)
    review(sampled, "ann", tight)
    review(sampled, "bob", only("uncertain", *steps[:3]))

    def kappas() -> tuple[Any, Any]:
        found = json.loads(stepdown("audit", "summary", str(sampled), "--json").out)
        return found["cohen"], found["fleiss"]

    before = kappas()
    assert stepdown("audit", "sample", str(sampled), "--rate", "0", "--settle", "cy").code == 0
    review(sampled, "cy", tight)
    assert kappas() == before
    assert before[0][0]["reviewers"] == ["ann", "bob"]


def test_the_command_says_it_as_a_table_and_as_json(sampled: Path) -> None:
    steps = above_lowest(sampled)
    review(sampled, "ann", only("further-downgradeable", steps[0]))
    review(sampled, "bob", lambda one: "tight")
    plain, as_json = (stepdown("audit", "summary", str(sampled), *more) for more in ([], ["--json"]))
    assert (plain.code, as_json.code) == (0, 0)
    found = json.loads(as_json.out)
    (planted, everything) = found["slices"]
    assert (planted["steps"], planted["sampled"], planted["disagree"]) == (72, len(read_steps(sampled)), 1)
    assert {**planted, "name": "all"} == everything
    assert found["cohen"][0]["same"] == len(steps) - 1
    for words in ("tight %", "above the lowest tier", "expected too high", "Cohen's kappa of ann and bob"):
        assert words in plain.out
    assert "…" not in plain.out
