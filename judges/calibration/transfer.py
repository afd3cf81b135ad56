"""A score and a threshold chosen on one set of rated answers and applied to another: what it is worth elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, log
from typing import Any

from stepdown.builder.errors import BadInput
from stepdown.judges.calibration.choosing import PairedComparison, as_arrays, candidates, chosen_on, compared
from stepdown.judges.calibration.data import RatedAnswer, RatedAnswers
from stepdown.judges.calibration.measure import PassRates, pass_rates
from stepdown.judges.calibration.study import claim, comparison_json, rate_lines, told_difference

MOST_BAD = 20_000
"""Bad answers up to which it is looked how many would be needed."""
_POWER = 0.8


@dataclass(frozen=True, slots=True)
class Applied:
    """What was chosen on the one set, and what it passes of the other."""

    score: str
    threshold: float
    chosen_on: PassRates
    """On the answers it was chosen on: better than anybody can expect."""
    others: PassRates
    """Of the answers that are not the reference, word for word."""
    references: PassRates
    """Of those that are."""
    passes: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Transfer:
    """Single scores and combinations, each chosen on one set and applied to the other."""

    target: float
    least: float
    chosen: RatedAnswers
    applied: RatedAnswers
    shared: tuple[str, ...]
    """Conversations that both sets have: what is chosen has seen them."""
    single: Applied
    combination: Applied | None
    comparison: PairedComparison | None


def transferred(chosen: RatedAnswers, applied: RatedAnswers, target: float, least: float, seed: int) -> Transfer:
    """Choose on one set, apply to the other. Raises BadInput where a set is too small, or they have no common score."""
    names = [name for name in chosen.rated[0].scores if name in applied.rated[0].scores]
    if not names:
        raise BadInput("the two files have no score in common: name one by --score")
    good, groups = as_arrays([one.is_good(least) for one in chosen.rated], [one.group for one in chosen.rated])
    there, there_groups = as_arrays([one.is_good(least) for one in applied.rated], [one.group for one in applied.rated])
    first = candidates({name: [one.scores[name] for one in chosen.rated] for name in names})
    second = candidates({name: [one.scores[name] for one in applied.rated] for name in names})

    def apply(kind: int) -> Applied:
        name, threshold = chosen_on(first[kind], good, groups, target)
        passes = tuple(bool(flag) for flag in second[kind][name] >= threshold)
        fitted = pass_rates([bool(flag) for flag in first[kind][name] >= threshold], [bool(flag) for flag in good])
        others, references = (_rates(applied.rated, passes, least, kept) for kept in (False, True))
        return Applied(name, threshold, fitted, others, references, passes)

    single = apply(0)
    combination = apply(1) if first[1] else None
    comparison = compared(single.passes, combination.passes, there, there_groups, seed) if combination else None
    shared = tuple(group for group in chosen.groups if group in set(applied.groups))
    return Transfer(target, least, chosen, applied, shared, single, combination, comparison)


def _rates(rated: Sequence[RatedAnswer], passes: Sequence[bool], least: float, references: bool) -> PassRates:
    kept = [
        (flag, one.is_good(least)) for flag, one in zip(passes, rated, strict=True) if one.is_reference == references
    ]
    return pass_rates([flag for flag, _ in kept], [good for _, good in kept])


def transfer_lines(found: Transfer) -> Iterator[str]:
    """The transfer as text."""
    for word, answers in (("chosen on", found.chosen), ("applied to", found.applied)):
        good = sum(one.is_good(found.least) for one in answers.rated)
        bad = len(answers.rated) - good
        yield f"{word} {len(answers.rated)} answers of {len(answers.groups)} conversations: {good} good, {bad} bad"
        if answers.without_verdict:
            yield f"  no verdict of the judge, counted as not passed: {answers.without_verdict}"
    if found.shared:
        yield f"conversations in both, which the choice has seen: {len(found.shared)}: {', '.join(found.shared)}"
    else:
        yield "no conversation is in both"
    yield f"chosen for P(pass | bad) <= {found.target:g}"
    yield from _applied_lines("single score", found.single)
    if found.combination is not None and found.comparison is not None:
        yield from _applied_lines("combination", found.combination)
        yield "combination minus single, applied to the same answers, 95% over resampled conversations"
        yield f"  P(pass | good) - P(pass | bad)  {told_difference(found.comparison.gain)}"
        yield f"  {claim(found.comparison)}"
    yield from power_lines(found)


def _applied_lines(title: str, found: Applied) -> Iterator[str]:
    yield f"{title}: {found.score} >= {found.threshold:.4g}"
    yield "  where it was chosen:"
    yield from (f"  {line}" for line in rate_lines(found.chosen_on))
    yield "  applied:"
    yield from (f"  {line}" for line in rate_lines(found.others))
    if found.references.bad or found.references.good:
        yield "  answers that equal the reference, apart:"
        yield from (f"  {line}" for line in rate_lines(found.references))


def power_lines(found: Transfer) -> Iterator[str]:
    """What these answers could have shown, and how many would show more."""
    bad = sum(not one.is_good(found.least) for one in found.applied.rated)
    target = found.target
    yield f"power: {bad} bad answers were there to be passed"
    if target > 0:
        none, half = fewest_without_a_pass(target), fewest_at_half(target)
        yield f"  a judge that passes none of them is shown to be at {target:g} or below by {none} bad answers"
        told = f"by {half}" if half else f"by more than {MOST_BAD}"
        yield f"  one that passes {target / 2:g} of them is so shown, four times of five, {told}"
    if found.combination is not None and (needed := _fewest_for_difference(found)):
        yield f"  a difference as large as the one seen is told from none, four times of five, by {needed} bad answers"


def fewest_without_a_pass(target: float) -> int:
    """How many bad answers show P(pass | bad) <= target at 95%, exact and two-sided, where none of them passes.

    >>> fewest_without_a_pass(0.1)
    36
    """
    return ceil(log(0.025) / log(1 - target))


def fewest_at_half(target: float) -> int | None:
    """How many bad answers show it with a power of 80% where half the target passes; None where too many."""
    from scipy.stats import beta, binom

    def power(of: int) -> float:
        allowed = -1
        while allowed + 1 < of and beta.ppf(0.975, allowed + 2, of - allowed - 1) <= target:
            allowed += 1
        return float(binom.cdf(allowed, of, target / 2)) if allowed >= 0 else 0.0

    few, many = 1, 2
    while power(many) < _POWER:
        few, many = many, many * 2
        if many > MOST_BAD:
            return None
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if power(middle) >= _POWER else (middle, many)
    return many


def _fewest_for_difference(found: Transfer) -> int | None:
    """Paired bad answers that tell the seen difference in P(pass | bad) from none; None where none was seen."""
    assert found.combination is not None
    pairs = [
        (one, other)
        for one, other, answer in zip(found.single.passes, found.combination.passes, found.applied.rated, strict=True)
        if not answer.is_good(found.least)
    ]
    differing = sum(one != other for one, other in pairs) / len(pairs)
    difference = sum(other - one for one, other in pairs) / len(pairs)
    return ceil((1.96 + 0.84) ** 2 * (differing - difference**2) / difference**2) if difference else None


def transfer_json(found: Transfer) -> dict[str, Any]:
    """The transfer as JSON, for other programs."""
    return {
        "chosen_on": {"answers": len(found.chosen.rated), "without_verdict": found.chosen.without_verdict},
        "applied_to": {"answers": len(found.applied.rated), "without_verdict": found.applied.without_verdict},
        "shared_conversations": list(found.shared),
        "target": found.target,
        "single": _applied_json(found.single),
        "combination": _applied_json(found.combination) if found.combination else None,
        "comparison": comparison_json(found.comparison) if found.comparison else None,
        "power": list(power_lines(found)),
    }


def _applied_json(found: Applied) -> dict[str, Any]:
    return {
        "score": found.score,
        "threshold": found.threshold if found.threshold != float("inf") else None,
        "where_chosen": found.chosen_on.to_json(),
        "applied": found.others.to_json(),
        "equal_to_the_reference": found.references.to_json(),
    }
