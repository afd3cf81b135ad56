"""Which steps are audited: a step's own hash decides, so the sample is the same anywhere and stable as a run grows."""

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
    """The share of each stratum's steps that is sampled."""
    seed: int
    minimum: int = 0
    """The least number of steps of a stratum, as far as it has so many. Those of the smallest draws are added."""
    strata: Literal["workload", "tier"] = "workload"
    """What the minimum applies to: each workload, or each tier of a workload."""

    def stratum(self, step: AuditStep) -> tuple[str, str]:
        return step.benchmark, step.tier if self.strata == "tier" else ""


def sampled_steps(plan: SamplingPlan, steps: Callable[[], Iterable[AuditStep]]) -> Iterator[AuditStep]:
    """The steps that the plan samples, in the order of `steps()`.

    A stratum's sample is always the steps with the smallest draws: all draws below the rate, or as many as the minimum
    says if those are more. `steps` is called twice where the plan has a minimum; only the minimum's draws are held in
    memory.
    """
    largest = _largest_minimum_draws(plan, steps)
    below_rate, seed = plan.rate * DRAWS, plan.seed
    for step in steps():
        draw = draw_of(seed, step.id)
        if draw < below_rate or (largest and draw <= largest[plan.stratum(step)]):
            yield step


def _largest_minimum_draws(
    plan: SamplingPlan, steps: Callable[[], Iterable[AuditStep]]
) -> Mapping[tuple[str, str], int]:
    """For each stratum the largest of the draws that fill its minimum; empty where the plan has no minimum."""
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
    """Who reviews which step, as (reviewer, step id).

    A share `overlap` of the steps goes to all reviewers, each of the others to one of them.

    >>> list(assignments(["made/job/1"], ("ann", "bob"), 1.0, 0))
    [('ann', 'made/job/1'), ('bob', 'made/job/1')]
    """
    for step in steps:
        if is_sampled(seed, f"{step}\0overlap", overlap):
            yield from ((reviewer, step) for reviewer in reviewers)
        else:
            yield reviewers[draw_of(seed, f"{step}\0reviewer") % len(reviewers)], step
