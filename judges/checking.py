"""Holds what a judge reports against the case: are its quotes there, do they bind, and does its arithmetic come out?

What is said here of a problem is told to the judge. It names places and repeats nothing that answer or report say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from stepdown.judges.answer import AnswerTokens
from stepdown.judges.arithmetic import is_reckoned
from stepdown.judges.binding import Quoted, binding_problem, lacking_figures
from stepdown.judges.case import JudgeCase
from stepdown.judges.content import content_of
from stepdown.judges.guards import FIGURE_KINDS, UnsourcedItem, is_foreign_answer, user_texts
from stepdown.judges.passages import Passages, QuoteFault
from stepdown.judges.report import Claim, ItemSettlement
from stepdown.judges.smalltalk import addresses, says_nothing
from stepdown.judges.text import sentences

SUPPORTING: frozenset[str] = frozenset({"supported", "derived"})
"""Statuses of a claim that is backed by the evidence."""
SETTLED: frozenset[str] = frozenset({"supported", "derived", "given", "harmless"})
"""Statuses with which an item fails nothing, where they hold."""
QUOTE_NEEDED: frozenset[str] = SUPPORTING | {"contradicted"}
"""Statuses for which a judge must quote the evidence."""
_NOT_RECKONED = (
    ": no quote holds it, and it is no sum, difference, ratio, conversion or count of what the quotes hold together"
)
_REPEATED = 3 / 4
"""The share of a claim's content stems that the user must have said, where it only takes up what the user said."""


@dataclass(frozen=True)
class QuoteChecker:
    """Checks a judge's quotes and settlements against the case. Each quote is looked for once."""

    case: JudgeCase
    items: tuple[UnsourcedItem, ...]

    @cached_property
    def answer(self) -> AnswerTokens:
        return AnswerTokens(self.case.answer, self._question)

    @cached_property
    def passages(self) -> Passages:
        return Passages(self.case)

    @property
    def _question(self) -> str:
        return self.case.turns[-1].text

    @cached_property
    def _user(self) -> str:
        return "\n".join(user_texts(self.case))

    @cached_property
    def _is_foreign(self) -> bool:
        return is_foreign_answer(self.case)

    @cached_property
    def _listed(self) -> frozenset[str]:
        return frozenset(item.text.casefold() for item in self.items if item.kind in FIGURE_KINDS)

    # The answer

    def covered(self, claims: Iterable[Claim]) -> list[int]:
        """How many of the answer's tokens before each place, and before its end, some claims quote."""
        total, counts = 0, [0]
        for is_covered in self.answer.covered(_places(self.answer, claims)):
            total += is_covered
            counts.append(total)
        return counts

    def touches(self, quote: str, covered: Sequence[int]) -> bool:
        """Whether a quote of the answer has a token that is covered."""
        return any(covered[place.stop] > covered[place.start] for place in self.answer.places(quote))

    def unquoted(self, claims: Sequence[Claim]) -> Iterator[str]:
        """Problems: the figures and the sentences of the answer that no claim quotes."""
        return self.answer.unquoted(self.answer.covered(_places(self.answer, claims)))

    # Claims

    def claim_problem(self, claim: Claim) -> str | None:
        """Why what is said of a claim cannot be believed, to stand behind its place; None where it can be."""
        if any(self.passages.fault(quote) is QuoteFault.ABSENT for quote in claim.evidence_quotes):
            return f".evidence_quotes: a quote {QuoteFault.ABSENT}"
        if claim.kind == "no_claim":
            is_silent = self.answer.holds_only_silence(self.answer.places(claim.answer_quote))
            return None if is_silent else " is no_claim, and a sentence of it has a figure, a name or a predicate"
        if claim.status in QUOTE_NEEDED and not claim.evidence_quotes:
            return f" is {claim.status} and quotes no evidence"
        if claim.status == "given" and not self._only_repeats(claim.answer_quote):
            return " is given, and it is not what the user said of themselves"
        return self._support_problem(claim) if claim.status in SUPPORTING else None

    def _support_problem(self, claim: Claim) -> str | None:
        for quote in claim.evidence_quotes:
            if fault := self.passages.fault(quote):
                return f".evidence_quotes: a quote {fault}"
        for piece in sentences(claim.answer_quote):
            if says_nothing(piece, self._question):
                continue
            problem = binding_problem(
                piece,
                [Quoted(quote, self.passages.around(quote)) for quote in claim.evidence_quotes],
                derived=claim.status == "derived",
                is_foreign=self._is_foreign,
                settled=self._listed,
            )
            if problem:
                return f": {problem}"
        return None

    def support_of(self, claim: Claim) -> str:
        """A claim's status as its quotes bear it out.

        `derived` counts as supported. A claim whose quotes do not support it is unsupported, and so is one that only
        repeats the user where the user did not say it.
        """
        if claim.kind == "no_claim" and claim.status not in {"contradicted", "uncertain"}:
            return "unsupported"
        if claim.status in SUPPORTING:
            is_quoted = claim.evidence_quotes and self._support_problem(claim) is None
            return "supported" if is_quoted else "unsupported"
        return "unsupported" if claim.status == "given" and not self._only_repeats(claim.answer_quote) else claim.status

    def adds_nothing(self, claim: Claim) -> bool:
        """Whether nobody asked for a claim and it adds no fact: only then may it be without support."""
        return claim.kind == "no_claim" and self.answer.holds_only_silence(self.answer.places(claim.answer_quote))

    def _only_repeats(self, quote: str) -> bool:
        """Whether a claim speaks to the user, and takes up what the user has said: `For your 17 guests`."""
        about = content_of(quote)
        repeated = len(about & content_of(self._user)) >= len(about) * _REPEATED
        return addresses(quote) and repeated and not lacking_figures(quote, self._user)

    # Items

    def settlement_problem(self, entry: ItemSettlement) -> str | None:
        """Why an item is not settled as a judge says, to stand behind its place; None where it is, or fails."""
        item = self.items[entry.item - 1]
        if any(self.passages.fault(quote) is QuoteFault.ABSENT for quote in entry.evidence_quotes):
            return f": a quote {QuoteFault.ABSENT}"
        if entry.status == "given":
            return None if item.said_by_user else ": the user has not said it"
        if entry.status == "harmless":
            return None if self._is_harmless(item) else ": its sentence says something, so it is not harmless"
        return self._quoted_settlement_problem(item, entry) if entry.status in SUPPORTING else None

    def _is_harmless(self, item: UnsourcedItem) -> bool:
        return item.kind == "name" and says_nothing(item.sentence.replace(item.text, " "), self._question)

    def _quoted_settlement_problem(self, item: UnsourcedItem, entry: ItemSettlement) -> str | None:
        quotes = entry.evidence_quotes
        if not quotes:
            return f" is {entry.status} and quotes no evidence"
        for quote in quotes:
            if fault := self.passages.fault(quote):
                return f": a quote {fault}"
        if item.kind in {"number", "date", "unit"}:
            is_settled = self._is_held(item, quotes) or is_reckoned(item.text, quotes, item.sentence)
            return None if is_settled else _NOT_RECKONED
        about = content_of(item.sentence)
        shares = any(not about.isdisjoint(self.passages.around(quote)) for quote in quotes)
        return None if shares or self._is_foreign or not about else ": no quote speaks of what its sentence says"

    @staticmethod
    def _is_held(item: UnsourcedItem, quotes: Sequence[str]) -> bool:
        return item.kind != "unit" and any(
            item.text.casefold() not in lacking_figures(item.sentence, quote) for quote in quotes
        )


def _places(answer: AnswerTokens, claims: Iterable[Claim]) -> Iterator[range]:
    for claim in claims:
        yield from answer.places(claim.answer_quote)
