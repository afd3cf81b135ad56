"""Finds a judge's quotes in the evidence, and says what is wrong with one that supports nothing."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import islice

from stepdown.judges.case import EvidencePassage, JudgeCase
from stepdown.judges.content import NEGATIONS, content_stems, has_negation
from stepdown.judges.text import Tokens, fragments, sentence_parts, visible, words

LONGEST_QUOTE = 60
"""Words of a quote. Whoever quotes a whole passage has not said where in it the support is."""
_BEFORE = 2
"""Sentences before a quote that may say what its pronouns stand for."""
_MOST_STARTS = 100
"""Occurrences of a quote's first part that are looked at."""
_BEHIND = 2
"""A quote may not begin so few words behind a negation of its sentence."""


class QuoteFault(StrEnum):
    """Why a quote supports nothing. The text is told to the judge."""

    ABSENT = "is not in the evidence, word for word, or is one word alone"
    LONG = f"is longer than {LONGEST_QUOTE} words: quote what supports it and no more"
    EMPTY = "has no word that says anything"
    GAP = "leaves out a negation or the end of a sentence: quote each sentence by itself, with its negation"
    CUT = "begins behind a negation: quote that too"


@dataclass(frozen=True)
class PassageTokens:
    """The tokens of one passage, each with the sentence that it stands in."""

    text: Tokens
    sentence_of: tuple[int, ...]
    heads: Mapping[int, frozenset[str]]
    """Of each row of a table, the content stems of the table's head."""

    @classmethod
    def of(cls, passage: EvidencePassage) -> PassageTokens:
        tokens: list[str] = []
        sentence_of: list[int] = []
        heads: dict[int, frozenset[str]] = {}
        head: frozenset[str] | None = None
        for number, sentence in enumerate(sentence_parts(visible(f"{passage.title}\n{passage.text}"))):
            said = words(sentence)
            tokens += said
            sentence_of += [number] * len(said)
            if not sentence.lstrip().startswith("|"):
                head = None
            elif head is None:
                head = content_stems(said)
            else:
                heads[number] = head
        return cls(Tokens(tuple(tokens)), tuple(sentence_of), heads)

    def around(self, start: int) -> frozenset[str]:
        """The content stems of the sentence that a token stands in, of those around it, and of its table's head."""
        here = self.sentence_of[start]
        first = bisect_left(self.sentence_of, here - _BEFORE)
        near = content_stems(self.text.tokens[first : bisect_right(self.sentence_of, here + 1)])
        return near | self.heads.get(here, frozenset())

    def fault(self, parts: Sequence[Sequence[str]]) -> QuoteFault | None:
        """What is wrong with a quote of these parts (`judges.text.fragments`); None where one place has it whole."""
        found = QuoteFault.ABSENT
        for start in islice(self.text.starts_of(parts[0]), _MOST_STARTS):
            fault = self._fault_at(start, parts)
            if fault is None:
                return None
            found = fault if found is QuoteFault.ABSENT else found
        return found

    def _fault_at(self, start: int, parts: Sequence[Sequence[str]]) -> QuoteFault | None:
        end = start + len(parts[0])
        for part in parts[1:]:
            follows = self.text.next_start_of(part, end)
            if follows is None:
                return QuoteFault.ABSENT
            if follows > end and not self._may_leave_out(end, follows):
                return QuoteFault.GAP
            end = follows + len(part)
        return QuoteFault.CUT if self._is_behind_negation(start) else None

    def _may_leave_out(self, start: int, stop: int) -> bool:
        is_one_sentence = self.sentence_of[start - 1] == self.sentence_of[stop]
        return is_one_sentence and not has_negation(self.text.tokens[start:stop])

    def _is_behind_negation(self, start: int) -> bool:
        """Whether a negation stands just before. One that opens the sentence is an answer: `No, it is open.`"""
        first = max(0, start - _BEHIND)
        return any(
            self.text.tokens[place] in NEGATIONS
            for place in range(first, start)
            if place and self.sentence_of[place] == self.sentence_of[start] == self.sentence_of[place - 1]
        )


class Passages:
    """The evidence of a case. Each quote is looked for once."""

    def __init__(self, case: JudgeCase) -> None:
        self._case = case
        self._faults: dict[str, QuoteFault | None] = {}
        self._around: dict[str, frozenset[str]] = {}

    @cached_property
    def _passages(self) -> list[PassageTokens]:
        return [PassageTokens.of(passage) for passage in self._case.evidence]

    @cached_property
    def _whole(self) -> frozenset[tuple[str, ...]]:
        """The words of each whole passage: a passage of one word may be quoted."""
        return frozenset(tuple(words(passage.text)) for passage in self._case.evidence)

    def fault(self, quote: str) -> QuoteFault | None:
        """What is wrong with a quote of the evidence; None where nothing is."""
        if quote not in self._faults:
            self._faults[quote] = self._found_fault(quote)
        return self._faults[quote]

    def around(self, quote: str) -> frozenset[str]:
        """The content stems of the sentences around a quote's first place; none where it is in no passage."""
        if quote not in self._around:
            parts = fragments(quote)
            starts = ((one, one.text.next_start_of(parts[0], 0)) for one in self._passages if parts)
            self._around[quote] = next((one.around(at) for one, at in starts if at is not None), frozenset())
        return self._around[quote]

    def _found_fault(self, quote: str) -> QuoteFault | None:
        parts = fragments(quote)
        said = [word for part in parts for word in part]
        has_figure = any(map(str.isdigit, "".join(said)))
        if not parts or not (len(said) > 1 or has_figure or tuple(said) in self._whole):
            return QuoteFault.ABSENT
        faults = set(self._faults_by_passage(parts))
        if None not in faults:
            return next((fault for fault in (QuoteFault.GAP, QuoteFault.CUT) if fault in faults), QuoteFault.ABSENT)
        if len(said) > LONGEST_QUOTE:
            return QuoteFault.LONG
        is_empty = not has_figure and not content_stems(said) and tuple(said) not in self._whole
        return QuoteFault.EMPTY if is_empty else None

    def _faults_by_passage(self, parts: Sequence[Sequence[str]]) -> Iterator[QuoteFault | None]:
        for passage in self._passages:
            yield (fault := passage.fault(parts))
            if fault is None:
                return
