"""The whole comparison of a grid: fixed models, selection costs with what luck explains, routers, signals, costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepdown.scoring.comparators.features import Feature, SeenFeature, Sight, seen_features
from stepdown.scoring.comparators.fixed import MOST_POOLS, Selection, mean_selection, pools, resampled_within
from stepdown.scoring.comparators.folds import GROUPED, RANDOM, grouped_folds, numbered, random_folds
from stepdown.scoring.comparators.frontier import FrontierPoint, frontier
from stepdown.scoring.comparators.grid import Grid, MissingOutcomes
from stepdown.scoring.comparators.routing import LAMBDAS, RouterResult, predict, route
from stepdown.scoring.comparators.signal import SignalCurve, signal_curve

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class CompareSettings:
    """What a comparison depends on beside the grid."""

    sizes: tuple[int, ...] = ()
    """Of pools; empty: 2, 3, 5 and all models, as far as there are so many."""
    resamples: int = 200
    """Of the bootstrap, and permutations of the null."""
    seed: int = 0
    sight: Sight = Sight.ALL
    """What routers see of an item, of what the grid has."""


@dataclass(frozen=True, slots=True)
class SelectionCost:
    """Choosing a fixed model of pools of one size."""

    size: int
    pools: int
    sampled: bool
    """Whether the pools are a sample of all there are."""
    selection: Selection
    low: float | None
    high: float | None
    """95% interval of the cost: items are drawn again within their groups, for about 20 of the pools at most. Both None
    where nothing is drawn."""
    null: float | None
    """Mean cost where groups are dealt out by lot: what the choice costs without any difference between groups."""
    p: float | None
    """Share of such deals, with the grid itself, that cost as much or more. Both None for random folds."""


@dataclass(frozen=True, slots=True)
class UnderFolds:
    """The comparison under one way of dividing items."""

    kind: str
    folds: int
    costs: tuple[SelectionCost, ...]
    routers: tuple[RouterResult, ...]
    auroc: tuple[float | None, ...]
    """Of the routers' predictions, by model, inside folds and then averaged."""
    signal: SignalCurve
    frontier: tuple[FrontierPoint, ...]
    """Empty where the grid has no costs."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a grid says."""

    items: int
    groups: int
    models: tuple[str, ...]
    means: tuple[float, ...]
    oracle: float
    """Mean outcome where each item has its best model."""
    flawless: tuple[str, ...]
    left_out: int
    missing: tuple[MissingOutcomes, ...]
    features: tuple[SeenFeature, ...]
    """What routers saw."""
    under: tuple[UnderFolds, ...]


def compare(grid: Grid, settings: CompareSettings, notify: Callable[[str], None] = lambda line: None) -> Comparison:
    """Compare under random folds and, where there are two groups or more, with whole groups held out."""
    import numpy as np

    owner, groups = numbered(grid.groups), len(set(grid.groups))
    if groups == len(grid.items):  # no item has a fellow: draws are of all items
        owner = np.zeros(len(grid.items), dtype=np.int64)
    divided = [(RANDOM, random_folds(len(grid.items), settings.seed))]
    by_group = grouped_folds(grid.groups, settings.seed)
    if by_group is not None and groups < len(grid.items):
        divided.append((GROUPED, by_group))
    under = []
    for kind, folds in divided:
        notify(f"{kind} folds")
        under.append(_under(grid, kind, folds, owner, settings))
    return Comparison(
        items=len(grid.items),
        groups=groups,
        models=grid.models,
        means=tuple(float(mean) for mean in grid.outcomes.mean(axis=0)),
        oracle=float(grid.outcomes.max(axis=1).mean()),
        flawless=grid.flawless,
        left_out=grid.left_out,
        missing=grid.missing,
        features=seen_features(*_shown(grid, settings.sight)),
        under=tuple(under),
    )


def _shown(grid: Grid, sight: Sight) -> tuple[tuple[str, ...] | None, tuple[Feature, ...]]:
    """The texts and the metadata that routers are shown."""
    return grid.texts if sight is not Sight.METADATA else None, grid.features if sight is not Sight.TEXT else ()


def _under(
    grid: Grid, kind: str, folds: NDArray[int64], owner: NDArray[int64], settings: CompareSettings
) -> UnderFolds:
    predicted = predict(grid.outcomes, folds, *_shown(grid, settings.sight))
    routers = tuple(route(grid.outcomes, folds, predicted, shrinkage) for shrinkage in LAMBDAS)
    return UnderFolds(
        kind=kind,
        folds=len(set(folds.tolist())),
        costs=tuple(
            _selection_cost(grid.outcomes, kind, folds, owner, size, settings)
            for size in _sizes(len(grid.models), settings.sizes)
        ),
        routers=routers,
        auroc=predicted.auroc,
        signal=signal_curve(grid.outcomes, folds, routers[-1].fixed, settings.seed),
        frontier=frontier(grid.outcomes, grid.costs, folds) if grid.costs is not None else (),
    )


def _sizes(models: int, wanted: Sequence[int]) -> list[int]:
    return sorted({size for size in (wanted or (2, 3, 5, models)) if 2 <= size <= models})


def _selection_cost(
    outcomes: NDArray[float64],
    kind: str,
    folds: NDArray[int64],
    owner: NDArray[int64],
    size: int,
    settings: CompareSettings,
) -> SelectionCost:
    import numpy as np

    chosen = pools(outcomes.shape[1], size, settings.seed)
    found = mean_selection(outcomes, folds, chosen)
    stream = np.random.default_rng([settings.seed, size])
    fewer = chosen[:: max(1, len(chosen) // 20)]  # a resample need not go through all pools again
    drawn = []
    for _ in range(settings.resamples):
        place = resampled_within(owner, stream)
        drawn.append(mean_selection(outcomes[place], folds[place], fewer).cost)
    low = high = null = p = None
    if drawn:
        low, high = (float(edge) for edge in np.percentile(drawn, [50 * (1 - LEVEL), 50 * (1 + LEVEL)]))
    if kind == GROUPED and settings.resamples:
        dealt = [mean_selection(outcomes, stream.permutation(folds), fewer).cost for _ in range(settings.resamples)]
        null = float(np.mean(dealt))
        own = mean_selection(outcomes, folds, fewer).cost
        p = (1 + sum(cost >= own - 1e-12 for cost in dealt)) / (1 + len(dealt))
    sampled = len(chosen) == MOST_POOLS < math.comb(outcomes.shape[1], size)
    return SelectionCost(size, len(chosen), sampled, found, low, high, null, p)
