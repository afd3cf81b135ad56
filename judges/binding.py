"""Whether quotes of the evidence bind a claim of the answer: are they about it, and do they hold its figures?

That a quote is real says little: a judge that is careless, or was talked round, quotes any sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from stepdown.judges.arithmetic import is_reckoned
from stepdown.judges.content import content_of
from stepdown.judges.guards import FIGURE_KINDS, SourceContents
from stepdown.judges.text import plain

SHARED = 1 / 4
"""The share of a claim's content stems that its quotes must have. Of the sentences of answers that people call good, 95
of 100 share so much with one sentence of their evidence; with a sentence drawn from it at random, 23."""
MOST_WORDS = 200
"""Words that all quotes of one claim may have together."""
_FEW = 2
"""Stems of a claim that is little but figures: `It comes back in 2031.` is bound by what the figure follows from."""


class Quoted(NamedTuple):
    """A quote, and the stems of the sentences around it, which say what its pronouns stand for."""

    text: str
    around: frozenset[str]


def binding_problem(
    claim: str, quotes: Sequence[Quoted], *, derived: bool, is_foreign: bool, settled: frozenset[str]
) -> str | None:
    """Why quotes do not support a claim, told by place and not by content; None where they do.

    `derived`: code repeats the arithmetic by which the claim's figures follow from those of the quotes. `is_foreign`:
    the answer is in another language than the evidence, so they share figures and names only. `settled`: figures of the
    claim that are listed items, in lower case; they are settled as such.
    """
    if sum(len(quote.text.split()) for quote in quotes) > MOST_WORDS:
        return f"quotes more than {MOST_WORDS} words: quote what supports the claim and no more"
    about = content_of(claim)
    figures = figures_of(claim) - settled
    held = _held(claim, about, quotes, is_foreign)
    shared = len(about & frozenset().union(*(_content(quote.text) for quote in quotes))) + len(figures & held)
    is_little_else = bool(figures_of(claim)) and len(about) <= _FEW
    if not (is_foreign or is_little_else or shared >= ceil((len(about) + len(figures)) * SHARED)):
        return "no quote speaks of what the claim says: they have too few words in common"
    wanting = figures - held
    if derived:
        wanting = frozenset(
            figure for figure in wanting if not is_reckoned(figure, [quote.text for quote in quotes], claim)
        )
    return "its quotes do not hold its figures together with what the claim says of them" if wanting else None


def _held(claim: str, about: frozenset[str], quotes: Sequence[Quoted], is_foreign: bool) -> frozenset[str]:
    """The claim's figures that a quote holds whose place has something else in common with the claim."""
    figures = figures_of(claim)
    return frozenset().union(
        *(
            figures - lacking_figures(claim, quote.text)
            for quote in quotes
            if is_foreign or len(about) <= _FEW or not about.isdisjoint(quote.around)
        )
    )


@lru_cache(maxsize=4096)
def figures_of(text: str) -> frozenset[str]:
    """The numbers and dates of a text, in lower case."""
    return _figures(text, SourceContents.of_texts(()))


@lru_cache(maxsize=4096)
def lacking_figures(claim: str, quote: str) -> frozenset[str]:
    """The claim's numbers and dates that a quote does not hold, however it writes them.

    >>> sorted(lacking_figures("48,000,000 crowns in 2004", "It cost 48 million crowns."))
    ['2004']
    """
    return _figures(claim, _contents(quote))


def _figures(text: str, sources: SourceContents) -> frozenset[str]:
    # What a percentage is of is a question to the judge: its quote may say it in other words.
    unknown = sources.unknown(plain(text), with_bases=False)
    return frozenset(found.casefold() for kind, found in unknown if kind in FIGURE_KINDS)


@lru_cache(maxsize=4096)
def _content(quote: str) -> frozenset[str]:
    return content_of(quote)


@lru_cache(maxsize=4096)
def _contents(quote: str) -> SourceContents:
    return SourceContents.of_texts([quote])
