"""Intervals of a score: trajectories, or whole groups of them, are drawn again with replacement."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from stepdown.builder.records import digest
from stepdown.scoring.tally import metrics

if TYPE_CHECKING:
    from numpy import float64, uint64
    from numpy.typing import NDArray

LEVEL = 0.95


class BootstrapIntervals(NamedTuple):
    """Percentile intervals, each of shape (METRICS, 2); NaN where there is no metric, or nothing to draw from."""

    workloads: Mapping[str, NDArray[float64]]
    overall: NDArray[float64]


def whole_groups(sums: NDArray[float64], groups: NDArray[uint64]) -> NDArray[float64]:
    """Sums by group from sums by trajectory, so that what belongs together is drawn together."""
    import numpy as np

    names, place = np.unique(groups, return_inverse=True)
    out = np.zeros((len(names), sums.shape[1]))
    np.add.at(out, place, sums)
    return out


def bounds(units: Mapping[str, NDArray[float64]], resamples: int, seed: int) -> BootstrapIntervals:
    """Intervals of METRICS from the sums of each workload's units (units by COLUMNS).

    Every workload is drawn anew from its own units, as many as it has, so that none is ever left out.
    """
    import numpy as np

    drawn = np.stack([_draw(found, resamples, seed, name) for name, found in units.items()], axis=1)
    return _bounds(*metrics(drawn), {name: len(found) < 2 for name, found in units.items()})


def difference_bounds(
    first: Mapping[str, NDArray[float64]], second: Mapping[str, NDArray[float64]], resamples: int, seed: int
) -> BootstrapIntervals:
    """Intervals of METRICS of `second` minus those of `first`, on the same units drawn together (paired).

    Both hold the same units in the same order: two assignments of one bank.
    """
    import numpy as np

    drawn = [
        metrics(np.stack([_draw(found, resamples, seed, name) for name, found in units.items()], axis=1))
        for units in (first, second)
    ]
    single = {name: len(found) < 2 for name, found in first.items()}
    return _bounds(drawn[1][0] - drawn[0][0], drawn[1][1] - drawn[0][1], single)


def _bounds(each: NDArray[float64], overall: NDArray[float64], single: Mapping[str, bool]) -> BootstrapIntervals:
    """Percentiles over the resamples; nothing for a workload of a single unit."""
    import numpy as np

    inside = [50 * (1 - LEVEL), 50 * (1 + LEVEL)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a metric that no resample has is NaN, and shall be
        # Resamples without anything to save have no CostSave in variants A to C; the interval is that of the others.
        edges, edge = (np.nanpercentile(found, inside, axis=0) for found in (each, overall))
    nothing = np.full((each.shape[-1], 2), np.nan)
    workloads = {name: nothing if alone else edges[:, index].T for index, (name, alone) in enumerate(single.items())}
    return BootstrapIntervals(workloads, nothing if all(single.values()) else edge.T)


def _draw(units: NDArray[float64], resamples: int, seed: int, name: str) -> NDArray[float64]:
    """Sums of so many resamples. Each workload has its own stream, whatever other workloads there are."""
    import numpy as np

    stream, count = np.random.default_rng([seed, int(digest(name)[:8], 16)]), len(units)
    out = np.empty((resamples, units.shape[1]))
    for index in range(resamples):
        out[index] = np.bincount(stream.integers(0, count, count), minlength=count).astype(float) @ units
    return out
