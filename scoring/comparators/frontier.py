"""What can be had for which cost: fixed models chosen honestly under a budget, and a router that knows all outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """At one budget: mean cost and mean outcome of each side, over held-out items."""

    budget: float
    """Mean cost per item that is allowed."""
    honest_cost: float
    honest: float
    """The fixed model that is best on the training folds among those that keep the budget there."""
    oracle: float
    """At most the same budget, on the held-out items themselves, every outcome known."""


def frontier(outcomes: NDArray[float64], costs: NDArray[float64], folds: NDArray[int64]) -> tuple[FrontierPoint, ...]:
    """A point for each model's mean cost, the cheapest first: budgets at which something changes."""
    import numpy as np

    return tuple(_point(outcomes, costs, folds, float(budget)) for budget in np.unique(costs.mean(axis=0)))


def _point(outcomes: NDArray[float64], costs: NDArray[float64], folds: NDArray[int64], budget: float) -> FrontierPoint:
    import numpy as np

    values, paid = np.zeros(len(outcomes)), np.zeros(len(outcomes))
    for fold in np.unique(folds):
        here = folds == fold
        means = costs[~here].mean(axis=0)
        affordable = means <= budget * (1 + 1e-12)
        if not affordable.any():  # by the luck of the fold even the cheapest is above: it is taken all the same
            affordable = means == means.min()
        model = int(np.where(affordable, outcomes[~here].mean(axis=0), -1.0).argmax())
        values[here], paid[here] = outcomes[here, model], costs[here, model]
    return FrontierPoint(budget, float(paid.mean()), float(values.mean()), oracle_value(outcomes, costs, budget))


def oracle_value(outcomes: NDArray[float64], costs: NDArray[float64], budget: float) -> float:
    """The best mean outcome that costs at most `budget` per item in the mean, every outcome known.

    Each item's choices are its outcomes on the upper convex edge over cost; the steps up are bought by what they give
    for their cost, the last one in part (a lot decides): the exact optimum of the relaxed problem, an upper reference.
    """
    import numpy as np

    steps: list[tuple[float, float]] = []
    value = spent = 0.0
    for gains, prices in zip(outcomes, costs, strict=True):
        edge = _upper_edge(gains, prices)
        spent, value = spent + edge[0][0], value + edge[0][1]
        steps += [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(edge)]
    left = budget * len(outcomes) - spent
    for price, gain in sorted(steps, key=lambda step: -step[1] / step[0]):
        share = min(1.0, max(0.0, left) / price)
        value += share * gain
        left -= share * price
    return float(np.clip(value / len(outcomes), 0.0, 1.0))


def _upper_edge(gains: NDArray[float64], prices: NDArray[float64]) -> list[tuple[float, float]]:
    """(cost, outcome) from the cheapest up: each step is dearer, better, and worth less for its cost than the last."""
    edge: list[tuple[float, float]] = []
    for price, gain in sorted(zip(prices.tolist(), gains.tolist(), strict=True), key=lambda one: (one[0], -one[1])):
        if edge and (gain <= edge[-1][1] or price == edge[-1][0]):
            continue
        while len(edge) > 1 and _worth(edge[-2], edge[-1]) <= _worth(edge[-1], (price, gain)):
            edge.pop()
        edge.append((price, gain))
    return edge


def _worth(low: tuple[float, float], high: tuple[float, float]) -> float:
    return (high[1] - low[1]) / (high[0] - low[0])
