"""Names of an answer: capitalised words that its sources do not have."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise

import regex

from stepdown.judges.content import STOP_WORDS
from stepdown.judges.guards.dates import MONTHS
from stepdown.judges.guards.units import is_unit
from stepdown.judges.text import word_list

_WORD = regex.compile(r"[^\W\d_](?:[^\W_]|['&](?=[^\W_]))*+")
_OPENED = regex.compile(r"(?:^|[:;.!?(] ?)[^\w]*+")
"""What stands before a word that may be capitalised only because it opens a sentence."""
_JOINING = frozenset(word_list("of the de la le du des van von der den di da del for"))
_OPENING = frozenset((files(__package__) / "openings.txt").read_text(encoding="utf-8").split())
"""Words that open sentences and are part of no name."""
_CALENDAR = frozenset(word_list(f"{MONTHS} jan feb mar apr jun jul aug sep sept oct nov dec am pm"))
_NO_NAMES = frozenset(word_list("i i'm i'll i've i'd ok q a us usd eur gbp jpy inr cny rmb chf"))


@dataclass(frozen=True, slots=True)
class Name:
    """A name as it is written, and the words that it is made of."""

    text: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The words of the sources, their acronyms, and the initials that their capitalised words may be shortened to."""

    words: tuple[str, ...]
    initials: frozenset[str]
    acronyms: frozenset[str]

    @classmethod
    def of(cls, text: str) -> KnownNames:
        words = [match[0] for match in _WORD.finditer(text)]
        folded = {_folded(word) for word in words} | {
            part for word in words for part in regex.split("['&]", word.casefold())
        }
        acronyms = {word for word in words if _is_acronym(word)}
        return cls(tuple(sorted(folded)), frozenset(_initials(words)), frozenset(acronyms))

    def has(self, name: Name) -> bool:
        """Whether the sources have every word of the name, or its initials, or what it is short for."""
        if all(self._has_word(word) for word in name.words):
            return True
        initials = "".join(word[0] for word in name.words if word[0].isupper())
        # `Space and Sea Agency` is two names here; each of them is one end of SSA.
        return len(initials) > 1 and any(one.startswith(initials) or one.endswith(initials) for one in self.acronyms)

    def _has_word(self, word: str) -> bool:
        folded = _folded(word)
        if folded in _OPENING or any(
            self._begins(form, whole=True) for form in (folded, f"{folded}s", folded.rstrip("s"))
        ):
            return True
        if _is_acronym(word) and word.rstrip("s") in self.initials:
            return True
        # `Canadian` where the sources have `Canada`, `Programs` where they have `program`.
        return len(folded) >= 6 and self._begins(folded[: max(5, len(folded) - 3)], whole=False)

    def _begins(self, text: str, whole: bool) -> bool:
        place = bisect_left(self.words, text)
        if place == len(self.words):
            return False
        return self.words[place] == text if whole else self.words[place].startswith(text)


_HIDDEN = regex.compile(
    r"\b(?:named|called|mr|mrs|ms|dr|prof|sir|king|queen|saint)\.? (?P<first>\p{Ll}[\p{Ll}'-]++)"
    r"(?: (?P<second>\p{Ll}[\p{Ll}'-]++))?+"
)


def lower_case_names(text: str) -> list[Name]:
    """Words in small letters behind a title, or behind `named` and `called`: names that hide.

    >>> [name.text for name in lower_case_names("It is called elbow falls, says dr. brandt.")]
    ['elbow falls', 'brandt']
    """
    found = []
    for match in _HIDDEN.finditer(text):
        words = [word for word in (match["first"], match["second"]) if word]
        kept = [word for word in words if word not in _OPENING and word not in _JOINING]
        if kept and kept[0] == words[0]:
            found.append(Name(" ".join(kept), tuple(kept)))
    return found


def names(text: str, is_german: bool = False) -> list[Name]:
    """The names in a sentence in plain form. Its first word alone is no name, unless it is written like one.

    `is_german`: all nouns are written with a capital, so only acronyms and several capitals in a row make a name.

    >>> [name.text for name in names("However, Ada Lovelace met the Duke of Wellington and NASA in Bath.")]
    ['Ada Lovelace', 'Duke of Wellington', 'NASA', 'Bath']
    """
    if _is_heading(text):
        return []
    openings = {match.end() for match in _OPENED.finditer(text)}
    found = []
    for run in _runs(text):
        kept = _without_opening(run) if run[0].start() in openings else run
        words = [match[0] for match in kept]
        named = [word for word in words if word not in _JOINING and _folded(word) not in _CALENDAR | _NO_NAMES]
        if is_german and not (_has_neighbours(text, kept) or any(map(_is_acronym, named))):
            continue
        if any(len(word) > 1 for word in named):
            found.append(Name(text[kept[0].start() : kept[-1].end()], tuple(named)))
    return found


def _has_neighbours(text: str, run: list[regex.Match[str]]) -> bool:
    """Whether two words with a capital stand side by side, and neither is a unit: `Ole Brandt`, not `Meter Abstand`."""
    return any(
        one[0][0].isupper() and other[0][0].isupper() and text[one.end() : other.start()] == " " and not is_unit(one[0])
        for one, other in pairwise(run)
    )


def _runs(text: str) -> list[list[regex.Match[str]]]:
    """Runs of capitalised words that follow each other, with the small words that join them."""
    runs: list[list[regex.Match[str]]] = []
    current: list[regex.Match[str]] = []
    joining: list[regex.Match[str]] = []
    last_end = -1
    for match in _WORD.finditer(text):
        follows = bool(current) and text[last_end : match.start()] in {" ", "-", ". "}
        if match[0][0].isupper():
            if follows:
                current += [*joining, match]
            else:
                if current:
                    runs.append(current)
                current = [match]
            joining = []
        elif follows and match[0] in _JOINING:
            joining.append(match)
        else:
            if current:
                runs.append(current)
            current, joining = [], []
        last_end = match.end()
    return [*runs, current] if current else runs


def _without_opening(run: list[regex.Match[str]]) -> list[regex.Match[str]]:
    """The run at a sentence's beginning, without a word that is capitalised only because it comes first."""
    first = run[0][0]
    if len(run) == 1:
        return run if _is_acronym(first) or any(letter.isupper() for letter in first[1:]) else []
    if first.casefold() in _OPENING | STOP_WORDS or first.endswith(("ing", "ly", "ed")):
        rest = run[1:]
        while rest and rest[0][0] in _JOINING:
            rest = rest[1:]
        return rest
    return run


def _is_heading(text: str) -> bool:
    """Whether a line is a heading, by its final colon: capitals there do not make a name."""
    stripped = text.strip("*_#: ")
    words = [match[0] for match in _WORD.finditer(stripped)]
    return text.rstrip("*_ ").endswith(":") and len(words) <= 8


def _is_acronym(word: str) -> bool:
    letters = word.rstrip("s")
    return 2 <= len(letters) <= 8 and letters.isupper()


def _initials(words: list[str]) -> set[str]:
    """The initials of every run of two to six capitalised words; small joining words are skipped."""
    found: set[str] = set()
    run = ""
    for word in words:
        if word[0].isupper():
            run = (run + word[0])[-6:]
            found.update(run[start:] for start in range(len(run) - 1))
        elif word not in _JOINING and word != "and":
            run = ""
    return found


def _folded(word: str) -> str:
    folded = word.casefold().removesuffix("'s")
    return folded.rstrip("'")
