"""A second opinion that anybody can repeat: how much of a sentence no passage has.

It raises items and decides nothing: what separates good answers from bad ones well on some conversations does so less
well on others, so no threshold of it would transfer (judges/README.md has figures).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from stepdown.judges.case import JudgeCase
from stepdown.judges.content import content_stems, is_content, stem
from stepdown.judges.text import sentences, words

RAISED_FROM = 0.75
"""A sentence becomes an item from this share on."""
FEWEST_STEMS = 4
"""Stems that a sentence must have to become an item: a short one is new by one word."""


@dataclass(frozen=True, slots=True)
class KnownWords:
    """The stems of the passages, and their pairs of stems that follow each other."""

    stems: frozenset[str]
    pairs: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, texts: Iterable[str]) -> KnownWords:
        found = [_in_order(words(text)) for text in texts]
        return cls(
            frozenset(one for listed in found for one in listed),
            frozenset(pair for listed in found for pair in pairwise(listed)),
        )

    def novelty(self, sentence: str) -> float:
        """The share of a sentence's content stems and of their pairs that no passage has: 0 to 1.

        >>> known = KnownWords.of(["The mill was built of red bricks."])
        >>> known.novelty("The mill is built of bricks."), known.novelty("Monks bake bread.")
        (0.2, 1.0)
        """
        listed = _in_order(words(sentence))
        pairs = list(pairwise(listed))
        new = sum(one not in self.stems for one in listed) + sum(pair not in self.pairs for pair in pairs)
        return new / (len(listed) + len(pairs)) if listed else 0.0

    def is_raised(self, sentence: str) -> bool:
        """Whether a sentence is so new that a judge must settle it."""
        return self.novelty(sentence) >= RAISED_FROM and len(content_stems(words(sentence))) >= FEWEST_STEMS


def _in_order(tokens: Sequence[str]) -> list[str]:
    return [stem(token) for token in tokens if is_content(token)]


def mean_novelty(case: JudgeCase) -> float:
    """The novelty of an answer's sentences, each weighed by its words: 0 to 1."""
    known = KnownWords.of(f"{passage.title}\n{passage.text}" for passage in case.evidence)
    weighed = [(known.novelty(sentence), len(sentence.split())) for sentence in sentences(case.answer)]
    total = sum(weight for _, weight in weighed)
    return sum(novelty * weight for novelty, weight in weighed) / total if total else 0.0
