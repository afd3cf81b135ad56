"""The texts of a page, read within a bound: what does not fit any more has an address of its own."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from urllib.parse import urlencode

from stepdown.builder.pages.turns import (
    MessageView,
    NumberedTexts,
    TextView,
    ToolView,
    limited,
    texts_of,
    tool_of,
    turn_of,
)
from stepdown.builder.pages.windows import LEAST, SHORT
from stepdown.builder.records import Response, assistant_message
from stepdown.builder.run.ledger.browsing import Browsing

MOST_READ = 4 * 1024 * 1024
"""Characters that one page reads at most; one text more is begun, never two."""
MOST_SHOWN = 240_000
"""Characters that one page shows at most, beside the least of every text."""


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A message or an answer as a page shows it."""

    address: str
    """The query by which all of it is had."""
    turn: MessageView | None
    """None where the page has read enough: it is there, at its address."""
    ended: str = ""
    """How an answer ended, where it did not end by itself."""
    reasoning: TextView | None = None
    """The model's own, where its API showed any."""


class PageReader:
    """Reads the texts of one page, in the order in which they are asked for."""

    def __init__(self, browsing: Browsing, most_read: int = MOST_READ, most_shown: int = MOST_SHOWN) -> None:
        self._browsing = browsing
        self._to_read, self._to_show = most_read, most_shown
        self.characters = 0
        """How much was read."""

    def answer(self, trial: int, step: int) -> ShownTurn | None:
        """What was answered at a step of a trial's own; None where it is not kept."""
        address = TextSource(trial=trial, step=step).address
        if self._is_full:
            return ShownTurn(address, None)
        found = self._browsing.response(trial, step)
        if found is None:
            return None
        response, size = found
        self._count(size)
        texts = NumberedTexts()
        turn, reasoning = answer_turn(response, texts)
        ended = "" if response.stop.value == "end" else response.stop.value
        malformed = "a tool call that could not be read" if response.malformed else ""
        return ShownTurn(address, self._bounded(turn), ", ".join(filter(None, (ended, malformed))), reasoning)

    def message(self, text: int, number: int, names: dict[str, str]) -> ShownTurn:
        """A message of a prefix. `names` has the names of the calls so far, by id, and is given those of this one."""
        address = TextSource(message=text).address
        if self._is_full:
            return ShownTurn(address, None)
        found = self._browsing.message(text)
        if found is None:
            return ShownTurn(address, None)
        message, size = found
        self._count(size)
        return ShownTurn(address, self._bounded(turn_of(number, message, NumberedTexts(), names)))

    def grading(self, trial: int) -> TextView | None:
        """What a trial's verdict rests on, laid out; None where there is no more than the reason, or no room."""
        text = "" if self._is_full else self._browsing.grading(trial)
        self._count(len(text))
        return replace(NumberedTexts().add(text, mono=True), limit=LEAST * 4) if text else None

    @property
    def _is_full(self) -> bool:
        return self._to_read <= 0

    def _count(self, size: int) -> None:
        self._to_read -= size
        self.characters += size

    def _bounded(self, turn: MessageView) -> MessageView:
        limit = max(LEAST, min(SHORT, self._to_show))
        self._to_show -= sum(min(len(text.text), limit) for text in texts_of(turn))
        return limited(turn, limit) if limit < SHORT else turn


def answer_turn(response: Response, texts: NumberedTexts) -> tuple[MessageView, TextView | None]:
    """An answer, and the reasoning behind it where its API showed any."""
    turn = turn_of(0, assistant_message(response), texts, {})
    thought = response.reasoning.text
    return turn, replace(texts.add(thought, mono=False), limit=LEAST) if thought else None


def tool_views(browsing: Browsing, tools: int | None) -> tuple[ToolView, ...]:
    """Tool definitions as a page shows them."""
    texts = NumberedTexts()
    return tuple(tool_of(tool, texts) for tool in browsing.tools(tools)) if tools is not None else ()


@dataclass(frozen=True, slots=True)
class TextSource:
    """Where texts stand: a message, an answer (a trial and its step), a grading (a trial), or tools."""

    message: int | None = None
    trial: int | None = None
    step: int | None = None
    grading: int | None = None
    tools: int | None = None

    @property
    def address(self) -> str:
        """Its query."""
        return urlencode({name: value for name, value in asdict(self).items() if value is not None})


def texts_at(browsing: Browsing, source: TextSource) -> list[TextView]:
    """The numbered texts of a source, as its page has them; none where there is no such thing."""
    texts = NumberedTexts()
    if source.message is not None:
        found = browsing.message(source.message)
        if found is not None:
            turn_of(1, found[0], texts, {})
    elif source.grading is not None:
        if text := browsing.grading(source.grading):
            texts.add(text, mono=True)
    elif source.tools is not None:
        for tool in browsing.tools(source.tools):
            tool_of(tool, texts)
    elif source.trial is not None and source.step is not None:
        answered = browsing.response(source.trial, source.step)
        if answered is not None:
            answer_turn(answered[0], texts)
    return texts.made
