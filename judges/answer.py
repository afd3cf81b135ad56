"""An answer as a report is held against it: its sentences, where it is quoted, and what of it must be quoted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise

from stepdown.judges.content import content_stems
from stepdown.judges.smalltalk import COURTEOUS, is_table_rule, says_nothing
from stepdown.judges.text import Tokens, sentences, unnumbered, words

QUOTED_SHARE = 1 / 3
TELLING_SHARE = 1 / 2
"""The shares of a sentence's words, and of those that tell of the subject, that claims must quote: the judge has looked
at it then."""
SOURCE_WORDS = frozenset({"passage", "passages", "source", "sources", "document", "documents", "evidence"})
"""After one of these words a number only says which source is meant."""


class AnswerTokens:
    """The tokens of an answer, by sentence."""

    def __init__(self, text: str, question: str) -> None:
        """`question` is what the user said last: an introduction may repeat it."""
        self.sentences = sentences(text)
        self._question = question
        self._places: dict[str, tuple[range, ...]] = {}

    @cached_property
    def _tokens(self) -> Tokens:
        """The answer's tokens without list markers: the same tokens that its sentences have."""
        return Tokens(tuple(token for sentence in self._by_sentence for token in sentence))

    @cached_property
    def _by_sentence(self) -> list[list[str]]:
        return [words(sentence) for sentence in self.sentences]

    @cached_property
    def ranges(self) -> list[range]:
        """The tokens of each sentence."""
        ends = accumulate((len(tokens) for tokens in self._by_sentence), initial=0)
        return [range(start, stop) for start, stop in pairwise(ends)]

    @cached_property
    def _points(self) -> set[int]:
        """The tokens that only number the points of a list."""
        shortened = zip(self.ranges, unnumbered(self.sentences), strict=True)
        return {place for here, sentence in shortened for place in here[len(words(sentence)) :]}

    @cached_property
    def silent(self) -> list[bool]:
        """Of each sentence, whether it says nothing about the subject."""
        heads = [is_table_rule(following) for following in [*self.sentences[1:], ""]]
        return [
            says_nothing(sentence, self._question, is_head)
            for sentence, is_head in zip(self.sentences, heads, strict=True)
        ]

    def places(self, quote: str) -> tuple[range, ...]:
        """Where the answer has a quote; each of its parts, where an ellipsis cuts it."""
        if quote not in self._places:
            found = self._tokens.places(quote) or self._tokens.places("\n".join(sentences(quote)))
            self._places[quote] = tuple(found)
        return self._places[quote]

    def holds_only_silence(self, places: Iterable[range]) -> bool:
        """Whether every sentence that these places touch says nothing about the subject."""
        touched = self.covered(places)
        return all(
            silent or not any(touched[here.start : here.stop])
            for here, silent in zip(self.ranges, self.silent, strict=True)
        )

    def covered(self, places: Iterable[range]) -> list[bool]:
        """Of each token, whether it lies in one of these places."""
        steps = [0] * (len(self._tokens.tokens) + 1)
        for place in places:
            steps[place.start] += 1
            steps[place.stop] -= 1
        return [depth > 0 for depth in accumulate(steps)]

    def unquoted(self, quoted: Sequence[bool]) -> Iterator[str]:
        """Problems: the figures and the sentences that claims, which quote these tokens, have not quoted."""
        for number, (here, silent) in enumerate(zip(self.ranges, self.silent, strict=True), 1):
            if any(not quoted[place] and self._is_figure(place) for place in here):
                yield f"no claim quotes a figure of sentence {number} of the answer"
            elif not silent and not self._is_looked_at(here, quoted):
                yield f"no claim quotes sentence {number} of the answer, or enough of it"

    def _is_looked_at(self, here: range, quoted: Sequence[bool]) -> bool:
        """Whether enough words are quoted, and enough of those that say something of the subject."""
        telling = [place for place in here if content_stems(self._tokens.tokens[place : place + 1]) - COURTEOUS]
        shares = ((here, QUOTED_SHARE), (telling, TELLING_SHARE))
        return all(sum(quoted[place] for place in places) >= len(places) * share for places, share in shares)

    def _is_figure(self, place: int) -> bool:
        """Whether a token is a figure, and not the number of a source as in `passages 1 and 2`."""
        tokens = self._tokens.tokens
        if not tokens[place][0].isdigit() or place in self._points:
            return False
        while place > 1 and (tokens[place - 1] == "and" or tokens[place - 1].isdigit()):
            place -= 1
        return place == 0 or tokens[place - 1] not in SOURCE_WORDS
