"""Routers tried on the folds of a fixed model: what they gain on it, and why.

For each model a logistic regression predicts from an item's features whether it succeeds, and so which outcome is to be
expected; that is shrunken towards the model's mean outcome in training. The router takes the model with the highest
value, the fixed model being the honest choice of the same fold. So its deficit is its deferral rate (how often it takes
another model) times the negative of its edge (what it gains where it does), exactly, in every fold.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepdown.scoring.comparators.features import Feature, columns

if TYPE_CHECKING:
    from numpy import bool_, float64, int64
    from numpy.typing import NDArray

LAMBDAS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""How far expectations are shrunken: 0 not at all, 1 to the means alone, which is the fixed model."""
_ROUNDS = 2000


@dataclass(frozen=True, slots=True)
class FoldDeficit:
    """One router on one fold."""

    items: int
    deficit: float
    """Mean outcome of the fixed model less that of the router."""
    deferral: float
    """Share of items for which it takes another model."""
    edge: float
    """Mean gain on those items; 0 where there are none."""


@dataclass(frozen=True, slots=True)
class RouterResult:
    """A router over all folds."""

    shrinkage: float
    value: float
    fixed: float
    """The honest fixed model's, on the same folds."""
    deferral: float
    edge: float
    folds: tuple[FoldDeficit, ...]

    @property
    def deficit(self) -> float:
        """What the fixed model has over the router. Below 0, the router is better."""
        return self.fixed - self.value


@dataclass(frozen=True, slots=True)
class HeldOutExpectations:
    """Outcomes to be expected on held-out items."""

    values: NDArray[float64]
    """Items by models."""
    marginal: NDArray[float64]
    """The mean outcomes of the items' training folds."""
    auroc: tuple[float | None, ...]
    """By model: the mean over folds in which it has both outcomes; None where there is no such fold."""


def predict(
    outcomes: NDArray[float64], folds: NDArray[int64], texts: Sequence[str] | None, metadata: Sequence[Feature]
) -> HeldOutExpectations:
    """What is to be expected of each item under each model, by fits that have seen none of its fold. An outcome of 0.5
    or more counts as success: the chance of one weighs the mean outcomes of successes and of failures in training.
    Where a model has only one of the two there, its mean outcome stands, and there is no AUROC.
    """
    import numpy as np
    from threadpoolctl import threadpool_limits

    succeeded = outcomes >= 0.5
    values, marginal = np.zeros(outcomes.shape), np.zeros(outcomes.shape)
    scores: list[list[float]] = [[] for _ in range(outcomes.shape[1])]
    for fold in np.unique(folds):
        here = folds == fold
        known = columns(texts, metadata, ~here)
        marginal[here] = values[here] = outcomes[~here].mean(axis=0)
        for model in range(outcomes.shape[1]):
            good = succeeded[~here, model]
            if known is None or good.all() or not good.any():
                continue
            with threadpool_limits(1):  # small products: more threads only wait for one another
                chances = _fitted(known, ~here, here, succeeded[:, model])
            trained = outcomes[~here, model]
            values[here, model] = chances * trained[good].mean() + (1 - chances) * trained[~good].mean()
            if len(np.unique(succeeded[here, model])) == 2:
                scores[model].append(auroc(chances, succeeded[here, model]))
    means = tuple(float(np.mean(found)) if found else None for found in scores)
    return HeldOutExpectations(values, marginal, means)


def _fitted(known: Any, training: NDArray[bool_], held: NDArray[bool_], truth: NDArray[bool_]) -> NDArray[float64]:
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        made = LogisticRegression(C=1.0, max_iter=_ROUNDS).fit(known[training], truth[training])
    return np.asarray(made.predict_proba(known[held])[:, 1])


def auroc(scores: NDArray[float64], truth: NDArray[bool_]) -> float:
    """The chance that a success has the higher score of a success and a failure; ties count half.

    >>> import numpy as np
    >>> auroc(np.array([0.9, 0.5, 0.5]), np.array([True, True, False]))
    0.75
    """
    from scipy.stats import rankdata

    ranks = rankdata(scores)
    good = int(truth.sum())
    return float((ranks[truth].sum() - good * (good + 1) / 2) / (good * (len(truth) - good)))


def route(
    outcomes: NDArray[float64], folds: NDArray[int64], predicted: HeldOutExpectations, shrinkage: float
) -> RouterResult:
    """The router that takes the model of the highest shrunken value, beside the honest fixed model."""
    import numpy as np

    found = []
    for fold in np.unique(folds):
        here = folds == fold
        base = int(outcomes[~here].mean(axis=0).argmax())
        values = (1 - shrinkage) * predicted.values[here] + shrinkage * predicted.marginal[here]
        # The fixed model keeps an item unless another one is better: between equals nothing is deferred.
        best = values.argmax(axis=1)
        picked = np.where(values[np.arange(len(values)), best] > values[:, base], best, base)
        found.append(_deficit(outcomes[here], picked, base))
    return _over_folds(shrinkage, outcomes, folds, found)


def _deficit(outcomes: NDArray[float64], picked: NDArray[int64], base: int) -> FoldDeficit:
    import numpy as np

    gains = outcomes[np.arange(len(picked)), picked] - outcomes[:, base]
    deferred = picked != base
    deferral = float(deferred.mean())
    edge = float(gains[deferred].mean()) if deferred.any() else 0.0
    return FoldDeficit(len(picked), float(-gains.mean()), deferral, edge)


def _over_folds(
    shrinkage: float, outcomes: NDArray[float64], folds: NDArray[int64], found: Sequence[FoldDeficit]
) -> RouterResult:
    import numpy as np

    sizes = np.array([one.items for one in found], dtype=float)
    shares = sizes / sizes.sum()
    deficit = float(shares @ [one.deficit for one in found])
    deferral = float(shares @ [one.deferral for one in found])
    fixed = 0.0
    for fold in np.unique(folds):
        here = folds == fold
        fixed += float(outcomes[here, int(outcomes[~here].mean(axis=0).argmax())].sum()) / len(outcomes)
    return RouterResult(
        shrinkage, fixed - deficit, fixed, deferral, -deficit / deferral if deferral else 0.0, tuple(found)
    )
