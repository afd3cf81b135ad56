"""How well given features foretell an outcome: each parent is left out once and predicted by a fit of all others."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepdown.builder.continuations.cells import Cell, CellKey
from stepdown.builder.records import OutcomeState
from stepdown.scoring.group_draws import Estimate, GroupDraws, bounded

if TYPE_CHECKING:
    from numpy import bool_, float64, int64
    from numpy.typing import NDArray

_ROUNDS = 2000
UNDECIDED = 0.5
"""The score of rows whose fit has seen one class only."""
_PORTION = 500
"""Resamples whose AUC is computed together."""


@dataclass(frozen=True, slots=True)
class Features:
    """Numbers by cell, as a file gives them."""

    names: tuple[str, ...]
    of: Mapping[CellKey, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Scored:
    """A cell with its held-out score."""

    cell: Cell
    score: float
    truth: bool


@dataclass(frozen=True, slots=True)
class Prediction:
    """How well an outcome is foretold."""

    outcome: str
    features: tuple[str, ...]
    rows: int
    positives: int
    parents: int
    """Each is a fold of its own."""
    one_class_folds: int
    """Folds whose training rows have one class: their rows get 0.5."""
    without_features: int
    """Cells that are left out since no row of the file is of them."""
    technical: int
    """Cells that are left out since nothing is known of them."""
    auc: Estimate
    """Of all held-out scores together; no value where all rows are of one class. The interval draws parents again, and
    scores stay as they are."""
    scored: tuple[Scored, ...]


def predict(cells: Sequence[Cell], outcome: OutcomeState, features: Features, draws: GroupDraws) -> Prediction:
    """Predict whether cells come to an outcome. Scaler and class-balanced logistic regression are fitted on the rows of
    all other parents.
    """
    import numpy as np

    known = [cell for cell in cells if cell.key in features.of]
    used = [cell for cell in known if cell.state is not OutcomeState.TECHNICAL]
    values = np.array([features.of[cell.key] for cell in used], dtype=np.float64).reshape(
        len(used), len(features.names)
    )
    truth = np.array([cell.state is outcome for cell in used], dtype=bool)
    parents = [cell.parent for cell in used]
    scores, one_class = _held_out(values, truth, draws.places(parents))
    return Prediction(
        outcome=outcome.value,
        features=features.names,
        rows=len(used),
        positives=int(truth.sum()),
        parents=len(set(parents)),
        one_class_folds=one_class,
        without_features=len(cells) - len(known),
        technical=len(known) - len(used),
        auc=_auc(scores, truth, parents, draws),
        scored=tuple(map(Scored, used, scores.tolist(), truth.tolist())),
    )


def _held_out(values: NDArray[float64], truth: NDArray[bool_], parents: NDArray[int64]) -> tuple[NDArray[float64], int]:
    """The score of each row by a fit that has seen none of its parent, and how many fits had one class only."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    scores, one_class = np.full(len(truth), UNDECIDED), 0
    with threadpool_limits(1):  # small products: more threads only wait for one another
        for parent in np.unique(parents):
            held = parents == parent
            if len(np.unique(truth[~held])) < 2:
                one_class += 1
            else:
                scores[held] = _fitted(values[~held], truth[~held], values[held])
    return scores, one_class


def _fitted(values: NDArray[float64], truth: NDArray[bool_], held: NDArray[float64]) -> NDArray[float64]:
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    made = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=_ROUNDS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        made.fit(values, truth)
    return np.asarray(made.predict_proba(held)[:, 1])


def _auc(scores: NDArray[float64], truth: NDArray[bool_], parents: Sequence[str], draws: GroupDraws) -> Estimate:
    import numpy as np

    if len(np.unique(truth)) < 2:
        return Estimate()
    _, ranks = np.unique(scores, return_inverse=True)
    places = draws.places(parents)
    shape = (int(places.max()) + 1, int(ranks.max()) + 1)
    good, bad = (_table(places[of], ranks[of], shape) for of in (truth, ~truth))
    value = float(_aucs(good.sum(axis=0)[None], bad.sum(axis=0)[None])[0])
    if draws.times is None:
        return Estimate(value)
    found = []
    for start in range(0, len(draws.times), _PORTION):
        times = draws.times[start : start + _PORTION, : shape[0]]
        found.append(_aucs(times @ good, times @ bad))
    every = np.concatenate(found)
    return bounded(value, every[~np.isnan(every)])


def _table(places: NDArray[int64], ranks: NDArray[int64], shape: tuple[int, int]) -> NDArray[float64]:
    """How many rows each parent has of each score."""
    import numpy as np

    table = np.zeros(shape)
    np.add.at(table, (places, ranks), 1.0)
    return table


def _aucs(good: NDArray[float64], bad: NDArray[float64]) -> NDArray[float64]:
    """The chance that a positive row has the higher score of one of each class, ties half, by resample; NaN where a
    class is missing. Both are counts by resample and score, from the lowest score up.
    """
    import numpy as np

    below = np.cumsum(bad, axis=1) - bad / 2
    pairs = good.sum(axis=1) * bad.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray((good * below).sum(axis=1) / np.where(pairs > 0, pairs, np.nan))
