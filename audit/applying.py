"""Applies the reviewers' verdicts in one pass over a run's rows and evidence, one instance at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from stepdown.audit.plans import DrawnPlan, read_plans
from stepdown.audit.settling import ReviewOutcome, review_outcome
from stepdown.audit.store import AuditStore
from stepdown.audit.verdicts import AuditStep, ReviewedStep
from stepdown.builder.artifacts.rows import Row
from stepdown.builder.config.pool import Tier
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Prefix


@dataclass(frozen=True, slots=True)
class LabelledStep:
    """A row and its evidence, with the lines of the run's files that hold them.

    A line is None where the revision says something else: then the record is written anew.
    """

    row: Row
    evidence: Mapping[str, Any]
    row_line: bytes | None
    evidence_line: bytes | None


@dataclass(slots=True)
class RevisionCounts:
    """What a revision changes and holds back, counted, mostly by workload."""

    seen: int = 0
    """Sampled steps that the files hold."""
    steps: Counter[str] = field(default_factory=Counter)
    """Rows of the run's own files."""
    labels: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Rows of the revision by tier name."""
    outcomes: dict[str, Counter[ReviewOutcome]] = field(default_factory=lambda: defaultdict(Counter))
    """Sampled steps by the outcome of their review."""
    lowered: int = 0
    """Rows of the revision whose label is lower than the one that was executed."""
    held_back: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Instances by reason."""
    held_models: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Instances that are held back by the model of their seed."""
    missed: Counter[DrawnPlan] = field(default_factory=Counter)
    """Rows that a plan of the sample takes, but that are not in the sample."""
    reviewers: set[str] = field(default_factory=set)


class RevisionPass:
    """One pass over the rows of a run that applies its reviewers' verdicts."""

    def __init__(self, store: AuditStore, tiers: Sequence[Tier], seed_model: Callable[[AuditStep], str]) -> None:
        self._store, self._tiers, self._seed_model = store, tiers, seed_model
        self._plans = read_plans(store)
        self.counts = RevisionCounts()

    def apply(self, steps: Iterable[LabelledStep]) -> Iterator[LabelledStep]:
        """The steps of the revision. Instances that are held back are left out."""
        for (workload, instance_id), group in groupby(steps, lambda step: (step.row.benchmark, step.row.instance_id)):
            rows = list(group)
            self.counts.steps[workload] += len(rows)
            sampled = self._store.of_instance(workload, instance_id)
            self._count_missed(workload, rows, {step.step.id for step in sampled})
            for step in self._revise(rows, sampled) if sampled else rows:
                self.counts.labels[workload][step.row.target_tier] += 1
                yield step

    def _count_missed(self, workload: str, rows: Sequence[LabelledStep], sampled: Set[str]) -> None:
        """Count the rows that the sample's plans take and the sample lacks: the run has grown since it was drawn."""
        for row_id in (step.row.id for step in rows):
            if row_id not in sampled:
                self.counts.missed.update([plan for plan in self._plans if plan.takes(workload, row_id)][:1])

    def _revise(self, rows: Sequence[LabelledStep], sampled: Sequence[ReviewedStep]) -> list[LabelledStep]:
        """An instance's steps with the outcomes of their reviews; none where the instance is held back."""
        counts, outcomes = self.counts, []
        by_index = {step.row.step_index: step for step in rows}
        lowered = 0
        for reviewed in sampled:
            step = by_index.get(reviewed.step.step_index)
            if step is None:
                continue
            counts.seen += 1
            valid = _of_this_prefix(step.row, reviewed)
            outcome = review_outcome(valid)
            outcomes.append(outcome)
            counts.outcomes[reviewed.step.benchmark][outcome] += 1
            if not reviewed.step.lowest:
                counts.reviewers |= {said.reviewer for said in valid.said}
            if outcome.is_settled:
                changed = self._settled(step, valid, outcome)
                lowered += changed.row is not step.row
                by_index[step.row.step_index] = changed
        reasons = [reason for reason in ReviewOutcome if reason.holds_back and reason in outcomes]
        if reasons:
            first = sampled[0].step
            counts.held_back[first.benchmark][reasons[0].value] += 1
            counts.held_models[first.benchmark][self._seed_model(first)] += 1
            return []
        counts.lowered += lowered
        return list(by_index.values())

    def _settled(self, step: LabelledStep, reviewed: ReviewedStep, outcome: ReviewOutcome) -> LabelledStep:
        """The step with the outcome of its review in its evidence and, where that lowers the label, in its row.

        Later prefixes stay as executed.
        """
        row, sampled = step.row, reviewed.step
        if (row.target_tier, row.target_tier_id) != (sampled.tier, sampled.tier_id):
            raise BadInput(f"row {row.id!r} has another label than when it was sampled")
        evidence = dict(step.evidence)
        place = next((n for n, tier in enumerate(self._tiers) if tier.name == row.target_tier), 0)
        lower = outcome is ReviewOutcome.LOWER and place > 0
        if lower:
            below = self._tiers[place - 1]
            row = replace(row, target_tier=below.name, target_tier_id=below.id)
            evidence["basis"] = "audit"
        itself = outcome is ReviewOutcome.LOWEST
        evidence["audit"] = {
            "verdict": ReviewOutcome.TIGHT.value if itself else outcome.value,
            "executed_tier": sampled.tier,
            **({"settles_itself": "the label is the lowest tier"} if itself else {}),
            "verdicts": [
                {"reviewer": said.reviewer, "verdict": said.verdict.value, "at": said.at, "notes": said.notes}
                for said in reviewed.said
            ],
        }
        return LabelledStep(row, evidence, None if lower else step.row_line, None)


def _of_this_prefix(row: Row, step: ReviewedStep) -> ReviewedStep:
    """The step with only those verdicts that were given on the prefix that the row has."""
    prefix_digest = Prefix.start(row.messages, row.tools or ()).exact
    valid = tuple(said for said in step.said if said.prefix_digest == prefix_digest)
    return ReviewedStep(step.step, valid, step.awaited + len(step.said) - len(valid))
