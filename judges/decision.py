"""The rule: a judge's observations in, a verdict out. Pure, and the only place where it is decided what passes.

`report_problems` says why a report cannot be believed. Such a report decides nothing, for or against the answer, and
the judge is asked for another one. `failure_reasons` says why an answer fails by a report that can be believed. Doubt
fails. The judge's own word for the verdict counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from stepdown.builder.config.protocol import Thresholds
from stepdown.judges.checking import SETTLED, QuoteChecker
from stepdown.judges.report import RATINGS, STYLE_GROUNDS, Rating, Report

RULES_VERSION = 3
"""Raised whenever a rule changes, here or in what it rests on. A run's manifest says by which rules it was judged."""
BEST_RATING = 5


class FailureReason(NamedTuple):
    """Why an answer failed: the name of the rule, and what it found."""

    rule: str
    found: str


def report_problems(report: Report, checker: QuoteChecker, thresholds: Thresholds) -> list[str]:
    """Why a report cannot be believed. The texts repeat nothing that the report or the answer says.

    To fail an answer, a report needs to prove one fault. To pass it, the report must have looked at all of it.
    """
    found = [*_part_problems(report, checker), *_claim_problems(report, checker), *_item_problems(report, checker)]
    if not found and not failure_reasons(report, checker, thresholds):
        found += [*checker.unquoted(report.claims), *_rating_problems(report)]
    return found


def _part_problems(report: Report, checker: QuoteChecker) -> Iterator[str]:
    claimed = checker.covered(report.claims)
    for number, part in enumerate(report.parts):
        if part.status != "given":
            continue
        if not checker.answer.places(part.answer_quote):
            yield f"parts.{number}.answer_quote is not in the answer, word for word"
        elif not checker.touches(part.answer_quote, claimed):
            yield f"parts.{number}: no claim quotes what gives it"


def _claim_problems(report: Report, checker: QuoteChecker) -> Iterator[str]:
    for number, claim in enumerate(report.claims):
        place = f"claims.{number}"
        if not checker.answer.places(claim.answer_quote):
            yield f"{place}.answer_quote is not in the answer, word for word"
        elif problem := checker.claim_problem(claim):
            yield f"{place}{problem}"


def _item_problems(report: Report, checker: QuoteChecker) -> Iterator[str]:
    settled = [entry.item for entry in report.items]
    if sorted(settled) != list(range(1, len(checker.items) + 1)):
        yield f"items: each of the {len(checker.items)} listed items is to be settled once"
        return
    for entry in report.items:
        if problem := checker.settlement_problem(entry):
            yield f"items, number {entry.item}{problem}"


def _rating_problems(report: Report) -> Iterator[str]:
    for name in RATINGS:
        rating: Rating = getattr(report, name)
        if rating.rating == BEST_RATING and not STYLE_GROUNDS.issuperset(rating.grounds):
            yield f"{name} is {BEST_RATING}, and its grounds name what keeps it from that"


def failure_reasons(report: Report, checker: QuoteChecker, thresholds: Thresholds) -> list[FailureReason]:
    """Why the answer fails, in the order of the rules; empty where it passes.

    Support that cannot be found in the evidence does not count, whether or not the report was checked before.
    """
    return [
        *_resolution_failures(report, checker),
        *_claim_failures(report, checker),
        *_item_failures(report, checker),
        *_rating_failures(report, thresholds),
    ]


def _resolution_failures(report: Report, checker: QuoteChecker) -> Iterator[FailureReason]:
    """The primary criterion: does the answer resolve what was asked?"""
    if report.resolution.status != "completely":
        yield FailureReason("unresolved", f"{report.resolution.status}: {report.resolution.reason}")
    if report.stance != "answers":
        yield FailureReason(
            "declined", "it does not say that it knows" if report.stance == "uncertain" else "it declines"
        )
    supported = checker.covered(claim for claim in report.claims if checker.support_of(claim) == "supported")
    for part in report.parts:
        if part.status != "given":
            yield FailureReason("missing part", f"{part.status}: {part.part}")
        elif not checker.touches(part.answer_quote, supported):
            yield FailureReason("missing part", f"given without support: {part.part}")


def _claim_failures(report: Report, checker: QuoteChecker) -> Iterator[FailureReason]:
    for claim in report.claims:
        status = checker.support_of(claim)
        if status == "contradicted":
            yield FailureReason("contradiction", claim.answer_quote)
        elif status == "uncertain":
            yield FailureReason("uncertain claim", claim.answer_quote)
        elif status == "unsupported" and not checker.adds_nothing(claim):
            yield FailureReason("unsupported claim", claim.answer_quote)


def _item_failures(report: Report, checker: QuoteChecker) -> Iterator[FailureReason]:
    entries = {entry.item: entry for entry in report.items}
    for number, item in enumerate(checker.items, 1):
        entry = entries.get(number)
        is_settled = entry is not None and entry.status in SETTLED and checker.settlement_problem(entry) is None
        if not is_settled:
            yield FailureReason(f"unsupported {item.kind}", item.text)


def _rating_failures(report: Report, thresholds: Thresholds) -> Iterator[FailureReason]:
    """Ratings below their thresholds because of what the answer says. A low rating for style alone fails nothing.

    A contradiction fails at any rating. A low rating that names no ground is not taken to be for style.
    """
    for name in RATINGS:
        rating: Rating = getattr(report, name)
        least: int = getattr(thresholds, name)
        for_style_alone = STYLE_GROUNDS.issuperset(rating.grounds) and not {"none"}.issuperset(rating.grounds)
        if "contradicted" in rating.grounds:
            yield FailureReason("contradiction", f"{name}: {rating.reason}")
        elif rating.rating < least and not for_style_alone:
            yield FailureReason(f"low {name}", f"{rating.rating} of {BEST_RATING}: {rating.reason}")
