"""What a score says: metrics with their intervals, confusion, error patterns, and what stands beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stepdown.scoring.baselines import BestFixed

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

PATTERNS = ("exact", "one up", "further up", "jump to top", "below", "none")
"""What became of a row whose label is below the strong tier. A jump to the strong tier is one also from just below."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Percent, with its interval; None where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class ScorePart:
    """The score of one workload, or of all."""

    name: str
    rows: int
    trajectories: int
    units: int
    """What the bootstrap drew from: trajectories, or groups."""
    failed_trajectories: int
    metrics: Mapping[str, Metric]
    confusion: tuple[tuple[int, ...], ...]
    """Rows by label, by predicted tier; the last column has those without a prediction."""

    @property
    def patterns(self) -> dict[str, int]:
        """PATTERNS of the rows whose label is below the strong tier."""
        strong, counts = len(self.confusion) - 1, dict.fromkeys(PATTERNS, 0)
        for label, row in enumerate(self.confusion[:-1]):
            for predicted, count in enumerate(row):
                counts[_pattern(label, predicted, strong)] += count
        return counts

    @property
    def strong_rows(self) -> int:
        """Rows labelled with the strong tier."""
        return sum(self.confusion[-1])

    @property
    def strong_found(self) -> int:
        """Those of them that are predicted so."""
        return self.confusion[-1][len(self.confusion) - 1]


def _pattern(label: int, predicted: int, strong: int) -> str:
    if predicted > strong:
        return "none"
    if predicted == label:
        return "exact"
    if predicted < label:
        return "below"
    if predicted == strong:
        return "jump to top"
    return "one up" if predicted == label + 1 else "further up"


@dataclass(frozen=True, slots=True)
class Score:
    """All that predictions came to."""

    tiers: tuple[str, ...]
    missing: int
    """Rows without a prediction."""
    broken: int
    """Rows whose prediction names no tier."""
    overall: ScorePart
    workloads: tuple[ScorePart, ...]
    baselines: Mapping[str, Mapping[str, float | None]]
    """METRICS of what needs no router, in percent, over all rows scored."""
    best_fixed: tuple[BestFixed, ...]
    """Cross-fitted over folds of the groups and, where rows name splits, by these."""
    units: Mapping[str, NDArray[float64]] = field(default_factory=dict, repr=False, compare=False)
    """What the bootstrap draws from, by workload: trajectories (or groups) by `tally.COLUMNS`."""
