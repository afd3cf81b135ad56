"""How good a signal must be for a router to break even with the honest fixed model.

Convention: for each model and item an independent score, normal with spread 1, whose mean is `d` higher where the model
succeeds; so the AUROC of every model's signal is Phi(d / sqrt 2). The score becomes a calibrated probability, by Bayes'
rule with the model's share of successes in training, and the model with the highest probability is taken. Values are
means over draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

AUROCS = (0.5, 0.52, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
DRAWS = 40


@dataclass(frozen=True, slots=True)
class SignalCurve:
    """What a router comes to by the quality of its signal."""

    points: tuple[tuple[float, float], ...]
    """AUROC and mean outcome."""
    fixed: float
    """Mean outcome of the honest fixed model, on the same folds."""
    break_even: float | None
    """The AUROC from which on the router is at least as good; None where no AUROC of the curve is enough."""


def signal_curve(
    outcomes: NDArray[float64], folds: NDArray[int64], fixed: float, seed: int, draws: int = DRAWS
) -> SignalCurve:
    """Route by synthetic signals of growing quality."""
    import numpy as np
    from scipy.stats import norm

    succeeded = outcomes >= 0.5
    prior = np.zeros(outcomes.shape)
    for fold in np.unique(folds):
        here = folds == fold
        prior[here] = (succeeded[~here].sum(axis=0) + 0.5) / ((~here).sum() + 1)
    odds = np.log(prior / (1 - prior))
    points = []
    for place, wanted in enumerate(AUROCS):
        apart = np.sqrt(2) * norm.ppf(wanted)
        stream = np.random.default_rng([seed, place])
        values = []
        for _ in range(draws):
            scores = stream.standard_normal(outcomes.shape) + apart * succeeded
            # The likelihood ratio of two normals that lie `apart`: a probability that is right as often as it says.
            picked = (odds + apart * scores - apart**2 / 2).argmax(axis=1)
            values.append(outcomes[np.arange(len(picked)), picked].mean())
        points.append((wanted, float(np.mean(values))))
    return SignalCurve(tuple(points), fixed, _break_even(points, fixed))


def _break_even(points: list[tuple[float, float]], fixed: float) -> float | None:
    """Where the curve last comes up to the fixed model, between two of its points by a straight line."""
    below = [place for place, (_, value) in enumerate(points) if value < fixed]
    if not below:
        return points[0][0]
    last = below[-1]
    if last == len(points) - 1:
        return None
    (left, low), (right, high) = points[last], points[last + 1]
    return left + (right - left) * (fixed - low) / (high - low)
