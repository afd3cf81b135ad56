"""Which sentences of an answer say nothing about the subject: greetings, offers of help, introductions, headings."""

from __future__ import annotations

import regex

from stepdown.judges.content import COURTESIES, content_of, content_stems
from stepdown.judges.guards import dates, numbers
from stepdown.judges.guards.names import names
from stepdown.judges.text import plain, word_list, words

COURTEOUS = content_stems(COURTESIES)
_ANSWERS = frozenset(word_list("yes no yeah nope ja nein doch oui non si sí sì não sim nee"))
"""One word that may be a whole answer."""
_PREDICATIVE = frozenset(
    word_list(
        "it its they them their he she his her this that these those there es er il elle ello ella is are was were has "
        "had will can may must does did ist sind war hat kann wird est sont était está son era"
    )
)
"""Pronouns that stand for the subject, and verbs that say something of it."""
_FIRST_OR_SECOND = frozenset(
    word_list(
        "i we you me us my our your ich wir du ihr mir uns mich dein deine deinen sie ihre ihren je votre vos j nous "
        "vous yo tú usted"
    )
)
_LONGEST_HEADING = 8
_TABLE_RULE = regex.compile(r"(?=[^-]*+-)[\s|:+=-]++")


def is_table_rule(line: str) -> bool:
    """Whether a line only rules off the head of a table: `|---|---|`."""
    return _TABLE_RULE.fullmatch(line) is not None


def says_nothing(sentence: str, question: str, is_table_head: bool = False) -> bool:
    """Whether a sentence of an answer has no figure, no name, and no predicate about the subject.

    All that it is about must be courtesy, or what the question is about; and it must be a courtesy, a heading, the head
    of a table, or a question.

    >>> says_nothing("I hope this helps!", "How tall is it?"), says_nothing("It is tall.", "How tall is it?")
    (True, False)
    >>> says_nothing("Here is what the passages say about the mill:", "Who owns the mill?")
    True
    """
    text = plain(sentence)
    tokens = words(text)
    if not tokens:
        return True
    if not _ANSWERS.isdisjoint(tokens) or numbers.figures(text) or dates.dates(text) or _has_figure(tokens):
        return False
    about = content_stems(tokens)
    stripped = text.strip().rstrip("*_ ")
    if is_table_head or (stripped.endswith(":") and len(tokens) <= _LONGEST_HEADING):
        return True
    known = content_of(question)
    if names(text) and not content_of(" ".join(name.text for name in names(text))) <= known | COURTEOUS:
        return False
    is_introduction = stripped.endswith((":", "?"))
    if not is_introduction and not _PREDICATIVE.isdisjoint(tokens) and _FIRST_OR_SECOND.isdisjoint(tokens):
        return False  # `It is good.` is a predicate, `I hope this is of help` none
    return about <= known | COURTEOUS and (not about.isdisjoint(COURTEOUS) or is_introduction)


def _has_figure(tokens: list[str]) -> bool:
    return any(token[0].isdigit() for token in tokens)


def addresses(sentence: str) -> bool:
    """Whether a sentence speaks to the user, or of whoever answers."""
    return not _FIRST_OR_SECOND.isdisjoint(words(sentence))
