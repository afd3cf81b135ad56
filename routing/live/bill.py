"""What policies came to on the tasks that all of them have finished: bills, and paired differences.

Bill = list price of every call + a penalty for each unresolved task (paper: 0.60 USD). A task that is technical under
one policy is left out for all, and counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepdown.routing.live.records import LiveTask, TaskState
from stepdown.scoring.group_draws import RESAMPLES, Estimate, GroupDraws

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PolicyBill:
    """What one policy came to."""

    policy: str
    tasks: int
    resolved: int
    technical: int
    """Tasks that the apparatus failed on; not among `tasks`."""
    calls: int
    calls_by_tier: Mapping[str, int]
    fell_back: int
    """Calls for which the policy had no answer."""
    usd: float
    """List price of its calls."""
    cached_share: float
    """Of prompt tokens, those that a provider's cache had."""
    bill: Estimate
    """USD, for all tasks together; intervals draw groups of tasks."""
    over_first: Estimate | None
    """Its bill less that of the first policy, on the same tasks; None for the first."""


def bills(
    tasks: Iterable[LiveTask], policies: Sequence[str], penalty: float, resamples: int = RESAMPLES, seed: int = 0
) -> list[PolicyBill]:
    """The bills of policies, in their order, on the tasks that all of them have finished."""
    by_task: dict[tuple[str, str], dict[str, LiveTask]] = defaultdict(dict)
    technical: dict[str, int] = defaultdict(int)
    for task in tasks:
        by_task[task.benchmark, task.instance][task.policy] = task
        technical[task.policy] += task.state is TaskState.TECHNICAL
    shared = [
        found for _, found in sorted(by_task.items())
        if all(name in found and found[name].state is TaskState.DONE for name in policies)
    ]  # fmt: skip
    costs = {name: _costs([found[name] for found in shared], penalty) for name in policies}
    groups = [f"{found[policies[0]].benchmark}/{found[policies[0]].group}" for found in shared]
    draws = GroupDraws(groups, resamples, seed)
    first = costs[policies[0]]

    def for_all(costs: NDArray[float64]) -> Estimate:
        # Resamples of groups hold more or fewer tasks: so it is the mean, times the tasks there are.
        return draws.mean(groups, costs).times(len(costs)) if len(costs) else Estimate(0.0)

    return [
        _bill(
            name,
            [found[name] for found in shared],
            technical[name],
            for_all(costs[name]),
            None if name == policies[0] else for_all(costs[name] - first),
        )
        for name in policies
    ]


def _bill(
    policy: str, tasks: Sequence[LiveTask], technical: int, bill: Estimate, over_first: Estimate | None
) -> PolicyBill:
    steps = [step for task in tasks for step in task.steps]
    by_tier: dict[str, int] = defaultdict(int)
    for step in steps:
        by_tier[step.tier] += 1
    prompt = sum(step.usage.prompt for step in steps)
    return PolicyBill(
        policy=policy,
        tasks=len(tasks),
        resolved=sum(task.resolved for task in tasks),
        technical=technical,
        calls=len(steps),
        calls_by_tier=dict(by_tier),
        fell_back=sum(step.fell_back for step in steps),
        usd=sum(task.usd for task in tasks),
        cached_share=sum(step.usage.cache_read for step in steps) / prompt if prompt else 0.0,
        bill=bill,
        over_first=over_first,
    )


def _costs(tasks: Sequence[LiveTask], penalty: float) -> NDArray[float64]:
    import numpy as np

    return np.array([task.usd + (0.0 if task.resolved else penalty) for task in tasks], dtype=np.float64)
