"""Goes through a run's rows and evidence once, an instance at a time, and changes what its reviewers settled."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from stepdown.audit.plans import DrawnBy, read_plans
from stepdown.audit.settling import ReviewOutcome, settled
from stepdown.audit.store import AuditStore
from stepdown.audit.verdicts import AuditStep, Reviewed
from stepdown.builder.config.pool import Tier
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Prefix


@dataclass(slots=True)
class FileLine:
    """A line of a file, as it stands there and as it was read."""

    data: bytes
    record: dict[str, Any]
    changed: bool = False


@dataclass(slots=True)
class LabelledRow:
    """A row and its evidence."""

    row: FileLine
    proof: FileLine


@dataclass(slots=True)
class Applied:
    """What applying came to, by workload."""

    seen: int = 0
    """Sampled steps that the files hold."""
    steps: Counter[str] = field(default_factory=Counter)
    """Rows of the run's own files."""
    labels: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Rows of the revision by tier name."""
    outcomes: dict[str, Counter[ReviewOutcome]] = field(default_factory=lambda: defaultdict(Counter))
    """Sampled steps by what their review came to."""
    lowered: int = 0
    """Rows of the revision whose label is lower than the one that was executed."""
    held_back: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Instances by reason."""
    held_models: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Instances that are held back by the model of their seed."""
    missed: Counter[DrawnBy] = field(default_factory=Counter)
    """Rows that a plan of the sample takes and that are not in it."""
    reviewers: set[str] = field(default_factory=set)


class Changes:
    """What the reviewers settled, made in the lines of a run's files."""

    def __init__(self, store: AuditStore, tiers: Sequence[Tier], seed_model: Callable[[AuditStep], str]) -> None:
        self._store, self._tiers, self._seed_model = store, tiers, seed_model
        self._plans = read_plans(store)
        self.applied = Applied()

    def made(self, pairs: Iterable[tuple[bytes, bytes]]) -> Iterator[LabelledRow]:
        """The lines of the revision. Instances that are held back have none."""
        lines = (
            LabelledRow(FileLine(row, json.loads(row)), FileLine(proof, json.loads(proof))) for row, proof in pairs
        )
        for (workload, instance_id), group in groupby(lines, _instance):
            rows = list(group)
            self.applied.steps[workload] += len(rows)
            sampled = self._store.of_instance(workload, instance_id)
            self._count_missed(workload, rows, {step.step.id for step in sampled})
            if sampled and not self._revised(rows, sampled):
                continue
            for line in rows:
                self.applied.labels[workload][line.row.record["target_tier"]] += 1
                yield line

    def _count_missed(self, workload: str, rows: Sequence[LabelledRow], sampled: Set[str]) -> None:
        """Count the rows that the sample's own plans take and it has not: the run has grown since it was drawn."""
        for row_id in (line.row.record["id"] for line in rows):
            if row_id not in sampled:
                self.applied.missed.update([plan for plan in self._plans if plan.takes(workload, row_id)][:1])

    def _revised(self, rows: Sequence[LabelledRow], sampled: Sequence[Reviewed]) -> bool:
        """Change an instance's lines; False where it is held back."""
        applied, outcomes = self.applied, []
        by_index = {line.row.record["step_index"]: line for line in rows}
        lowered = 0
        for step in sampled:
            line = by_index.get(step.step.step_index)
            if line is None:
                continue
            applied.seen += 1
            valid = _of_this_prefix(line, step)
            outcome = settled(valid)
            outcomes.append(outcome)
            applied.outcomes[step.step.benchmark][outcome] += 1
            applied.reviewers |= {said.reviewer for said in valid.said}
            if outcome.is_verdict:
                lowered += self._settle(line, valid, outcome)
        reasons = [reason for reason in ReviewOutcome if reason.holds_back and reason in outcomes]
        if reasons:
            choice = sampled[0].step
            applied.held_back[choice.benchmark][reasons[0].value] += 1
            applied.held_models[choice.benchmark][self._seed_model(choice)] += 1
            return False
        applied.lowered += lowered
        return True

    def _settle(self, line: LabelledRow, step: Reviewed, outcome: ReviewOutcome) -> bool:
        """Write what a step's review came to into its evidence, and its lower label into its row; whether it has one.

        Later prefixes stay as executed.
        """
        row, proof = line.row.record, line.proof.record
        place = next((n for n, tier in enumerate(self._tiers) if tier.name == row["target_tier"]), 0)
        if (row["target_tier"], row["target_tier_id"]) != (step.step.tier, step.step.tier_id):
            raise BadInput(f"row {row['id']!r} has another label than when it was sampled")
        lower = outcome is ReviewOutcome.LOWER and place > 0
        line.row.changed, line.proof.changed = lower, True
        if lower:
            below = self._tiers[place - 1]
            row["target_tier"], row["target_tier_id"] = below.name, below.id
            proof["basis"] = "audit"
        proof["audit"] = {
            "verdict": outcome.value,
            "executed_tier": step.step.tier,
            "verdicts": [
                {"reviewer": said.reviewer, "verdict": said.verdict.value, "at": said.at, "notes": said.notes}
                for said in step.said
            ],
        }
        return lower


def _instance(line: LabelledRow) -> tuple[str, str]:
    return line.row.record["benchmark"], line.row.record["instance_id"]


def _of_this_prefix(line: LabelledRow, step: Reviewed) -> Reviewed:
    """The step with those verdicts that were given on the very prefix of the row: others say nothing of it."""
    row = line.row.record
    prefix = Prefix.start(row["messages"], row.get("tools", ())).exact
    valid = tuple(said for said in step.said if said.prefix == prefix)
    return Reviewed(step.step, valid, step.awaited + len(step.said) - len(valid))
