"""A case as its page shows it: turns, tools and answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from stepdown.audit.cases import ReviewCase
from stepdown.builder.pages.turns import (
    MessageView,
    NumberedTexts,
    TextView,
    ToolView,
    texts_of,
    tool_of,
    turn_of,
    within_budget,
)

OPEN_AT_END, SHORT_PREFIX = 4, 8
"""How many of the last turns are open. In a prefix of at most `SHORT_PREFIX` turns, all are."""
MOST_MARKED = 50
"""In how many turns matches are marked. In later turns they are only counted."""


@dataclass(frozen=True, slots=True)
class LowerAnswerView:
    """What a candidate one tier lower answered, and why its trial did not count."""

    number: int
    turn: MessageView | None
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True)
class Outline:
    """All that the page of a case shows."""

    turns: tuple[MessageView, ...]
    tools: tuple[ToolView, ...]
    locked: MessageView
    lower: tuple[LowerAnswerView, ...]
    texts: tuple[TextView, ...]
    """Every text, by number."""


def outline(case: ReviewCase, pattern: re.Pattern[str] | None = None) -> Outline:
    """The outline of a case. Turns with a match of `pattern` are open. Texts have the same numbers for any search."""
    texts = NumberedTexts()
    names: dict[str, str] = {}
    turns = [turn_of(number, message, texts, names) for number, message in enumerate(case.messages, 1)]
    turns = _folded(within_budget(turns), pattern)
    tools = tuple(tool_of(tool, texts) for tool in case.tools)
    locked = turn_of(0, case.response, texts, {})
    lower = tuple(
        LowerAnswerView(
            answer.number,
            turn_of(0, answer.response, texts, {}) if answer.response else None,
            answer.verdict.value,
            answer.reason,
        )
        for answer in case.lower
    )
    return Outline(tuple(turns), tools, locked, lower, tuple(texts.made))


def _folded(turns: Sequence[MessageView], pattern: re.Pattern[str] | None) -> list[MessageView]:
    """The turns. Older ones are folded, except for the task and turns with marked matches."""
    task = next((turn.number for turn in turns if turn.role == "user"), 0)
    found: list[MessageView] = []
    marked = 0
    for turn in turns:
        hits = sum(1 for text in texts_of(turn) for _ in pattern.finditer(text.text)) if pattern else 0
        recent = len(turns) <= SHORT_PREFIX or turn.number > len(turns) - OPEN_AT_END
        is_marked = hits > 0 and marked < MOST_MARKED
        marked += is_marked
        is_open = recent or turn.number == task or is_marked
        found.append(replace(turn, hits=hits, is_marked=is_marked, is_open=is_open))
    return found
