"""What an audit has found: how tight labels are, how far reviewers agree, and how many labels are likely too high."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stepdown.audit.agreement import Agreement, cohen_agreements, fleiss_agreement
from stepdown.audit.settling import ReviewOutcome, review_outcome
from stepdown.audit.store import AuditStore
from stepdown.audit.verdicts import AuditVerdict
from stepdown.builder.common.intervals import Interval, exact_interval

Stratum = tuple[str, str]
"""A workload and a label."""
ALL = "all"
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class AuditSlice:
    """A row of the paper's table (section 5): the audit of one workload, or of all of them."""

    name: str
    steps: int
    """Labelled steps of the run."""
    sampled: int
    settled: int
    """Sampled steps that came to a verdict. Shares are of these."""
    lowest: int
    """Those that settled themselves, since the label is the lowest tier: they are tight, and nobody was asked."""
    tight: int
    """Those that settled themselves too."""
    uncertain: int
    downgradeable: int
    disagree: int
    open: int
    """Steps whose review is not finished."""

    @property
    def tight_share(self) -> float | None:
        return self.tight / self.settled if self.settled else None

    @property
    def tight_interval(self) -> Interval:
        return exact_interval(self.tight, self.settled)


@dataclass(frozen=True, slots=True)
class ExpectedTooHigh:
    """How many labels of a workload, or of one of its tiers, are likely still too high, extrapolated from the sample.

    Reviewed steps are left out: those that can go lower are lowered when the verdicts are applied.
    """

    workload: str
    tier: str
    """Empty for all tiers of the workload."""
    left: int
    """Steps without a verdict, sampled or not."""
    settled: int
    downgradeable: int
    expected: float | None
    """None where no step of the stratum has a verdict: nothing is known."""
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class AuditSummary:
    slices: tuple[AuditSlice, ...]
    """By workload, then of all workloads."""
    above_lowest: tuple[AuditSlice, ...]
    """The same for labels above the lowest tier only, which people were asked about."""
    expected: tuple[ExpectedTooHigh, ...]
    """By workload and label, then the sum of each workload, then the sum of all."""
    cohen: tuple[Agreement, ...]
    fleiss: Agreement | None

    def to_json(self) -> dict[str, Any]:
        return {
            "slices": [_slice_json(one) for one in self.slices],
            "above_lowest": [_slice_json(one) for one in self.above_lowest],
            "expected_too_high": [asdict(one) for one in self.expected],
            "cohen": [asdict(one) for one in self.cohen],
            "fleiss": asdict(self.fleiss) if self.fleiss else None,
        }


def _slice_json(one: AuditSlice) -> dict[str, Any]:
    return {**asdict(one), "tight_share": one.tight_share, "tight_interval": list(one.tight_interval)}


def summarise(store: AuditStore, steps: Mapping[Stratum, int], lowest: str) -> AuditSummary:
    """Summarise a run's audit. Workloads that were not sampled are left out.

    `steps` counts the run's labelled steps by workload and label; `lowest` is the name of the cheapest tier.
    """
    outcomes: dict[Stratum, Counter[ReviewOutcome]] = defaultdict(Counter)
    said: dict[str, dict[str, AuditVerdict]] = defaultdict(dict)
    # Whoever gets a step because two others disagree on it must disagree with one of them. That does not measure how
    # far people agree, so it is left out; so is what was said of a step that settles itself.
    settling = store.reviewers.settling()
    for reviewed in store.reviewed():
        outcomes[reviewed.step.benchmark, reviewed.step.tier][review_outcome(reviewed)] += 1
        for one in reviewed.said:
            if reviewed.step.lowest or (one.reviewer, one.step_id) in settling:
                continue
            said[one.reviewer][one.step_id] = one.verdict
    workloads = {workload for workload, _ in outcomes}
    steps = {stratum: count for stratum, count in steps.items() if stratum[0] in workloads}
    return AuditSummary(
        slices=_slices(outcomes, steps, lambda tier: True),
        above_lowest=_slices(outcomes, steps, lambda tier: tier != lowest),
        expected=tuple(_extrapolated(outcomes, steps, lowest)),
        cohen=tuple(cohen_agreements(said)),
        fleiss=fleiss_agreement(said),
    )


def _slices(
    outcomes: Mapping[Stratum, Counter[ReviewOutcome]], steps: Mapping[Stratum, int], wanted: Callable[[str], bool]
) -> tuple[AuditSlice, ...]:
    workloads = sorted({workload for workload, _ in outcomes})
    rows = []
    for name, members in [*((workload, {workload}) for workload in workloads), (ALL, set(workloads))]:
        counts: Counter[ReviewOutcome] = Counter()
        for (workload, tier), found in outcomes.items():
            if workload in members and wanted(tier):
                counts.update(found)
        total = sum(count for (workload, tier), count in steps.items() if workload in members and wanted(tier))
        rows.append(
            AuditSlice(
                name=name,
                steps=total,
                sampled=counts.total(),
                settled=sum(count for outcome, count in counts.items() if outcome.is_settled),
                lowest=counts[ReviewOutcome.LOWEST],
                tight=counts[ReviewOutcome.TIGHT] + counts[ReviewOutcome.LOWEST],
                uncertain=counts[ReviewOutcome.UNCERTAIN],
                downgradeable=counts[ReviewOutcome.LOWER],
                disagree=counts[ReviewOutcome.DISAGREE],
                open=counts[ReviewOutcome.OPEN],
            )
        )
    return tuple(rows)


def _extrapolated(
    outcomes: Mapping[Stratum, Counter[ReviewOutcome]], steps: Mapping[Stratum, int], lowest: str
) -> Iterator[ExpectedTooHigh]:
    """Each stratum with its own 95% interval, then the sums.

    A sum's interval adds up the intervals of its strata, each at a level so high that all of them hold at once with 95%
    (Bonferroni).
    """
    strata = sorted(stratum for stratum in steps if stratum[1] != lowest)
    for stratum in strata:
        yield _stratum(stratum, outcomes, steps, CONFIDENCE)
    for workload in sorted({workload for workload, _ in strata}):
        yield _sum(workload, [one for one in strata if one[0] == workload], outcomes, steps)
    if strata:
        yield _sum(ALL, strata, outcomes, steps)


def _stratum(
    stratum: Stratum, outcomes: Mapping[Stratum, Counter[ReviewOutcome]], steps: Mapping[Stratum, int], level: float
) -> ExpectedTooHigh:
    counts = outcomes.get(stratum, Counter())
    decided = sum(count for outcome, count in counts.items() if outcome.is_verdict)
    lower = counts[ReviewOutcome.LOWER]
    left = steps[stratum] - decided
    share = exact_interval(lower, decided, level)
    expected = round(left * lower / decided, 4) if decided else (None if left else 0.0)
    return ExpectedTooHigh(
        *stratum, left, decided, lower, expected, round(left * share.low, 4), round(left * share.high, 4)
    )


def _sum(
    name: str,
    strata: Sequence[Stratum],
    outcomes: Mapping[Stratum, Counter[ReviewOutcome]],
    steps: Mapping[Stratum, int],
) -> ExpectedTooHigh:
    level = 1 - (1 - CONFIDENCE) / len(strata)
    parts = [_stratum(stratum, outcomes, steps, level) for stratum in strata]
    known = [part.expected for part in parts if part.expected is not None]
    return ExpectedTooHigh(
        workload=name,
        tier="",
        left=sum(part.left for part in parts),
        settled=sum(part.settled for part in parts),
        downgradeable=sum(part.downgradeable for part in parts),
        expected=round(sum(known), 4) if len(known) == len(parts) else None,
        low=round(sum(part.low for part in parts), 4),
        high=round(sum(part.high for part in parts), 4),
    )
