"""Fits a policy: the strength of regularisation by cross-validation over whole groups, calibration on other groups.

Multinomial logistic regression with L2 is scikit-learn's; what is kept of it are its weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stepdown.routing.policies.trained import softmax

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

STRENGTHS = (0.01, 0.1, 1.0, 10.0)
"""scikit-learn's C: the smaller, the stronger the regularisation."""
FOLDS = 5
_ROUNDS, _TOLERANCE = 200, 1e-3


@dataclass(frozen=True, slots=True)
class Fitted:
    """A regression with its calibration, for inputs that are centred and scaled by `centre` and `spread`."""

    centre: NDArray[float64]
    spread: NDArray[float64]
    weights: NDArray[float64]
    """Tiers by columns."""
    bias: NDArray[float64]
    """One a tier; a tier that no example has gets the least of all scores."""
    temperature: float
    report: dict[str, Any] = field(default_factory=dict)


def fit_logistic(
    inputs: NDArray[float64],
    labels: NDArray[int64],
    groups: Sequence[str],
    tiers: int,
    held_apart: tuple[NDArray[float64], NDArray[int64]],
    free: int,
) -> Fitted:
    """Fit on (examples by columns, label, group), calibrate on `held_apart`, other groups' examples.

    The first `free` columns are an embedding and are left as they are; the others are scaled to a spread of 1.
    """
    import numpy as np
    from threadpoolctl import threadpool_limits

    centre, spread = scale(inputs, free)
    scaled = (inputs - centre) / spread
    with threadpool_limits(1):  # small products: more threads wait for one another, and sum in another order
        losses = _losses_by_strength(scaled, labels, np.asarray(groups), tiers)
        strength = min(losses, key=lambda one: (losses[one], one)) if losses else 1.0
        weights, bias = _regression(scaled, labels, tiers, strength)
    others, truth = held_apart
    temperature = 1.0
    report: dict[str, Any] = {
        "strength": strength,
        "cross_validated_log_loss": {str(one): round(loss, 6) for one, loss in losses.items()},
        "folds": min(FOLDS, len(set(groups))) if losses else 0,
        "prior_log_loss": round(_loss(np.log(_prior(labels, tiers))[None, :].repeat(len(labels), axis=0), labels), 6),
    }
    if len(truth):
        scores = (others - centre) / spread @ weights.T + bias
        temperature = calibrating_temperature(scores, truth)
        report["calibration_log_loss"] = {
            "before": round(_loss(scores, truth), 6),
            "after": round(_loss(scores / temperature, truth), 6),
        }
    return Fitted(centre, spread, weights, bias, temperature, report)


def scale(inputs: NDArray[float64], free: int) -> tuple[NDArray[float64], NDArray[float64]]:
    """Centre and spread of each column: 0 and 1 for the first `free` ones; a spread of 1 where all are alike."""
    import numpy as np

    centre, spread = inputs.mean(axis=0), inputs.std(axis=0)
    centre[:free], spread[:free] = 0.0, 1.0
    return centre, np.where(spread > 1e-9, spread, 1.0)


def calibrating_temperature(scores: NDArray[float64], labels: NDArray[int64]) -> float:
    """What to divide scores by so that their probabilities fit the labels best; within 1/20 and 20."""
    import numpy as np
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(lambda log: _loss(scores / np.exp(log), labels), bounds=(-3, 3), method="bounded")
    return float(np.exp(found.x))


def _losses_by_strength(
    inputs: NDArray[float64], labels: NDArray[int64], groups: NDArray[Any], tiers: int
) -> dict[float, float]:
    """Log loss by strength, each example scored by a fit that has seen none of its group. Empty for a single group."""
    import numpy as np
    from sklearn.model_selection import GroupKFold

    count = min(FOLDS, len(set(groups.tolist())))
    if count < 2:
        return {}
    found = {}
    parts = list(GroupKFold(count).split(inputs, labels, groups))
    for strength in STRENGTHS:
        scores = np.zeros((len(labels), tiers))
        for fitted_on, scored in parts:
            weights, bias = _regression(inputs[fitted_on], labels[fitted_on], tiers, strength)
            scores[scored] = inputs[scored] @ weights.T + bias
        found[strength] = _loss(scores, labels)
    return found


def _regression(
    inputs: NDArray[float64], labels: NDArray[int64], tiers: int, strength: float
) -> tuple[NDArray[float64], NDArray[float64]]:
    """Weights (tiers by columns) and biases. A label that is not among the examples is never likely."""
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    seen = np.unique(labels)
    weights = np.zeros((tiers, inputs.shape[1]))
    # A tier that was never seen has the probability of half an example, as a count with a prior would give it.
    bias = np.full(tiers, np.log(0.5 / len(labels)))
    if len(seen) == 1:
        bias[seen[0]] = 0.0
        return weights, bias
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the last rounds change the sixth digit
        made = LogisticRegression(C=strength, max_iter=_ROUNDS, tol=_TOLERANCE).fit(inputs, labels)
    if len(seen) == 2:  # one row of scores stands for both
        sides = np.array([[-0.5], [0.5]])
        weights[seen], bias[seen] = sides * made.coef_, sides[:, 0] * made.intercept_
    else:
        weights[seen], bias[seen] = made.coef_, made.intercept_
    absent = np.setdiff1d(np.arange(tiers), seen)
    bias[absent] += bias[seen].min()
    return weights, bias


def _prior(labels: NDArray[int64], tiers: int) -> NDArray[float64]:
    import numpy as np

    counts = np.bincount(labels, minlength=tiers) + 0.5
    return np.asarray(counts / counts.sum())


def _loss(scores: NDArray[float64], labels: NDArray[int64]) -> float:
    """Mean log loss of scores, in nats."""
    import numpy as np

    likely = softmax(scores)[np.arange(len(labels)), labels]
    return float(-np.log(np.maximum(likely, 1e-12)).mean())
