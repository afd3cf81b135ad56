"""What a router has to beat: every fixed tier, chance, and the fixed tier that could honestly have been chosen.

A fixed tier chosen on the rows it is scored on looks better than any that could have been deployed. So it is chosen on
the training groups and scored on the held-out ones, for every fold; the one chosen in hindsight stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepdown.scoring.tally import COLUMNS, COMBINED, METRICS, metrics

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

FOLDS = 5


class Sums:
    """Sums by part (a fold of the groups) and workload; both grow as they are met."""

    def __init__(self) -> None:
        self._parts: dict[tuple[int, int], NDArray[float64]] = {}

    def add(self, parts: NDArray[int64], workloads: NDArray[int64], sums: NDArray[float64]) -> None:
        """Add sums of trajectories to the part and workload that each belongs to."""
        import numpy as np

        for pair in np.unique(np.column_stack((parts, workloads)), axis=0):
            part, workload = map(int, pair)
            found = sums[(parts == part) & (workloads == workload)].sum(axis=0)
            self._parts[part, workload] = self._parts.get((part, workload), 0) + found

    def parts(self) -> list[int]:
        return sorted({part for part, _ in self._parts})

    def of(self, parts: Sequence[int], workloads: int) -> NDArray[float64]:
        """Workloads by COLUMNS, over the named parts."""
        import numpy as np

        out = np.zeros((workloads, len(COLUMNS)))
        for (part, workload), found in self._parts.items():
            if part in parts:
                out[workload] += found
        return out


@dataclass(frozen=True, slots=True)
class Fold:
    """One held-out part."""

    rows: int
    chosen: str
    """The tier that is best on the other parts."""
    hindsight: str
    """The tier that is best on this very part."""


@dataclass(frozen=True, slots=True)
class BestFixed:
    """The best fixed tier, chosen honestly and in hindsight, on the same held-out rows; metrics in percent."""

    basis: str
    folds: tuple[Fold, ...]
    chosen: Mapping[str, float | None]
    hindsight: Mapping[str, float | None]
    """None where a fold has no such metric."""

    @property
    def difference(self) -> float:
        """Points of Combined by which the choice in hindsight is too high. Never negative."""
        return (self.hindsight["Combined"] or 0.0) - (self.chosen["Combined"] or 0.0)


def best_fixed(
    basis: str, fixed: Mapping[str, Sums], held_out: Sequence[tuple[Sequence[int], Sequence[int]]], workloads: int
) -> BestFixed | None:
    """Choose by Combined among the fixed tiers, cheapest first, for every (held-out parts, training parts).

    None where there is nothing to train on or to hold out. Metrics are means over folds, weighted by rows.
    """
    import numpy as np

    folds, chosen, hindsight = [], [], []
    tiers = list(fixed)
    for test, train in held_out:
        tested, trained = (
            np.stack([metrics(fixed[tier].of(parts, workloads))[1] for tier in tiers]) for parts in (test, train)
        )
        rows = int(fixed[tiers[0]].of(test, workloads)[:, COLUMNS.index("rows")].sum())
        if np.isnan(tested[:, COMBINED]).any() or np.isnan(trained[:, COMBINED]).any():
            continue
        best, lucky = int(trained[:, COMBINED].argmax()), int(tested[:, COMBINED].argmax())
        folds.append(Fold(rows, tiers[best], tiers[lucky]))
        chosen.append(tested[best])
        hindsight.append(tested[lucky])
    if not folds:
        return None
    weights = np.array([fold.rows for fold in folds], dtype=float)
    means = (_mean(np.stack(found), weights) for found in (chosen, hindsight))
    return BestFixed(basis, tuple(folds), *means)


def _mean(found: NDArray[float64], weights: NDArray[float64]) -> dict[str, float | None]:
    means = (weights @ found / weights.sum()).tolist()
    return {name: None if math.isnan(value) else value for name, value in zip(METRICS, means, strict=True)}
