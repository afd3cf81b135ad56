"""Fixed models, chosen on training folds and in hindsight, and what the difference costs.

The honest choice of a fold is the model that is best on the other folds, scored on this one. The choice in hindsight is
the model that is best on all items, scored on the same folds. Their difference, the selection cost, is split into how
often the two choices differ and how far apart they then are: it is the product of the two, exactly.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.random import Generator
    from numpy.typing import NDArray

MOST_POOLS = 500


@dataclass(frozen=True, slots=True)
class Selection:
    """Choosing one model of a pool by folds; values are means over items."""

    honest: float
    hindsight: float
    moved: float
    """Share of items in folds whose honest choice is another model than the one in hindsight."""
    distance: float
    """Mean difference on those items; 0 where there are none."""

    @property
    def cost(self) -> float:
        """By how much the choice in hindsight is too high."""
        return self.hindsight - self.honest


def select(outcomes: NDArray[float64], folds: NDArray[int64]) -> Selection:
    """The honest choice and the one in hindsight. Between equals the first model is chosen."""
    import numpy as np

    best = int(outcomes.mean(axis=0).argmax())
    chosen = np.empty(len(outcomes), dtype=np.int64)
    for fold in np.unique(folds):
        here = folds == fold
        # A resample of few items may be of one fold: who has seen nothing takes the first model, as between equals.
        chosen[here] = outcomes[~here].mean(axis=0).argmax() if not here.all() else 0
    rows = np.arange(len(outcomes))
    gaps = outcomes[:, best] - outcomes[rows, chosen]
    differ = chosen != best
    return Selection(
        honest=float(outcomes[rows, chosen].mean()),
        hindsight=float(outcomes[:, best].mean()),
        moved=float(differ.mean()),
        distance=float(gaps[differ].mean()) if differ.any() else 0.0,
    )


def pools(models: int, size: int, seed: int, most: int = MOST_POOLS) -> list[tuple[int, ...]]:
    """All pools of so many models, or `most` of them drawn by lot, each once, in order."""
    import numpy as np

    if math.comb(models, size) <= most:
        return list(itertools.combinations(range(models), size))
    stream = np.random.default_rng([seed, size])
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < most:
        drawn.add(tuple(sorted(stream.choice(models, size, replace=False).tolist())))
    return sorted(drawn)


def mean_selection(outcomes: NDArray[float64], folds: NDArray[int64], chosen: Sequence[tuple[int, ...]]) -> Selection:
    """The mean over pools. Its cost is the mean cost; `moved` and `distance` multiply to it."""
    found = [select(outcomes[:, list(pool)], folds) for pool in chosen]
    count = len(found)
    moved = sum(one.moved for one in found) / count
    cost = sum(one.cost for one in found) / count
    return Selection(
        honest=sum(one.honest for one in found) / count,
        hindsight=sum(one.hindsight for one in found) / count,
        moved=moved,
        distance=cost / moved if moved else 0.0,
    )


def resampled_within(groups: NDArray[int64], stream: Generator) -> NDArray[int64]:
    """Items drawn again with replacement within each group: places of as many items as there are."""
    import numpy as np

    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.unique(groups))
    ends = np.append(starts[1:], len(order))
    drawn = [stream.integers(start, end, end - start) for start, end in zip(starts, ends, strict=True)]
    return np.asarray(order[np.concatenate(drawn)])
