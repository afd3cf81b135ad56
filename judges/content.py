"""What the words of a text are about: stems of its content words, the language it is in, and its negations.

Two texts are compared by stems, so that `was rebuilt` and `rebuilding` share one. Stems are made by cutting endings
that several languages have in common: no stemmer of one language, since evidence is in any.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import regex

from stepdown.judges.text import word_list, words
from stepdown.judges.vocabulary import words_by_language

_STOP_WORDS = words_by_language("stop_words")
STOP_WORDS: frozenset[str] = frozenset().union(*_STOP_WORDS.values())
"""Words that say nothing of what a text is about, in every language that is known."""
NEGATIONS: frozenset[str] = frozenset().union(*words_by_language("negations").values())
"""Words that turn what stands beside them into its opposite. `n't` is read as the token `t` after a word in `n`."""
COURTESIES: frozenset[str] = frozenset().union(*words_by_language("courtesies").values())
"""Words of greetings, offers of help, introductions and endings."""

_ENDINGS = word_list(
    "ations ation ements ement ments ment nesses ness ities ity ings ing edly ions ion ers est ies ied ed es er en em "
    "ly al s e n"
)
_LONGEST_STEM = 6
_SHORTEST_STEM = 3
_SCRIPT = regex.compile(
    r"(?P<latin>\p{Latin})|(?P<cyrillic>\p{Cyrillic})|(?P<greek>\p{Greek})|(?P<arabic>\p{Arabic})|"
    r"(?P<hebrew>\p{Hebrew})|(?P<cjk>[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}])|(?P<devanagari>\p{Devanagari})"
)
_FIRST_SIGN = 0x3040
"""From here on, a letter may be a word."""
_LEAST_KNOWN = 3
"""Stop words of one language that a text must have before it is taken to be in it."""


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem that a word is compared by.

    >>> stem("rebuilding") == stem("rebuilt"), stem("Türme") == stem("Turm"), stem("libraries") == stem("library")
    (True, True, True)
    """
    folded = "".join(each for each in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(each))
    for ending in _ENDINGS:
        if folded.endswith(ending) and len(folded) - len(ending) >= _SHORTEST_STEM:
            folded = folded[: -len(ending)]
            break
    if len(folded) > _SHORTEST_STEM and (folded[-1] == folded[-2] or folded[-1] in "iey"):
        folded = folded[:-1]
    return folded[:_LONGEST_STEM]


def content_stems(tokens: Iterable[str]) -> frozenset[str]:
    """The stems of the content words among some tokens (`judges.text.words`); figures are none."""
    return frozenset(stem(token) for token in tokens if is_content(token))


def is_content(token: str) -> bool:
    """A letter alone is a word only in scripts that write words by one sign."""
    return (len(token) > 1 or ord(token) >= _FIRST_SIGN) and token not in STOP_WORDS and not token[0].isdigit()


def content_of(text: str) -> frozenset[str]:
    """The stems of a text's content words.

    >>> sorted(content_of("The library opens at nine, not at 10."))
    ['librar', 'open']
    """
    return content_stems(words(text))


def has_negation(tokens: Sequence[str]) -> bool:
    """Whether there is a negation among some tokens.

    >>> has_negation(words("It doesn't open")), has_negation(words("It opens"))
    (True, False)
    """
    return any(
        word in NEGATIONS or (word == "t" and place > 0 and tokens[place - 1].endswith("n"))
        for place, word in enumerate(tokens)
    )


def language_of(text: str) -> str:
    """The language or script of a text, as far as its commonest words tell it; "" where they do not.

    >>> language_of("Das Haus ist nicht alt, und es steht an der Straße."), language_of("Yes.")
    ('de', '')
    """
    scripts = Counter(found.lastgroup for found in _SCRIPT.finditer(text[:20_000]))
    if not scripts:
        return ""
    script = scripts.most_common(1)[0][0] or ""
    if script != "latin":
        return script
    tokens = Counter(words(text[:20_000]))
    known = Counter(
        {
            language: sum(count for word, count in tokens.items() if word in listed)
            for language, listed in _STOP_WORDS.items()
        }
    )
    (best, most), (_, second) = known.most_common(2)
    return best if most >= _LEAST_KNOWN and most > 1.2 * second else ""
