"""The whole prefix of a step: all messages that a router sees before it, and the tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepdown.builder.pages.turns import ToolView
from stepdown.builder.run.ledger.browsing import KeptStep
from stepdown.builder.view.reading import PageReader, ShownTurn, tool_views
from stepdown.builder.view.shown_run import ShownRun

MESSAGES = 200
"""Messages of a page; the last ones come first."""


@dataclass(frozen=True, slots=True)
class WholePrefix:
    """The messages of a prefix, those of one page."""

    turns: tuple[ShownTurn, ...]
    before: int
    """Messages before them, on another page."""
    after: int
    """Messages after them."""
    tools: tuple[ToolView, ...]
    tools_address: str


def whole_prefix(run: ShownRun, trial: int, step: int, until: int | None, reader: PageReader) -> WholePrefix | None:
    """The prefix of a step that a trial's record holds; None where it holds none.

    `until` leaves out what comes after so many messages.
    """
    steps = run.ledger.browsing.steps(trial, 1, step)
    if not steps or steps[-1].number != step:
        return None
    ids = message_ids(steps)
    last = len(ids) if until is None else max(0, min(until, len(ids)))
    first = max(0, last - MESSAGES)
    names: dict[str, str] = {}
    # The last ones are what the step answers: they are read before there is no more room.
    numbered = [(number, ids[number - 1]) for number in range(last, first, -1)]
    turns = [reader.message(text, number, names) for number, text in numbered][::-1]
    tools = steps[-1].tools
    return WholePrefix(
        tuple(turns), first, len(ids) - last, tool_views(run.ledger.browsing, tools), f"tools={tools}" if tools else ""
    )


def message_ids(steps: Sequence[KeptStep]) -> list[int]:
    """The ids of the messages before the last of these steps, which begin with the first one of their trajectory.

    >>> first = KeptStep(trial=1, number=1, model="m", continues=0, added=(7, 8), tools=None)
    >>> message_ids([first, KeptStep(1, 2, "m", continues=2, added=(9,), tools=None)])
    [7, 8, 9]
    """
    ids: list[int] = []
    for step in steps:
        ids[step.continues :] = step.added
    return ids
