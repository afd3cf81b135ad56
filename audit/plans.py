"""The plans by which a run's sample was drawn, as the audit's store keeps them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass

from stepdown.audit.sampling import SamplingPlan
from stepdown.audit.store import AuditStore
from stepdown.builder.artifacts.sampling import is_sampled

PLANS = "plans"
"""The name under which the store keeps them."""


@dataclass(frozen=True, slots=True)
class DrawnPlan:
    """A plan by which steps were drawn, and the workloads that they were drawn from."""

    plan: SamplingPlan
    workloads: frozenset[str]

    def takes(self, workload: str, row_id: str) -> bool:
        """Whether the plan's rate takes a step, whether or not the run had it when the sample was drawn."""
        return workload in self.workloads and is_sampled(self.plan.seed, row_id, self.plan.rate)


def keep_plan(store: AuditStore, plan: SamplingPlan, workloads: Collection[str]) -> None:
    """Keep the plan by which a sample was drawn, once."""
    kept = store.meta(PLANS) or []
    if (drawn_by := {**asdict(plan), "workloads": sorted(workloads)}) not in kept:
        store.set_meta(PLANS, [*kept, drawn_by])


def read_plans(store: AuditStore) -> list[DrawnPlan]:
    """The plans by which the sample was drawn. One that was kept without workloads was drawn from the sample's own."""
    sampled = None
    found = []
    for record in store.meta(PLANS) or []:
        workloads = record.pop("workloads", None)
        if workloads is None:
            workloads = sampled = sampled or {step.benchmark for step in store.steps()}
        found.append(DrawnPlan(SamplingPlan(**record), frozenset(workloads)))
    return found
