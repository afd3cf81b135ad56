"""Which steps are audited: a step's own hash decides, so the choice is the same anywhere and stable as a run grows."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from stepdown.audit.verdicts import AuditStep
from stepdown.builder.artifacts.sampling import DRAWS, draw_of, is_sampled


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """How a sample is drawn."""

    rate: float
    """Share of the steps of each stratum."""
    seed: int
    minimum: int = 0
    """Steps of a stratum, at least, as far as it has them: those of the smallest draws are added to the rate's."""
    strata: Literal["workload", "tier"] = "workload"
    """What the minimum is counted by: a workload, or a tier of one."""

    def stratum(self, step: AuditStep) -> tuple[str, str]:
        return step.benchmark, step.tier if self.strata == "tier" else ""


def sampled_steps(plan: SamplingPlan, steps: Callable[[], Iterable[AuditStep]]) -> Iterator[AuditStep]:
    """The steps that the plan samples, in the order in which `steps()` has them. It is read twice where the plan has a
    minimum; what is held in memory are the minimum's draws.

    A stratum's sample are its smallest draws, either way: all below the rate, or as many as the minimum says.
    """
    reaches = _largest_minimum_draws(plan, steps)
    below_rate, seed = plan.rate * DRAWS, plan.seed
    for step in steps():
        draw = draw_of(seed, step.id)
        if draw < below_rate or (reaches and draw <= reaches[plan.stratum(step)]):
            yield step


def _largest_minimum_draws(
    plan: SamplingPlan, steps: Callable[[], Iterable[AuditStep]]
) -> Mapping[tuple[str, str], int]:
    """The largest of the draws that fill each stratum's minimum; empty where the plan has none."""
    if plan.minimum < 1:
        return {}
    smallest: dict[tuple[str, str], list[int]] = defaultdict(list)  # heaps, the largest draw on top, negated
    for step in steps():
        heap, draw = smallest[plan.stratum(step)], -draw_of(plan.seed, step.id)
        if len(heap) < plan.minimum:
            heapq.heappush(heap, draw)
        elif draw > heap[0]:
            heapq.heapreplace(heap, draw)
    return {stratum: -heap[0] for stratum, heap in smallest.items()}


def assignments(
    steps: Iterable[str], reviewers: tuple[str, ...], overlap: float, seed: int
) -> Iterator[tuple[str, str]]:
    """Who reviews which step, as (reviewer, step id): a share `overlap` of the steps goes to all, others to one each.

    >>> list(assignments(["made/job/1"], ("ann", "bob"), 1.0, 0))
    [('ann', 'made/job/1'), ('bob', 'made/job/1')]
    """
    for step in steps:
        if is_sampled(seed, f"{step}\0overlap", overlap):
            yield from ((reviewer, step) for reviewer in reviewers)
        else:
            yield reviewers[draw_of(seed, f"{step}\0reviewer") % len(reviewers)], step
