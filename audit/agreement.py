"""How far reviewers agree: Cohen's kappa of every two reviewers, Fleiss' kappa of all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from stepdown.audit.verdicts import AuditVerdict

CATEGORIES = tuple(AuditVerdict)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far some reviewers agree on the steps that all of them answered."""

    reviewers: tuple[str, ...]
    steps: int
    same: int
    """Steps on which all gave the same verdict."""
    kappa: float | None
    """Agreement beyond chance. None where it is undefined: there is no step, or all verdicts are the same."""


def cohen_agreements(said: Mapping[str, Mapping[str, AuditVerdict]]) -> list[Agreement]:
    """Cohen's kappa of every two reviewers who share a step. `said` is each reviewer's verdicts by step id."""
    found = []
    for first, second in combinations(sorted(said), 2):
        shared = sorted(said[first].keys() & said[second].keys())
        if shared:
            pairs = [(said[first][step], said[second][step]) for step in shared]
            table = [[pairs.count((row, column)) for column in CATEGORIES] for row in CATEGORIES]
            same = sum(one is other for one, other in pairs)
            found.append(Agreement((first, second), len(shared), same, _cohens_kappa(table)))
    return found


def fleiss_agreement(said: Mapping[str, Mapping[str, AuditVerdict]]) -> Agreement | None:
    """Fleiss' kappa of all reviewers over the steps that every one of them answered; None for fewer than two."""
    reviewers = tuple(sorted(said))
    if len(reviewers) < 2:
        return None
    shared = sorted(set.intersection(*(set(said[reviewer]) for reviewer in reviewers)))
    given = [[said[reviewer][step] for reviewer in reviewers] for step in shared]
    table = [[verdicts.count(category) for category in CATEGORIES] for verdicts in given]
    same = sum(len(set(verdicts)) == 1 for verdicts in given)
    return Agreement(reviewers, len(shared), same, _fleiss_kappa(table))


def _cohens_kappa(table: Sequence[Sequence[int]]) -> float | None:
    """The kappa of a table of the first reviewer's verdicts by the second's.

    >>> _cohens_kappa([[20, 5, 0], [10, 15, 0], [0, 0, 0]])
    0.4
    """
    from statsmodels.stats.inter_rater import cohens_kappa  # a second to import: only where it is needed

    if _lies_in_one_category(
        [[sum(row), sum(column)] for row, column in zip(table, zip(*table, strict=True), strict=True)]
    ):
        return None
    return _rounded(cohens_kappa(table, return_results=False))


def _fleiss_kappa(table: Sequence[Sequence[int]]) -> float | None:
    """The kappa of a table of steps by category; a cell is how many reviewers gave that verdict."""
    from statsmodels.stats.inter_rater import fleiss_kappa

    if not table or _lies_in_one_category([[sum(column)] for column in zip(*table, strict=True)]):
        return None
    return _rounded(fleiss_kappa(table))


def _lies_in_one_category(totals: Sequence[Sequence[int]]) -> bool:
    return sum(1 for total in totals if sum(total)) < 2


def _rounded(kappa: float) -> float | None:
    return None if math.isnan(kappa) else round(float(kappa), 6)
