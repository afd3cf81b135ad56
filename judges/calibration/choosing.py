"""Picks a score and a threshold on some conversations and tests them on others, by nested cross-validation.

Each outer fold holds one conversation out. Within the others, each inner fold holds out one more; the candidate that
does best over the inner folds is picked, and its threshold is fitted to all of the others. A comparison applies two
such procedures to the same answers, and its interval resamples whole conversations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from stepdown.builder.errors import BadInput
from stepdown.judges.calibration.measure import PassRates, pass_rates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Groups = NDArray[np.int64]

RESAMPLES = 10_000
MOST_SCORES = 6
"""How many scores are combined at most: every further one doubles the candidates."""


@dataclass(frozen=True, slots=True)
class HeldOutResult:
    """How a procedure did on conversations that were held out, and how often it picked which candidate."""

    held_out: PassRates
    passes: tuple[bool, ...]
    picked: Counter[str]
    thresholds: Mapping[str, tuple[float, float]]
    """The lowest and the highest threshold of each candidate that was picked."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Combination minus single, with a 95% interval over resampled conversations."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """Combination against single score, on the same answers."""

    gain: Difference
    """The difference in P(pass | good) - P(pass | bad)."""
    pseudo_pass: Difference
    recall: Difference


def candidates(scores: Mapping[str, Sequence[float]]) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """The single scores, and every combination of two or more: their mean, and their minimum."""
    import numpy as np

    if len(scores) > MOST_SCORES:
        raise BadInput(
            f"{len(scores)} scores are more than the {MOST_SCORES} that can be combined: name some by --score"
        )
    singles = {name: np.asarray(values, dtype=float) for name, values in scores.items()}
    combined: dict[str, Floats] = {}
    for size in range(2, len(singles) + 1):
        for names in combinations(singles, size):
            stacked = np.stack([singles[name] for name in names])
            combined[f"mean({', '.join(names)})"] = stacked.mean(axis=0)
            combined[f"min({', '.join(names)})"] = stacked.min(axis=0)
    return singles, combined


def threshold_for(scores: Floats, good: Flags, target: float) -> float:
    """The lowest threshold that passes at most the target share of the bad answers; infinite where there is none."""
    import numpy as np

    bad = np.sort(scores[~good])
    allowed = int(np.floor(target * len(bad) + 1e-9))
    if not len(bad):
        return float(scores.min(initial=np.inf))
    if allowed >= len(bad):
        return float(scores.min())
    above = scores[scores > bad[len(bad) - 1 - allowed]]
    return float(above.min()) if len(above) else float("inf")


def cross_validated(candidates: Mapping[str, Floats], good: Flags, groups: Groups, target: float) -> HeldOutResult:
    """The result of nested cross-validation over groups."""
    import numpy as np

    passes = np.zeros(len(good), dtype=bool)
    picked: Counter[str] = Counter()
    thresholds: dict[str, list[float]] = {}
    for held in np.unique(groups):
        rest = groups != held
        best = max(candidates, key=lambda name: _inner_gain(candidates[name][rest], good[rest], groups[rest], target))
        threshold = threshold_for(candidates[best][rest], good[rest], target)
        passes[~rest] = candidates[best][~rest] >= threshold
        picked[best] += 1
        thresholds.setdefault(best, []).append(threshold)
    flags = tuple(bool(flag) for flag in passes)
    ranges = {name: (min(values), max(values)) for name, values in thresholds.items()}
    return HeldOutResult(pass_rates(flags, [bool(flag) for flag in good]), flags, picked, ranges)


def chosen_on(candidates: Mapping[str, Floats], good: Flags, groups: Groups, target: float) -> tuple[str, float]:
    """The candidate that does best on conversations held out of these, and its threshold fitted to all of them."""
    best = max(candidates, key=lambda name: _inner_gain(candidates[name], good, groups, target))
    return best, threshold_for(candidates[best], good, target)


def _inner_gain(scores: Floats, good: Flags, groups: Groups, target: float) -> float:
    """A candidate's gain on conversations that its threshold was not fitted to."""
    import numpy as np

    passes = np.zeros(len(good), dtype=bool)
    for held in np.unique(groups):
        rest = groups != held
        passes[~rest] = scores[~rest] >= threshold_for(scores[rest], good[rest], target)
    return _gain(passes, good)


def _gain(passes: Flags, good: Flags) -> float:
    recall = float(passes[good].mean()) if good.any() else 0.0
    return recall - (float(passes[~good].mean()) if (~good).any() else 0.0)


def compared(
    single: Sequence[bool], combination: Sequence[bool], good: Flags, groups: Groups, seed: int
) -> PairedComparison:
    """A paired bootstrap over conversations. Resamples without a good or without a bad answer are left out."""
    import numpy as np

    ids = np.unique(groups)
    one, other = np.asarray(single, dtype=bool), np.asarray(combination, dtype=bool)
    counts = np.array(
        [
            [(part & of & (groups == group)).sum() for group in ids]
            for of in (~good, good)
            for part in (np.ones_like(good), one, other)
        ],
        dtype=float,
    )
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(len(ids), np.full(len(ids), 1 / len(ids)), size=RESAMPLES).astype(float)

    def differences(weights: Floats) -> Floats:
        bad, bad_one, bad_other, fine, fine_one, fine_other = counts @ weights.T
        with np.errstate(divide="ignore", invalid="ignore"):
            pseudo, recall = (bad_other - bad_one) / bad, (fine_other - fine_one) / fine
        return np.stack([recall - pseudo, pseudo, recall])

    found = differences(np.ones((1, len(ids))))[:, 0]
    resampled = differences(drawn)
    usable = resampled[:, np.isfinite(resampled).all(axis=0)]
    if not usable.shape[1]:
        raise BadInput("no resample of the conversations holds good and bad answers")
    low, high = np.percentile(usable, [2.5, 97.5], axis=1)
    return PairedComparison(
        *(Difference(float(v), float(a), float(b)) for v, a, b in zip(found, low, high, strict=True))
    )


def best_in_hindsight(candidates: Mapping[str, Floats], good: Flags, target: float) -> tuple[str, float, PassRates]:
    """The candidate that is best when picked and measured on the same answers: better than anybody can expect.

    Returns its name, its threshold and its rates.
    """
    fitted = {name: threshold_for(scores, good, target) for name, scores in candidates.items()}
    best = max(fitted, key=lambda name: _gain(candidates[name] >= fitted[name], good))
    passes = [bool(flag) for flag in candidates[best] >= fitted[best]]
    return best, fitted[best], pass_rates(passes, [bool(flag) for flag in good])


def as_arrays(good: Sequence[bool], groups: Sequence[str]) -> tuple[Any, Any]:
    """People's verdicts, and conversations as numbers. Raises BadInput where they are too few or all alike."""
    import numpy as np

    numbers = {group: index for index, group in enumerate(dict.fromkeys(groups))}
    if len(numbers) < 3:
        raise BadInput(f"{len(numbers)} conversations can not be held out in turn: at least 3 are needed")
    if all(good) or not any(good):
        raise BadInput("people call all of these answers good, or all bad: nothing to measure a judge by")
    return np.asarray(good, dtype=bool), np.asarray([numbers[group] for group in groups])
