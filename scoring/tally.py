"""What an assignment of tiers comes to: sums by trajectory, from which every metric follows.

The accounting variants, with `high` for always the strong tier, over the steps of a workload (paper, static scoring):

    A  D: high - label over passing rows whose label is below the strong tier
       N: high - predicted over the same rows
    B  D: high - label over all rows; N as in E
    C  D: high over rows whose label is below the strong tier
       N: over these rows, high - predicted where the row passes, else minus predicted
    D  D: high over all rows; N as in C, over all rows: the penalty is the failed step's alone
    E  D: high over all rows
       N: high - predicted over the steps of passing trajectories, minus predicted over every step of a failing one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepdown.scoring.accounting import Prices, Steps

if TYPE_CHECKING:
    from numpy import bool_, float64, int64
    from numpy.typing import NDArray

VARIANTS = "ABCDE"
COLUMNS = ("rows", "passed", "exact", "trajectory_rows", *(f"{part}_{v}" for v in VARIANTS for part in "ND"))
"""What is summed by trajectory; `trajectory_rows` are the rows whose whole trajectory passes."""
METRICS = ("RowPass", "RowExact", "TrajPass", *(f"CostSave {v}" for v in VARIANTS), "Combined")
COST_SAVE = METRICS.index("CostSave E")
COMBINED = METRICS.index("Combined")


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Steps of whole trajectories with their labels and prices."""

    steps: Steps
    labels: NDArray[int64]
    prices: Prices
    high: NDArray[float64]
    """USD of each step where all are made by the strong tier."""
    label: NDArray[float64]
    """USD of each step where all are made by their labels."""
    tiers: int

    @classmethod
    def of(cls, steps: Steps, labels: NDArray[int64], prices: Prices, tiers: int) -> Batch:
        import numpy as np

        return cls(steps, labels, prices, prices.of(np.full_like(labels, tiers - 1)), prices.of(labels), tiers)

    def by_trajectory(self, columns: Sequence[NDArray[float64]]) -> NDArray[float64]:
        """Sums of per-step columns: trajectories by columns."""
        import numpy as np

        return np.add.reduceat(np.column_stack(columns), self.steps.starts, axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """What an assignment came to, by step."""

    passed: NDArray[bool_]
    exact: NDArray[bool_]
    trajectory: NDArray[bool_]
    """Whether the step's whole trajectory passes."""
    cost: NDArray[float64]
    """USD. A step without a prediction costs what the strong tier does: else one that abstains would look cheap."""


def outcomes(batch: Batch, predicted: NDArray[int64]) -> Outcomes:
    """Compare predicted tiers (indexes; negative: none) with the labels."""
    import numpy as np

    there = predicted >= 0
    passed = there & (predicted >= batch.labels)
    lengths = np.diff(np.append(batch.steps.starts, len(passed)))
    trajectory = np.repeat(np.logical_and.reduceat(passed, batch.steps.starts), lengths)
    cost = batch.prices.of(np.where(there, predicted, batch.tiers - 1))
    return Outcomes(passed, predicted == batch.labels, trajectory, cost)


def sums(batch: Batch, found: Outcomes) -> NDArray[float64]:
    """The sums of an assignment: trajectories by COLUMNS."""
    probable = (found.passed, found.exact, found.trajectory)
    passed, exact, trajectory = (values.astype(float) for values in probable)
    return _sums(batch, passed, exact, trajectory, passed * found.cost, found.cost)


def random_sums(batch: Batch) -> NDArray[float64]:
    """The expected sums, exactly, of a router that draws each step's tier evenly: trajectories by COLUMNS."""
    import numpy as np

    count, labels = batch.tiers, batch.labels
    # A step is as likely to be warm as its tier is to be the one drawn before.
    by_tier = batch.prices.warm / count + batch.prices.cold * (1 - 1 / count)
    enough = np.arange(count)[None, :] >= labels[:, None]
    passed = enough.sum(axis=1) / count
    lengths = np.diff(np.append(batch.steps.starts, len(labels)))
    trajectory = np.repeat(np.multiply.reduceat(passed, batch.steps.starts), lengths)
    exact = np.full(len(labels), 1 / count)
    return _sums(batch, passed, exact, trajectory, (by_tier * enough).sum(axis=1) / count, by_tier.mean(axis=1))


def _sums(
    batch: Batch,
    passed: NDArray[float64],
    exact: NDArray[float64],
    trajectory: NDArray[float64],
    passed_cost: NDArray[float64],
    cost: NDArray[float64],
) -> NDArray[float64]:
    """Sums from shares: how likely each step passes, what it costs where it does, and what it costs at all."""
    import numpy as np

    high, below = batch.high, (batch.labels < batch.tiers - 1).astype(float)
    by_step = passed * high - cost
    """Passing: high - cost; failing: minus cost."""
    by_whole = trajectory * high - cost
    columns = {
        "rows": np.ones_like(high),
        "passed": passed,
        "exact": exact,
        "trajectory_rows": trajectory,
        "N_A": below * (passed * high - passed_cost),
        "D_A": below * passed * (high - batch.label),
        "N_B": by_whole,
        "D_B": high - batch.label,
        "N_C": below * by_step,
        "D_C": below * high,
        "N_D": by_step,
        "D_D": high,
        "N_E": by_whole,
        "D_E": high,
    }
    return batch.by_trajectory([columns[name] for name in COLUMNS])


def metrics(sums: NDArray[float64]) -> tuple[NDArray[float64], NDArray[float64]]:
    """METRICS in percent, by workload and overall, from sums of shape (..., workloads, COLUMNS).

    NaN where there is nothing to divide by: no rows, or (variants A to C) nothing that could be saved; such a workload
    has no weight in the overall CostSave.
    """
    import numpy as np

    place = {name: index for index, name in enumerate(COLUMNS)}
    rows = sums[..., place["rows"]]
    total = rows.sum(axis=-1)
    each, overall = [], []
    with np.errstate(invalid="ignore", divide="ignore"):
        for name in ("passed", "exact", "trajectory_rows"):
            counts = sums[..., place[name]]
            each.append(counts / rows)
            overall.append(counts.sum(axis=-1) / total)
        for variant in VARIANTS:
            divisor = sums[..., place[f"D_{variant}"]]
            saved = np.where(divisor > 0, sums[..., place[f"N_{variant}"]] / divisor, np.nan)
            each.append(saved)
            weights = np.where(np.isnan(saved), 0.0, rows)
            overall.append((np.nan_to_num(saved) * (weights / weights.sum(axis=-1, keepdims=True))).sum(axis=-1))
    for parts in (each, overall):
        parts.append((parts[0] + parts[1] + parts[2] + parts[COST_SAVE]) / 4)
    return 100 * np.stack(each, axis=-1), 100 * np.stack(overall, axis=-1)
