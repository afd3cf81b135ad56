"""A whole calibration as one result: the scores of a file's answers measured, and a choice of threshold tested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from stepdown.builder.common.extras import require
from stepdown.builder.errors import BadInput
from stepdown.judges.calibration.choosing import (
    Difference,
    HeldOutResult,
    PairedComparison,
    as_arrays,
    best_in_hindsight,
    candidates,
    compared,
    cross_validated,
)
from stepdown.judges.calibration.data import RatedAnswers
from stepdown.judges.calibration.measure import PassRates, pass_rates
from stepdown.judges.report import RATINGS

DEFAULT_THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
"""The thresholds that are shown where nobody names any."""


@dataclass(frozen=True, slots=True)
class ThresholdChoice:
    """The score and threshold that were chosen for a target, measured on conversations that were held out.

    `single` chooses among single scores, `combination` among combinations.
    """

    target: float
    single: HeldOutResult
    combination: HeldOutResult | None
    comparison: PairedComparison | None
    """None, like `combination`, where there is only one score."""
    in_hindsight: tuple[str, float, PassRates]


@dataclass(frozen=True, slots=True)
class Study:
    """The result of a calibration."""

    answers: RatedAnswers
    least: float
    table: tuple[tuple[str, float, PassRates], ...]
    """(score, threshold, rates) against all ratings together."""
    by_rating: tuple[tuple[str, str, float, PassRates], ...]
    """(rating, score, threshold, rates) against one rating alone."""
    choice: ThresholdChoice


def study(answers: RatedAnswers, thresholds: Sequence[float], target: float, least: float, seed: int) -> Study:
    """The calibration of some answers. Raises BadInput where they are too few or all alike."""
    rated = answers.rated
    good = [one.is_good(least) for one in rated]
    scores = {name: [one.scores[name] for one in rated] for name in rated[0].scores}
    table = [
        (name, threshold, pass_rates([value >= threshold for value in values], good))
        for name, values in scores.items()
        for threshold in thresholds
    ]
    by_rating = [
        (
            rating,
            name,
            threshold,
            pass_rates([v >= threshold for v in values], [one.ratings[place] >= least for one in rated]),
        )
        for place, rating in enumerate(RATINGS)
        for name, values in scores.items()
        for threshold in thresholds
    ]
    flags, groups = as_arrays(good, [one.group for one in rated])
    singles, combined = candidates(scores)
    single = cross_validated(singles, flags, groups, target)
    combination = cross_validated(combined, flags, groups, target) if combined else None
    comparison = compared(single.passes, combination.passes, flags, groups, seed) if combination else None
    choice = ThresholdChoice(
        target, single, combination, comparison, best_in_hindsight({**singles, **combined}, flags, target)
    )
    return Study(answers, least, tuple(table), tuple(by_rating), choice)


def study_lines(result: Study) -> Iterator[str]:
    """The study as text, for a terminal or a pipe."""
    rated = result.answers.rated
    good = sum(one.is_good(result.least) for one in rated)
    groups = len({one.group for one in rated})
    yield f"{len(rated)} answerable answers of {groups} conversations: {good} good, {len(rated) - good} bad"
    yield f"good: every median rating is at least {result.least:g}"
    if result.answers.without_verdict:
        yield f"no verdict of the judge, counted as not passed: {result.answers.without_verdict}"
    for reason, count in sorted(result.answers.left_out.items()):
        yield f"left out: {count}, {reason}"
    yield ""
    yield "against all ratings together; shares with exact 95% intervals"
    for name, threshold, found in result.table:
        yield f"{name} >= {threshold:g}"
        yield from rate_lines(found)
    yield ""
    yield "against one rating alone"
    for rating, name, threshold, found in result.by_rating:
        shares = f"P(pass | bad) {found.pseudo_pass}; P(bad | pass) {found.bad_among_passed}"
        yield f"{rating}, {name} >= {threshold:g}: {shares}"
    yield ""
    yield from _choice_lines(result.choice)


def rate_lines(found: PassRates) -> Iterator[str]:
    yield f"  P(pass | bad)  {found.pseudo_pass}"
    yield f"  P(pass | good) {found.recall}"
    yield f"  P(bad | pass)  {found.bad_among_passed}"


def _choice_lines(choice: ThresholdChoice) -> Iterator[str]:
    yield f"chosen for P(pass | bad) <= {choice.target:g}, by nested cross-validation over conversations"
    yield from _result_lines("single score", choice.single)
    if choice.combination is not None and choice.comparison is not None:
        yield from _result_lines("combination", choice.combination)
        yield "combination minus single, same answers, 95% over resampled conversations"
        yield f"  P(pass | good) - P(pass | bad)  {told_difference(choice.comparison.gain)}"
        yield f"  P(pass | bad)                   {told_difference(choice.comparison.pseudo_pass)}"
        yield f"  P(pass | good)                  {told_difference(choice.comparison.recall)}"
        yield f"  {claim(choice.comparison)}"
    name, threshold, found = choice.in_hindsight
    yield f"in hindsight, picked and measured on the same answers (not to be had): {name} >= {threshold:.4g}"
    yield from rate_lines(found)


def _result_lines(title: str, found: HeldOutResult) -> Iterator[str]:
    yield f"{title}, on conversations held out"
    yield from rate_lines(found.held_out)
    for name, count in found.picked.most_common():
        low, high = found.thresholds[name]
        yield f"  picked in {count} folds: {name}, threshold {low:.4g} to {high:.4g}"


def told_difference(difference: Difference) -> str:
    return f"{difference.value:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"


def claim(comparison: PairedComparison) -> str:
    """What may be claimed of the combination. Only an interval without zero makes it better or worse."""
    gain = comparison.gain
    if gain.low > 0:
        return "the combination beats the best single score: the interval excludes zero"
    if gain.high < 0:
        return "the combination is worse than the best single score: the interval excludes zero"
    return "no claim that the combination beats the best single score: the interval includes zero"


def to_json(result: Study) -> dict[str, Any]:
    """The study as JSON, for other programs."""
    choice = result.choice
    name, threshold, found = choice.in_hindsight
    return {
        "answers": len(result.answers.rated),
        "left_out": result.answers.left_out,
        "without_verdict": result.answers.without_verdict,
        "good_from": result.least,
        "table": [{"score": n, "threshold": t, **m.to_json()} for n, t, m in result.table],
        "by_rating": [{"rating": r, "score": n, "threshold": t, **m.to_json()} for r, n, t, m in result.by_rating],
        "target": choice.target,
        "single": _result_json(choice.single),
        "combination": _result_json(choice.combination) if choice.combination else None,
        "comparison": comparison_json(choice.comparison) if choice.comparison else None,
        "in_hindsight": {"score": name, "threshold": threshold, **found.to_json()},
    }


def _result_json(found: HeldOutResult) -> dict[str, Any]:
    picked = [
        {"score": name, "folds": count, "thresholds": [_finite(t) for t in found.thresholds[name]]}
        for name, count in found.picked.most_common()
    ]
    return {**found.held_out.to_json(), "picked": picked}


def _finite(value: float) -> float | None:
    """None for a threshold that nothing passes."""
    return value if value != float("inf") else None


def comparison_json(found: PairedComparison) -> dict[str, Any]:
    parts = {"gain": found.gain, "pass_given_bad": found.pseudo_pass, "pass_given_good": found.recall}
    return {
        **{name: {"value": part.value, "interval": [part.low, part.high]} for name, part in parts.items()},
        "claim": claim(found),
    }


def check_options(thresholds: Sequence[float], target: float, seed: int) -> None:
    """Raises BadInput for an invalid threshold, target or seed, and where a library is missing."""
    require("judge", "numpy", "statsmodels")
    if not 0 <= target < 1:
        raise BadInput(f"{target:g} is no share: from 0 to below 1", field="--target")
    if seed < 0:
        raise BadInput(f"{seed} is below 0", field="--seed")
    if any(threshold != threshold for threshold in thresholds):
        raise BadInput("not a number", field="--threshold")
