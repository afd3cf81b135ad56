"""Exact intervals of a share: what an observed count says of the rate behind it."""

from __future__ import annotations

from typing import NamedTuple

from stepdown.builder.common.extras import require


class Interval(NamedTuple):
    low: float
    high: float


def exact_interval(count: int, of: int, level: float = 0.95) -> Interval:
    """The Clopper-Pearson interval of `count` out of `of`; where there is nothing to count, all of [0, 1].

    Raises ValueError where `count` is no part of `of`, and BadInput where statsmodels is not installed.

    >>> exact_interval(0, 0)
    Interval(low=0.0, high=1.0)
    >>> [round(bound, 3) for bound in exact_interval(63, 64)]
    [0.916, 1.0]
    """
    if not 0 <= count <= of:
        raise ValueError(f"{count} out of {of} is no share")
    if of == 0:
        return Interval(0.0, 1.0)
    require("audit", "statsmodels")
    from statsmodels.stats.proportion import proportion_confint  # a second to import: only where it is needed

    low, high = proportion_confint(count, of, alpha=1 - level, method="beta")
    return Interval(float(low), float(high))
