"""What steps cost under an assignment of tiers, with prompt caching (paper, static scoring).

All prompt tokens are cache traffic. A step is *warm* where the step before it used the same tier and its prefix stands
at this one's head: that prefix is read and the rest written. Else it is *cold*: all is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepdown.scoring.rates import Rate
from stepdown.scoring.steps import ScoredTrajectory

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray


def step_cost(prompt: float, shared: float, output: float, rate: Rate) -> float:
    """USD of one step: `shared` tokens of its prompt read from the cache (0: a cold step), the rest written.

    >>> low = Rate(input=0.26, cache_read=0.13, cache_write=0.26, output=0.5)
    >>> round(step_cost(4000, 0, 500, low), 6)
    0.00129
    """
    return (shared * rate.cache_read + (prompt - shared) * rate.cache_write + output * rate.output) / 1e6


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Steps of whole trajectories, one after another."""

    prompt: NDArray[float64]
    shared: NDArray[float64]
    """0 for the first step of a trajectory."""
    output: NDArray[float64]
    starts: NDArray[int64]
    """Where each trajectory begins."""

    @classmethod
    def of(cls, trajectories: Sequence[ScoredTrajectory]) -> Steps:
        import numpy as np

        steps = [step for trajectory in trajectories for step in trajectory.steps]
        sizes = np.array([(step.prompt, step.shared, step.output) for step in steps], dtype=np.float64).reshape(-1, 3)
        lengths = np.array([len(trajectory.steps) for trajectory in trajectories], dtype=np.int64)
        starts = np.concatenate(([0], np.cumsum(lengths)[:-1])) if len(lengths) else lengths
        return cls(sizes[:, 0], sizes[:, 1], sizes[:, 2], starts)


class Prices:
    """What every step costs at every tier, warm and cold; computed once for all assignments."""

    def __init__(self, steps: Steps, rates: Sequence[Rate]) -> None:
        import numpy as np

        read, write, output = (
            np.array([getattr(rate, name) for rate in rates]) / 1e6 for name in ("cache_read", "cache_write", "output")
        )
        answer = steps.output[:, None] * output
        self.cold: NDArray[float64] = steps.prompt[:, None] * write + answer
        """Steps by tiers, USD."""
        fresh = (steps.prompt - steps.shared)[:, None]
        self.warm: NDArray[float64] = np.where(
            steps.shared[:, None] > 0, steps.shared[:, None] * read + fresh * write + answer, self.cold
        )
        """The same where the step before used the same tier; as cold where there is nothing to read."""

    def of(self, tiers: NDArray[int64]) -> NDArray[float64]:
        """USD of every step where step i is made by tier `tiers[i]`."""
        import numpy as np

        rows = np.arange(len(tiers))
        same = np.zeros(len(tiers), dtype=bool)
        same[1:] = tiers[1:] == tiers[:-1]
        return np.where(same, self.warm[rows, tiers], self.cold[rows, tiers])
