"""A whole calibration: the answers of a file, their scores measured, a choice tested, as one result to be shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from stepdown.builder.common.extras import require
from stepdown.builder.errors import BadInput
from stepdown.judges.calibration.choosing import (
    Chosen,
    Comparison,
    Difference,
    arrays,
    candidates,
    chosen,
    compared,
    hindsight,
)
from stepdown.judges.calibration.data import RatedAnswers
from stepdown.judges.calibration.measure import Measured, measured
from stepdown.judges.report import RATINGS

GRID = (0.5, 0.6, 0.7, 0.8, 0.9)
"""Thresholds that are shown where none are asked for."""


@dataclass(frozen=True, slots=True)
class ThresholdChoice:
    """What was chosen on some conversations and came out on others."""

    target: float
    single: Chosen
    combination: Chosen | None
    comparison: Comparison | None
    """None where one score alone leaves nothing to combine."""
    in_hindsight: tuple[str, float, Measured]


@dataclass(frozen=True, slots=True)
class Study:
    """Everything that a calibration says."""

    answers: RatedAnswers
    least: float
    table: tuple[tuple[str, float, Measured], ...]
    """Score, threshold, and what it passes, against all ratings together."""
    by_rating: tuple[tuple[str, str, float, Measured], ...]
    """Rating, score, threshold: against one rating alone."""
    choice: ThresholdChoice


def study(answers: RatedAnswers, thresholds: Sequence[float], target: float, least: float, seed: int) -> Study:
    """Calibrate. Raises BadInput where the answers can not carry it."""
    rated = answers.rated
    good = [one.is_good(least) for one in rated]
    scores = {name: [one.scores[name] for one in rated] for name in rated[0].scores}
    table = [
        (name, threshold, measured([value >= threshold for value in values], good))
        for name, values in scores.items()
        for threshold in thresholds
    ]
    by_rating = [
        (
            rating,
            name,
            threshold,
            measured([v >= threshold for v in values], [one.ratings[place] >= least for one in rated]),
        )
        for place, rating in enumerate(RATINGS)
        for name, values in scores.items()
        for threshold in thresholds
    ]
    flags, groups = arrays(good, [one.group for one in rated])
    singles, combined = candidates(scores)
    single = chosen(singles, flags, groups, target)
    combination = chosen(combined, flags, groups, target) if combined else None
    comparison = compared(single, combination, flags, groups, seed) if combination else None
    choice = ThresholdChoice(target, single, combination, comparison, hindsight({**singles, **combined}, flags, target))
    return Study(answers, least, tuple(table), tuple(by_rating), choice)


def lines(result: Study) -> Iterator[str]:
    """The study in words and figures, for a terminal or a pipe."""
    rated = result.answers.rated
    good = sum(one.is_good(result.least) for one in rated)
    groups = len({one.group for one in rated})
    yield f"{len(rated)} answerable answers of {groups} conversations: {good} good, {len(rated) - good} bad"
    yield f"good: every median rating is at least {result.least:g}"
    for reason, count in sorted(result.answers.left_out.items()):
        yield f"left out: {count}, {reason}"
    yield ""
    yield "against all ratings together; shares with exact 95% intervals"
    for name, threshold, found in result.table:
        yield f"{name} >= {threshold:g}"
        yield from _measured(found)
    yield ""
    yield "against one rating alone"
    for rating, name, threshold, found in result.by_rating:
        shares = f"P(pass | bad) {found.pseudo_pass}; P(bad | pass) {found.bad_among_passed}"
        yield f"{rating}, {name} >= {threshold:g}: {shares}"
    yield ""
    yield from _choice(result.choice)


def _measured(found: Measured) -> Iterator[str]:
    yield f"  P(pass | bad)  {found.pseudo_pass}"
    yield f"  P(pass | good) {found.recall}"
    yield f"  P(bad | pass)  {found.bad_among_passed}"


def _choice(choice: ThresholdChoice) -> Iterator[str]:
    yield f"chosen for P(pass | bad) <= {choice.target:g}, by nested cross-validation over conversations"
    yield from _chosen("single score", choice.single)
    if choice.combination is not None and choice.comparison is not None:
        yield from _chosen("combination", choice.combination)
        yield "combination minus single, same answers, 95% over resampled conversations"
        yield f"  P(pass | good) - P(pass | bad)  {_difference(choice.comparison.gain)}"
        yield f"  P(pass | bad)                   {_difference(choice.comparison.pseudo_pass)}"
        yield f"  P(pass | good)                  {_difference(choice.comparison.recall)}"
        yield f"  {verdict(choice.comparison)}"
    name, threshold, found = choice.in_hindsight
    yield f"in hindsight, picked and measured on the same answers (not to be had): {name} >= {threshold:.4g}"
    yield from _measured(found)


def _chosen(title: str, found: Chosen) -> Iterator[str]:
    yield f"{title}, on conversations held out"
    yield from _measured(found.held_out)
    for name, count in found.picked.most_common():
        low, high = found.thresholds[name]
        yield f"  picked in {count} folds: {name}, threshold {low:.4g} to {high:.4g}"


def _difference(difference: Difference) -> str:
    return f"{difference.value:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"


def verdict(comparison: Comparison) -> str:
    """What may be claimed: that the combination is better only where its interval says so."""
    gain = comparison.gain
    if gain.low > 0:
        return "the combination beats the best single score: the interval excludes zero"
    if gain.high < 0:
        return "the combination is worse than the best single score: the interval excludes zero"
    return "no claim that the combination beats the best single score: the interval includes zero"


def to_json(result: Study) -> dict[str, Any]:
    """The study for other programs."""
    choice = result.choice
    name, threshold, found = choice.in_hindsight
    return {
        "answers": len(result.answers.rated),
        "left_out": result.answers.left_out,
        "good_from": result.least,
        "table": [{"score": n, "threshold": t, **m.to_json()} for n, t, m in result.table],
        "by_rating": [{"rating": r, "score": n, "threshold": t, **m.to_json()} for r, n, t, m in result.by_rating],
        "target": choice.target,
        "single": _chosen_json(choice.single),
        "combination": _chosen_json(choice.combination) if choice.combination else None,
        "comparison": _comparison_json(choice.comparison) if choice.comparison else None,
        "in_hindsight": {"score": name, "threshold": threshold, **found.to_json()},
    }


def _chosen_json(found: Chosen) -> dict[str, Any]:
    picked = [
        {"score": name, "folds": count, "thresholds": [_finite(t) for t in found.thresholds[name]]}
        for name, count in found.picked.most_common()
    ]
    return {**found.held_out.to_json(), "picked": picked}


def _finite(value: float) -> float | None:
    """None for a threshold that nothing passes."""
    return value if value != float("inf") else None


def _comparison_json(found: Comparison) -> dict[str, Any]:
    parts = {"gain": found.gain, "pass_given_bad": found.pseudo_pass, "pass_given_good": found.recall}
    return {
        **{name: {"value": part.value, "interval": [part.low, part.high]} for name, part in parts.items()},
        "claim": verdict(found),
    }


def check(thresholds: Sequence[float], target: float, seed: int) -> None:
    """Raises BadInput for a threshold, a target or a seed that is none, or where a library is missing."""
    require("judge", "numpy", "statsmodels")
    if not 0 <= target < 1:
        raise BadInput(f"{target:g} is no share: from 0 to below 1", field="--target")
    if seed < 0:
        raise BadInput(f"{seed} is below 0", field="--seed")
    if any(threshold != threshold for threshold in thresholds):
        raise BadInput("not a number", field="--threshold")
