"""The rule: a judge's observations in, a verdict out. Pure, and the only place where it is decided what passes.

`report_problems` says why a report cannot be believed. Such a report decides nothing, for or against the answer, and
the judge is asked for another one. `failure_reasons` says why an answer fails by a report that can be believed. Doubt
fails. The judge's own word for the verdict counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from stepdown.builder.config.protocol import Thresholds
from stepdown.judges.case import JudgeCase
from stepdown.judges.guards import FIGURE_KINDS, SourceContents, UnsourcedItem, numbers
from stepdown.judges.report import RATINGS, STYLE_GROUNDS, Claim, Rating, Report
from stepdown.judges.text import Tokens, plain, sentences, words

RULES_VERSION = 2
"""Raised whenever one of the rules here changes. A run's manifest records by which rules it was judged."""
MOST_ITEMS = 40
"""An answer with more figures and names than this that no source has fails without asking a judge."""
SHORTEST_CHECKED = 4
"""A sentence of at least so many words must be quoted by a claim, also where it has no figures."""
QUOTED_SHARE = 1 / 3
"""The share of a sentence's words that claims must quote: the judge has looked at it then."""
SOURCE_WORDS = frozenset({"passage", "passages", "source", "sources", "document", "documents", "evidence"})
"""After one of these words a number only says which source is meant."""
FACT_KINDS: frozenset[str] = frozenset({"number", "date", "amount", "ratio", "vote"})
"""Kinds of claim that are crucial whatever the judge says."""
SUPPORTING: frozenset[str] = frozenset({"supported", "derived"})
"""Statuses of a claim that is backed by the evidence."""
BEST_RATING = 5
QUOTE_NEEDED: frozenset[str] = SUPPORTING | {"contradicted"}
"""Statuses for which a judge must quote the evidence."""


class FailureReason(NamedTuple):
    """Why an answer failed: the name of the rule, and what it found."""

    rule: str
    found: str


@dataclass(frozen=True)
class QuoteChecker:
    """Checks a judge's quotes against the case: are they in the answer, are they in the evidence?"""

    case: JudgeCase
    items: tuple[UnsourcedItem, ...]

    @cached_property
    def _sentences(self) -> list[str]:
        return sentences(self.case.answer)

    @cached_property
    def _answer(self) -> Tokens:
        """The answer's tokens without list markers: the same tokens that its sentences have."""
        return Tokens.of("\n".join(self._sentences))

    @cached_property
    def _evidence(self) -> list[Tokens]:
        return [Tokens.of(f"{passage.title}\n{passage.text}") for passage in self.case.evidence]

    @cached_property
    def _whole_passages(self) -> set[tuple[str, ...]]:
        """The words of each whole passage."""
        return {tuple(words(passage.text)) for passage in self.case.evidence}

    def places(self, quote: str) -> list[range]:
        """Where the answer's tokens hold a quote."""
        return self._answer.places(quote) or self._answer.places("\n".join(sentences(quote)))

    def in_evidence(self, quote: str) -> bool:
        """Whether one passage of the evidence holds a quote that says something.

        One word alone says nothing, unless it has a digit or is the whole passage.
        """
        said = words(quote)
        says_something = len(said) > 1 or any(map(str.isdigit, "".join(said))) or tuple(said) in self._whole_passages
        return says_something and any(passage.holds(quote) for passage in self._evidence)

    def all_in_evidence(self, quotes: Sequence[str]) -> bool:
        """Whether there are quotes, all of them in the evidence."""
        return bool(quotes) and all(map(self.in_evidence, quotes))

    def support_of(self, claim: Claim) -> str:
        """A claim's status as its quotes bear it out.

        `derived` counts as supported. A claim whose quotes are not in the evidence is unsupported.
        """
        if claim.status not in SUPPORTING:
            return claim.status
        return "supported" if self.all_in_evidence(claim.evidence_quotes) else "unsupported"

    def overlaps(self, claim: Claim, places: Sequence[range]) -> bool:
        """Whether a claim quotes any of these places of the answer."""
        quoted = self.places(claim.answer_quote)
        return any(a.start < b.stop and b.start < a.stop for a in quoted for b in places)

    def lacks_figures(self, claim: Claim) -> bool:
        """Whether a claim has figures that are neither in its quotes nor in the conversation nor among the items.

        A derived claim only needs something to calculate from: a quote with a figure, or two quotes to count.
        """
        if claim.status == "derived":
            return len(claim.evidence_quotes) < 2 and not _any_has_figure(claim.evidence_quotes)
        listed = {(item.kind, item.text.casefold()) for item in self.items}
        quoted = SourceContents.of_texts([*claim.evidence_quotes, *(turn.text for turn in self.case.turns)])
        lacking = quoted.unknown(plain(claim.answer_quote))
        return any(kind in FIGURE_KINDS and (kind, text.casefold()) not in listed for kind, text in lacking)

    def _is_figure(self, place: int) -> bool:
        """Whether a token of the answer is a figure, and not the number of a source as in `passages 1 and 2`."""
        tokens = self._answer.tokens
        if not tokens[place][0].isdigit():
            return False
        while place > 1 and (tokens[place - 1] == "and" or tokens[place - 1].isdigit()):
            place -= 1
        return place == 0 or tokens[place - 1] not in SOURCE_WORDS

    def has_figures(self, claim: Claim) -> bool:
        """Whether a claim has figures that the conversation does not have: without support they are made up."""
        conversation = SourceContents.of_texts(turn.text for turn in self.case.turns)
        return any(kind in FIGURE_KINDS for kind, _ in conversation.unknown(plain(claim.answer_quote)))

    def names_listed_item(self, claim: Claim) -> bool:
        """Whether a claim names one of the items. A name alone may be harmless; a claim about it is not."""
        said = Tokens.of(claim.answer_quote)
        return claim.kind != "no_claim" and any(said.holds(item.text) for item in self.items)

    def holds_unsupported_claim(self, places: Sequence[range], claims: Sequence[Claim]) -> bool:
        """Whether a claim without support lies within these places of the answer."""
        return any(
            place.start <= quoted.start and quoted.stop <= place.stop
            for claim in claims
            if claim.kind != "no_claim" and self.support_of(claim) == "unsupported"
            for quoted in self.places(claim.answer_quote)
            for place in places
        )

    def unquoted(self, claims: Sequence[Claim]) -> Iterator[str]:
        """Problems: the figures and the sentences of the answer that no claim quotes."""
        quoted = {place for claim in claims for found in self.places(claim.answer_quote) for place in found}
        start = 0
        for number, sentence in enumerate(self._sentences, 1):
            here = range(start, start + len(words(sentence)))
            start = here.stop
            seen = sum(place in quoted for place in here)
            if any(place not in quoted and self._is_figure(place) for place in here):
                yield f"no claim quotes a figure of sentence {number} of the answer"
            elif len(here) >= SHORTEST_CHECKED and seen < len(here) * QUOTED_SHARE:
                yield f"no claim quotes sentence {number} of the answer"


def _any_has_figure(quotes: Sequence[str]) -> bool:
    return any(numbers.figures(plain(quote)) for quote in quotes)


def report_problems(report: Report, checker: QuoteChecker, thresholds: Thresholds) -> list[str]:
    """Why a report cannot be believed. The texts repeat nothing that the report or the answer says.

    To fail an answer, a report needs to prove one fault. To pass it, the report must have looked at all of it.
    """
    found = [*_part_problems(report, checker), *_claim_problems(report, checker), *_item_problems(report, checker)]
    if not found and not failure_reasons(report, checker, thresholds):
        found += [*checker.unquoted(report.claims), *_rating_problems(report)]
    return found


def _part_problems(report: Report, checker: QuoteChecker) -> Iterator[str]:
    for number, part in enumerate(report.parts):
        if part.status != "given":
            continue
        places = checker.places(part.answer_quote)
        if not places:
            yield f"parts.{number}.answer_quote is not in the answer, word for word"
        elif not any(checker.overlaps(claim, places) for claim in report.claims):
            yield f"parts.{number}: no claim quotes what gives it"


def _claim_problems(report: Report, checker: QuoteChecker) -> Iterator[str]:
    for number, claim in enumerate(report.claims):
        place = f"claims.{number}"
        if not checker.places(claim.answer_quote):
            yield f"{place}.answer_quote is not in the answer, word for word"
        if claim.kind != "no_claim" and claim.status in QUOTE_NEEDED and not claim.evidence_quotes:
            yield f"{place} is {claim.status} and quotes no evidence"
        elif not all(map(checker.in_evidence, claim.evidence_quotes)):
            yield f"{place}.evidence_quotes: a quote is not in the evidence, word for word, or is one word alone"
        elif claim.status in SUPPORTING and checker.lacks_figures(claim):
            yield f"{place}: its quotes do not hold its figures"


def _item_problems(report: Report, checker: QuoteChecker) -> Iterator[str]:
    settled = [entry.item for entry in report.items]
    if sorted(settled) != list(range(1, len(checker.items) + 1)):
        yield f"items: each of the {len(checker.items)} listed items is to be settled once"
        return
    for entry in report.items:
        place = f"items, number {entry.item}"
        if entry.status in SUPPORTING and not entry.evidence_quotes:
            yield f"{place} is {entry.status} and quotes no evidence"
        elif not all(map(checker.in_evidence, entry.evidence_quotes)):
            yield f"{place}: a quote is not in the evidence, word for word, or is one word alone"
        elif entry.status == "harmless" and checker.items[entry.item - 1].kind in FIGURE_KINDS:
            yield f"{place}: a figure or a date is never harmless"


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
    for part in report.parts:
        if part.status != "given" or not (places := checker.places(part.answer_quote)):
            yield FailureReason("missing part", f"{part.status}: {part.part}")
        elif checker.holds_unsupported_claim(places, report.claims) or not any(
            checker.overlaps(claim, places) for claim in report.claims if checker.support_of(claim) == "supported"
        ):
            yield FailureReason("missing part", f"given without support: {part.part}")


def _claim_failures(report: Report, checker: QuoteChecker) -> Iterator[FailureReason]:
    for claim in report.claims:
        status = checker.support_of(claim)
        if claim.kind == "no_claim" and claim.status in SUPPORTING and not checker.lacks_figures(claim):
            continue
        crucial = claim.crucial or claim.kind in FACT_KINDS
        if status == "contradicted":
            yield FailureReason("contradiction", claim.answer_quote)
        elif status == "uncertain":
            yield FailureReason("uncertain claim", claim.answer_quote)
        elif status == "unsupported" and (crucial or checker.has_figures(claim) or checker.names_listed_item(claim)):
            yield FailureReason("unsupported claim", claim.answer_quote)


def _item_failures(report: Report, checker: QuoteChecker) -> Iterator[FailureReason]:
    entries = {entry.item: entry for entry in report.items}
    for number, item in enumerate(checker.items, 1):
        entry = entries.get(number)
        backed = entry is not None and checker.all_in_evidence(entry.evidence_quotes)
        status = entry.status if entry is not None else "uncertain"
        harmless = status == "harmless" and item.kind not in FIGURE_KINDS
        if not harmless and not (status in SUPPORTING and backed):
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
