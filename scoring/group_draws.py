"""Means with 95% intervals: whole groups of what is counted are drawn again with replacement, as many as there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

RESAMPLES = 5000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval. No value where there was nothing to count; no interval where there is one group only,
    or where nothing is drawn.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None

    def times(self, factor: float) -> Estimate:
        """The same of so many."""
        return Estimate(*(None if one is None else one * factor for one in (self.value, self.low, self.high)))


class GroupDraws:
    """Draws of groups, the same for every figure that is made of them: what is compared is drawn together."""

    def __init__(self, groups: Iterable[str], resamples: int = RESAMPLES, seed: int = 0) -> None:
        import numpy as np

        self._place = {name: place for place, name in enumerate(sorted(set(groups)))}
        count = len(self._place)
        self.times: NDArray[float64] | None = None
        """How often each group is in each resample (resamples by groups, in the order of their names); None where
        nothing is drawn."""
        if count > 1 and resamples:
            drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), resamples)
            self.times = drawn.astype(np.float64)

    def mean(self, groups: Sequence[str], values: Sequence[float] | NDArray[float64]) -> Estimate:
        """The mean of values, each of a group. A resample that draws none of them says nothing."""
        return self.means(groups, [[value] for value in values], 1)[0]

    def means(self, groups: Sequence[str], values: Sequence[Sequence[float]], figures: int) -> list[Estimate]:
        """As `mean`, of so many figures at once: each row of values is of a group."""
        import numpy as np

        if not len(values):
            return [Estimate()] * figures
        given, places = np.asarray(values, dtype=np.float64), self.places(groups)
        centres = given.mean(axis=0).tolist()
        if self.times is None:
            return [Estimate(centre) for centre in centres]
        sums, counts = np.zeros((len(self._place), figures)), np.zeros(len(self._place))
        np.add.at(sums, places, given)
        np.add.at(counts, places, 1.0)
        drawn = self.times @ counts
        resampled = (self.times @ sums)[drawn > 0] / drawn[drawn > 0, None]
        return [bounded(centre, column) for centre, column in zip(centres, resampled.T, strict=True)]

    def places(self, groups: Sequence[str]) -> NDArray[int64]:
        """The place of each group among the columns of `times`."""
        import numpy as np

        return np.array([self._place[name] for name in groups], dtype=np.int64)


def bounded(value: float, drawn: NDArray[float64]) -> Estimate:
    """A figure with the percentile interval of what resamples gave for it."""
    import numpy as np

    if not len(drawn):
        return Estimate(value)
    low, high = np.percentile(drawn, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return Estimate(value, float(low), float(high))
