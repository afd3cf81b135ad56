"""Several policies on the same rows: a score each, and what each has over the first, with paired intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from stepdown.routing.policies.contract import Policy
from stepdown.routing.scores.predicting import write_predictions
from stepdown.scoring.bank import Bank
from stepdown.scoring.bootstrap import difference_bounds
from stepdown.scoring.predictions import Predictions
from stepdown.scoring.result import Metric, Score
from stepdown.scoring.score import ScoreSettings, score
from stepdown.scoring.tally import METRICS

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PolicyScore:
    """A policy's score, and its lead over the first policy."""

    name: str
    version: str
    score: Score
    over_first: Mapping[str, Metric]
    """Points of each metric above the first policy, over all workloads; the interval is of the difference. Empty for
    the first."""


def score_policies(
    bank: Bank,
    policies: Sequence[Policy],
    settings: ScoreSettings,
    notify: Callable[[str, int], None] = lambda name, done: None,
) -> list[PolicyScore]:
    """Have each policy predict the bank's rows and score it; `notify` is told (policy, rows done). Raises BadInput."""
    found: list[PolicyScore] = []
    with TemporaryDirectory() as folder:
        for number, policy in enumerate(policies):
            file = Path(folder) / f"{number}.jsonl"
            write_predictions(bank, policy, file, settings.split, partial(notify, policy.name))
            came_to = score(bank, Predictions(file, bank.tiers, foreign=False), settings)
            lead = _lead(found[0].score, came_to, settings) if found else {}
            found.append(PolicyScore(policy.name, policy.version, came_to, lead))
    return found


def _lead(first: Score, second: Score, settings: ScoreSettings) -> dict[str, Metric]:
    edges = None
    if settings.resamples:
        edges = difference_bounds(first.units, second.units, settings.resamples, settings.seed).overall
    return {
        name: _difference(first.overall.metrics[name], second.overall.metrics[name], edges, place)
        for place, name in enumerate(METRICS)
    }


def _difference(first: Metric, second: Metric, edges: NDArray[float64] | None, place: int) -> Metric:
    if first.value is None or second.value is None:
        return Metric(None)
    if edges is None or math.isnan(edges[place][0]):
        return Metric(second.value - first.value)
    return Metric(second.value - first.value, float(edges[place][0]), float(edges[place][1]))
