"""The rule: a judge's observations in, a verdict out. Pure, and the only place where it is decided what passes.

`problems` says why a report cannot be believed; such a report decides nothing, for or against the answer, and another
one is asked for. `decided` reads one that can. Doubt fails; the judge's own word for the verdict counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from stepdown.builder.config.protocol import Thresholds
from stepdown.judges.case import Case
from stepdown.judges.guards import FIGURES, Item, Sources, numbers
from stepdown.judges.report import RATINGS, STYLE, Claim, Rating, Report
from stepdown.judges.text import Tokens, plain, sentences, words

RULES = 2
"""Raised whenever one of the rules here changes: runs say by which they were judged."""
MOST_ITEMS = 40
"""An answer with more figures and names that its sources do not have needs no judge."""
SHORTEST = 4
"""Words from which on a sentence without figures must be looked at."""
COVERED = 1 / 3
"""The share of a sentence's words that claims must quote for it to have been looked at."""
SOURCES = frozenset({"passage", "passages", "source", "sources", "document", "documents", "evidence"})
"""What a number after it only names."""
FACTS: frozenset[str] = frozenset({"number", "date", "amount", "ratio", "vote"})
"""Kinds of claim that are crucial whatever the judge says."""
SUPPORT: frozenset[str] = frozenset({"supported", "derived"})
BEST = 5
RESTING: frozenset[str] = SUPPORT | {"contradicted"}
"""What a judge must quote evidence for."""


class Reason(NamedTuple):
    """Why an answer failed: a word for the rule, and what it found."""

    rule: str
    found: str


@dataclass(frozen=True)
class Grounds:
    """A case as its judge's quotes are checked against it."""

    case: Case
    items: tuple[Item, ...]

    @cached_property
    def _sentences(self) -> list[str]:
        return sentences(self.case.answer)

    @cached_property
    def _answer(self) -> Tokens:
        """Without list markers, so that its tokens are those of its sentences."""
        return Tokens.of("\n".join(self._sentences))

    @cached_property
    def _evidence(self) -> list[Tokens]:
        return [Tokens.of(f"{piece.title}\n{piece.text}") for piece in self.case.evidence]

    @cached_property
    def _whole(self) -> set[tuple[str, ...]]:
        """What the pieces of evidence say, each as a whole."""
        return {tuple(words(piece.text)) for piece in self.case.evidence}

    def places(self, quote: str) -> list[range]:
        """Where the answer's tokens hold a quote."""
        return self._answer.places(quote) or self._answer.places("\n".join(sentences(quote)))

    def in_evidence(self, quote: str) -> bool:
        """Whether one piece of the evidence holds a quote, and it says anything: two words, a figure, or all of the
        piece.
        """
        said = words(quote)
        telling = len(said) > 1 or any(map(str.isdigit, "".join(said))) or tuple(said) in self._whole
        return telling and any(piece.holds(quote) for piece in self._evidence)

    def rests_on(self, quotes: Sequence[str]) -> bool:
        """Whether there are quotes, all of them in the evidence."""
        return bool(quotes) and all(map(self.in_evidence, quotes))

    def status(self, claim: Claim) -> str:
        """A claim's status: `derived` is support too, and none is where its quotes are not in the evidence."""
        if claim.status not in SUPPORT:
            return claim.status
        return "supported" if self.rests_on(claim.evidence_quotes) else "unsupported"

    def overlap(self, claim: Claim, places: Sequence[range]) -> bool:
        """Whether a claim quotes any of these places of the answer."""
        own = self.places(claim.answer_quote)
        return any(a.start < b.stop and b.start < a.stop for a in own for b in places)

    def lacks_figures(self, claim: Claim) -> bool:
        """Whether a claim has figures that its own quotes and the conversation do not have, and that are no item.

        Of a derived claim no more is asked than something to reckon with: a figure, or several things to count.
        """
        if claim.status == "derived":
            return len(claim.evidence_quotes) < 2 and not _have_a_figure(claim.evidence_quotes)
        listed = {(item.kind, item.text.casefold()) for item in self.items}
        own = Sources.of_texts([*claim.evidence_quotes, *(turn.text for turn in self.case.turns)])
        lacking = own.unknown(plain(claim.answer_quote))
        return any(kind in FIGURES and (kind, text.casefold()) not in listed for kind, text in lacking)

    def _is_figure(self, place: int) -> bool:
        """Whether a token of the answer is a figure, and not the number of a source: `passages 1 and 2`."""
        items = self._answer.items
        if not items[place][0].isdigit():
            return False
        while place > 1 and (items[place - 1] == "and" or items[place - 1].isdigit()):
            place -= 1
        return place == 0 or items[place - 1] not in SOURCES

    def has_figures(self, claim: Claim) -> bool:
        """Whether a claim has figures that are not the conversation's: whoever has no support for it made them up."""
        own = Sources.of_texts(turn.text for turn in self.case.turns)
        return any(kind in FIGURES for kind, _ in own.unknown(plain(claim.answer_quote)))

    def has_items(self, claim: Claim) -> bool:
        """Whether a claim names something that no source has: harmless may be a name, not a claim about it."""
        said = Tokens.of(claim.answer_quote)
        return claim.kind != "no_claim" and any(said.holds(item.text) for item in self.items)

    def rests_on_nothing(self, places: Sequence[range], claims: Sequence[Claim]) -> bool:
        """Whether what stands in these places of the answer holds a claim that has no support."""
        return any(
            place.start <= own.start and own.stop <= place.stop
            for claim in claims
            if claim.kind != "no_claim" and self.status(claim) == "unsupported"
            for own in self.places(claim.answer_quote)
            for place in places
        )

    def unseen(self, claims: Sequence[Claim]) -> Iterator[str]:
        """What of the answer no claim quotes: figures, and sentences."""
        quoted = {place for claim in claims for found in self.places(claim.answer_quote) for place in found}
        start = 0
        for number, sentence in enumerate(self._sentences, 1):
            here = range(start, start + len(words(sentence)))
            start = here.stop
            seen = sum(place in quoted for place in here)
            if any(place not in quoted and self._is_figure(place) for place in here):
                yield f"no claim quotes a figure of sentence {number} of the answer"
            elif len(here) >= SHORTEST and seen < len(here) * COVERED:
                yield f"no claim quotes sentence {number} of the answer"


def _have_a_figure(quotes: Sequence[str]) -> bool:
    return any(numbers.figures(plain(quote)) for quote in quotes)


def problems(report: Report, grounds: Grounds, thresholds: Thresholds) -> list[str]:
    """Why a report cannot be believed. Nothing in it repeats what the report or the answer says.

    All of the answer must have been looked at before it may pass; one fault is enough to fail it.
    """
    found = [*_wrong_parts(report, grounds), *_wrong_claims(report, grounds), *_wrong_items(report, grounds)]
    if not found and not decided(report, grounds, thresholds):
        found += [*grounds.unseen(report.claims), *_wrong_ratings(report)]
    return found


def _wrong_parts(report: Report, grounds: Grounds) -> Iterator[str]:
    for number, part in enumerate(report.parts):
        if part.status != "given":
            continue
        places = grounds.places(part.answer_quote)
        if not places:
            yield f"parts.{number}.answer_quote is not in the answer, word for word"
        elif not any(grounds.overlap(claim, places) for claim in report.claims):
            yield f"parts.{number}: no claim quotes what gives it"


def _wrong_claims(report: Report, grounds: Grounds) -> Iterator[str]:
    for number, claim in enumerate(report.claims):
        place = f"claims.{number}"
        if not grounds.places(claim.answer_quote):
            yield f"{place}.answer_quote is not in the answer, word for word"
        if claim.kind != "no_claim" and claim.status in RESTING and not claim.evidence_quotes:
            yield f"{place} is {claim.status} and quotes no evidence"
        elif not all(map(grounds.in_evidence, claim.evidence_quotes)):
            yield f"{place}.evidence_quotes: a quote is not in the evidence, word for word, or is one word alone"
        elif claim.status in SUPPORT and grounds.lacks_figures(claim):
            yield f"{place}: its quotes do not hold its figures"


def _wrong_items(report: Report, grounds: Grounds) -> Iterator[str]:
    settled = [entry.item for entry in report.items]
    if sorted(settled) != list(range(1, len(grounds.items) + 1)):
        yield f"items: each of the {len(grounds.items)} listed items is to be settled once"
        return
    for entry in report.items:
        place = f"items, number {entry.item}"
        if entry.status in SUPPORT and not entry.evidence_quotes:
            yield f"{place} is {entry.status} and quotes no evidence"
        elif not all(map(grounds.in_evidence, entry.evidence_quotes)):
            yield f"{place}: a quote is not in the evidence, word for word, or is one word alone"
        elif entry.status == "harmless" and grounds.items[entry.item - 1].kind in FIGURES:
            yield f"{place}: a figure or a date is never harmless"


def _wrong_ratings(report: Report) -> Iterator[str]:
    for name in RATINGS:
        rating: Rating = getattr(report, name)
        if rating.rating == BEST and not STYLE.issuperset(rating.grounds):
            yield f"{name} is {BEST}, and its grounds name what keeps it from that"


def decided(report: Report, grounds: Grounds, thresholds: Thresholds) -> list[Reason]:
    """Why the answer fails, in the order of the rules; nothing where it passes.

    Support that cannot be found in the evidence is none, also in a report that nobody asked about.
    """
    return [
        *_unresolved(report, grounds),
        *_unfaithful(report, grounds),
        *_unsettled(report, grounds),
        *_low(report, thresholds),
    ]


def _unresolved(report: Report, grounds: Grounds) -> Iterator[Reason]:
    """The primary criterion."""
    if report.resolution.status != "completely":
        yield Reason("unresolved", f"{report.resolution.status}: {report.resolution.reason}")
    if report.stance != "answers":
        yield Reason("declined", "it does not say that it knows" if report.stance == "uncertain" else "it declines")
    for part in report.parts:
        if part.status != "given" or not (places := grounds.places(part.answer_quote)):
            yield Reason("missing part", f"{part.status}: {part.part}")
        elif grounds.rests_on_nothing(places, report.claims) or not any(
            grounds.overlap(claim, places) for claim in report.claims if grounds.status(claim) == "supported"
        ):
            yield Reason("missing part", f"given without support: {part.part}")


def _unfaithful(report: Report, grounds: Grounds) -> Iterator[Reason]:
    for claim in report.claims:
        status = grounds.status(claim)
        if claim.kind == "no_claim" and claim.status in SUPPORT and not grounds.lacks_figures(claim):
            continue
        relied_on = claim.crucial or claim.kind in FACTS
        if status == "contradicted":
            yield Reason("contradiction", claim.answer_quote)
        elif status == "uncertain":
            yield Reason("uncertain claim", claim.answer_quote)
        elif status == "unsupported" and (relied_on or grounds.has_figures(claim) or grounds.has_items(claim)):
            yield Reason("unsupported claim", claim.answer_quote)


def _unsettled(report: Report, grounds: Grounds) -> Iterator[Reason]:
    entries = {entry.item: entry for entry in report.items}
    for number, item in enumerate(grounds.items, 1):
        entry = entries.get(number)
        rests = entry is not None and grounds.rests_on(entry.evidence_quotes)
        status = entry.status if entry is not None else "uncertain"
        harmless = status == "harmless" and item.kind not in FIGURES
        if not harmless and not (status in SUPPORT and rests):
            yield Reason(f"unsupported {item.kind}", item.text)


def _low(report: Report, thresholds: Thresholds) -> Iterator[Reason]:
    """Ratings below their thresholds, for what the answer says; how it says it lowers no verdict. A contradiction fails
    at any rating, and a low rating that names no ground is not for style."""
    for name in RATINGS:
        rating: Rating = getattr(report, name)
        least: int = getattr(thresholds, name)
        for_style = STYLE.issuperset(rating.grounds) and not {"none"}.issuperset(rating.grounds)
        if "contradicted" in rating.grounds:
            yield Reason("contradiction", f"{name}: {rating.reason}")
        elif rating.rating < least and not for_style:
            yield Reason(f"low {name}", f"{rating.rating} of {BEST}: {rating.reason}")
