"""Text as judge and guards compare it: without invisible characters, case, punctuation and spacing."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import regex

_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_TOKEN = regex.compile(rf"[{_CJK}]|\d++(?:[.,]\d++)*+|[^\W\d_{_CJK}]++|[$€£¥₹%°]")
_THOUSANDS = regex.compile(r"\d{1,3}(?:,\d{3})++(?:\.\d++)?+")
_CITATION = regex.compile(r"\[\d{1,3}(?:, ?\d{1,3})*+\]")
_ELLIPSIS = regex.compile(r"[\[(]?\.{3,}[\])]?")
_SENTENCE_END = regex.compile(r"(?<=[.!?])[\"')\]]?\s+(?=[^a-z\s])|(?<=[。！？])")
_ABBREVIATION = regex.compile(
    r"(?:^|[\s(])(?:[A-Z]|Dr|Mr|Mrs|Ms|Prof|Rev|Gen|Capt|Lt|Col|St|Jr|Sr|No|Nos|vs|etc|approx|ca|cf|vol|pp|"
    r"Fig|Inc|Ltd|Co|Corp|e\.g|i\.e|z\.B|d\.h|bzw|Nr|Hr|Fr|Mme|M)\.$"
)
"""What ends in a full stop and ends no sentence."""
_NUMBERED_END = regex.compile(r"(?:^|(?<=\s))(\d{1,2})[.)]$")
_LIST_MARKER = regex.compile(r"(?m)^[ \t]*+(?:[-*+•>#]++[ \t]++)?+(?:\(?\d{1,3}[.)][ \t]++|[-*+•>#]++[ \t]++)?+")
_LINE_ENDS = str.maketrans({"\r": "\n", "\u2028": "\n", "\u2029": "\n", "\x85": "\n", "\x0b": "\n", "\x0c": "\n"})
_IGNORABLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | frozenset(
    map(chr, [*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])
)
"""Fillers, joiners and variation selectors: shown as nothing, though Unicode counts them among letters and marks."""
_ON_DIGIT = regex.compile(r"(?<=\d)[\u0300-\u036f\u1ab0-\u1aff\u20d0-\u20ff]+")
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63", "-"),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        "\u2044": "/",
    }
)


def word_list(words: str) -> tuple[str, ...]:
    """A list of words that stands in code as one text.

    >>> word_list("one two")
    ('one', 'two')
    """
    return tuple(words.split())


def visible(text: str) -> str:
    """The text without characters that nobody sees: controls, direction marks, zero widths, fillers; line ends stay.

    >>> visible("a" + chr(0x202E) + "b" + chr(0) + "c" + chr(0xE0041))
    'abc'
    """
    text = text.replace("\r\n", "\n").translate(_LINE_ENDS)
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        each for each in text if each in "\n\t" or (unicodedata.category(each)[0] != "C" and each not in _IGNORABLE)
    )


def plain(text: str) -> str:
    """The text with one form for what can be written in several: compatibility forms, dashes, quotes and spaces.

    >>> plain("“½ – ﬁne”")
    '"1/2 - fine"'
    """
    # A fraction after a digit would run into it: 3½ is 3 and a half.
    text = regex.sub(r"(?<=\d)(?=[\u00bc-\u00be\u2150-\u215e])", " ", visible(text))
    text = _ON_DIGIT.sub("", text)  # a stroke or a box around a digit ends no number
    return unicodedata.normalize("NFKC", text).translate(_PLAIN)


def words(text: str) -> list[str]:
    """The tokens that two texts are compared by: words, numbers without thousands separators, currency and percent.

    Marks that cite a source, such as `[2]`, are left out.

    >>> words("The “Café” took $1,000.50 (5 %)… [2]")
    ['the', 'café', 'took', '$', '1000.50', '5', '%']
    """
    found: list[str] = _TOKEN.findall(_CITATION.sub(" ", plain(text)).casefold())
    return [token.replace(",", "") if _THOUSANDS.fullmatch(token) else token for token in found]


def fragments(quote: str) -> list[list[str]]:
    """A quote's tokens, cut into parts where the quote has an ellipsis."""
    parts = [words(part) for part in _ELLIPSIS.split(plain(quote))]
    return [part for part in parts if part]


def sentences(text: str) -> list[str]:
    """Sentences and lines, list markers dropped. Together they hold all of the text's other words, in order.

    >>> sentences("1. It cost 5.5 million.  Dr. Who paid! - Twice?\\n* Yes")
    ['It cost 5.5 million.', 'Dr. Who paid!', '- Twice?', 'Yes']
    """
    return [part for part in map(str.strip, sentence_parts(_LIST_MARKER.sub("", visible(text)))) if part]


def unnumbered(found: Sequence[str]) -> list[str]:
    """Sentences without the number of the next point of a list that runs on in one line.

    >>> unnumbered(["It has 1.", "Doors 2.", "Windows 3.", "A roof.", "It cost 7."])
    ['It has', 'Doors', 'Windows', 'A roof.', 'It cost 7.']
    """
    ends = [_NUMBERED_END.search(sentence) for sentence in found]
    values = [int(end[1]) if end else None for end in ends]
    listed = [value for value in values if value is not None]
    points = {value for value, after in pairwise(listed) if after == value + 1}
    points |= {value + 1 for value in points}
    return [
        sentence[: end.start()].rstrip() if end and value in points else sentence
        for sentence, end, value in zip(found, ends, values, strict=True)
    ]


def sentence_parts(text: str) -> Iterator[str]:
    """A text cut where sentences and lines end. Nothing but white space and closing marks is lost between them."""
    begun = ""
    for line in text.split("\n"):
        for part in _SENTENCE_END.split(line):
            begun = f"{begun} {part}" if begun else part
            if not _ABBREVIATION.search(begun, max(0, len(begun) - 12)):
                yield begun
                begun = ""
        if begun:
            yield begun
            begun = ""


@dataclass(frozen=True)
class Tokens:
    """A text's tokens, to find quotes in."""

    tokens: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Tokens:
        return cls(tuple(words(text)))

    @cached_property
    def _joined(self) -> str:
        return f" {' '.join(self.tokens)} "

    @cached_property
    def _starts(self) -> list[int]:
        """Where each token begins in `_joined`."""
        return [1 + end for end in accumulate((len(token) + 1 for token in self.tokens), initial=0)]

    def starts_of(self, part: Sequence[str]) -> Iterator[int]:
        """Where some consecutive tokens begin, every occurrence."""
        wanted = f" {' '.join(part)} "
        place = self._joined.find(wanted)
        while place >= 0:
            yield bisect_right(self._starts, place + 1) - 1
            place = self._joined.find(wanted, place + 1)

    def next_start_of(self, part: Sequence[str], begin: int) -> int | None:
        """Where some consecutive tokens begin next, from a token on; None where they do not come again."""
        if begin >= len(self.tokens):
            return None
        place = self._joined.find(f" {' '.join(part)} ", self._starts[begin] - 1)
        return bisect_right(self._starts, place + 1) - 1 if place >= 0 else None

    def holds(self, quote: str) -> bool:
        """Whether a quote is in the text; where an ellipsis cuts it, its parts in order. An empty quote is in none."""
        parts, end = fragments(quote), 0
        for part in parts:
            start = self.next_start_of(part, end)
            if start is None:
                return False
            end = start + len(part)
        return bool(parts)

    def places(self, quote: str) -> list[range]:
        """The token ranges of every occurrence of each of a quote's parts, in any order; none if one is not there."""
        found: list[range] = []
        for part in fragments(quote):
            here = [range(start, start + len(part)) for start in self.starts_of(part)]
            if not here:
                return []
            found += here
        return found
