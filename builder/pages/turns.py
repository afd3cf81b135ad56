"""Chat messages as pages show them: turns of numbered texts and calls. By its number more of a text is fetched."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stepdown.builder.pages.blocks import Block, Region, blocks, laid_out, regions
from stepdown.builder.pages.windows import LEAST, SHORT, Window, windows
from stepdown.builder.records import Message, exact_json

SHOWN_AT_ONCE = 400_000
"""Characters of turns that a page shows at once, counting folded ones. The last turns come first."""
PREVIEW = 160


@dataclass(frozen=True, slots=True)
class TextView:
    """A text of a page. `mono` says that all of it is monospaced, not only fenced code."""

    number: int
    text: str
    mono: bool
    limit: int = SHORT
    """Characters that the page shows of it at once."""

    def regions(self) -> list[Region]:
        return regions(self.text, self.mono)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a tool call: its JSON value, or the text itself where that has several lines."""

    name: str
    text: TextView


@dataclass(frozen=True, slots=True)
class CallView:
    """A tool call. Where its arguments are not one JSON object with distinct keys, `whole` has them as they came."""

    name: str
    id: str
    arguments: tuple[Argument, ...]
    whole: TextView | None


@dataclass(frozen=True, slots=True)
class MessageView:
    """A message, which the page calls a turn. `answers` names the tool call that a tool's message answers."""

    number: int
    role: str
    answers: str
    preview: str
    size: int
    texts: tuple[TextView, ...]
    calls: tuple[CallView, ...]
    is_open: bool = True
    hits: int = 0
    """How many matches of the search it has."""
    is_marked: bool = False
    """Whether its matches are marked."""

    @property
    def is_empty(self) -> bool:
        return not self.calls and not any(text.text for text in self.texts)


@dataclass(frozen=True, slots=True)
class ToolView:
    name: str
    description: TextView
    parameters: TextView


@dataclass(slots=True)
class NumberedTexts:
    """Gives texts their numbers, in the order in which they are added."""

    made: list[TextView] = field(default_factory=list)

    def add(self, text: str, mono: bool) -> TextView:
        laid = laid_out(text)
        one = TextView(len(self.made), text if laid is None else laid, mono or laid is not None)
        self.made.append(one)
        return one


def turn_of(number: int, message: Message, texts: NumberedTexts, names: dict[str, str]) -> MessageView:
    """A message as a turn. `names` has the names of the calls so far, by id, and is given those of this message."""
    role = str(message.get("role", ""))
    said = tuple(texts.add(text, role == "tool") for text in _contents(message.get("content")))
    calls = tuple(_call(call, texts) for call in _listed(message.get("tool_calls")))
    names.update({call.id: call.name for call in calls})
    answered = str(message.get("tool_call_id") or "")
    answers = " ".join(filter(None, [answered, str(message.get("name") or names.get(answered, ""))]))[:PREVIEW]
    words = [text.text[: 4 * PREVIEW] for text in said] + [f"{call.name}()" for call in calls]
    preview = " ".join(" ".join(words).split())[:PREVIEW]
    every = [*said, *_texts_of(calls)]
    return MessageView(number, role, answers, preview, sum(len(text.text) for text in every), said, calls)


def _contents(content: object) -> Iterator[str]:
    """The texts of a message's content, which is a text or a list of parts. Other parts are given as JSON."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            is_text = isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)
            yield part["text"] if is_text else _json(part)
    elif content is not None:
        yield _json(content)


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, (list, tuple)) else [] if value is None else [value]


def _call(call: object, texts: NumberedTexts) -> CallView:
    """A tool call. One that is malformed is shown whole, without a name."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping):
        return CallView("", "", (), texts.add(_json(call), mono=True))
    given = function.get("arguments", "")
    given = given if isinstance(given, str) else _json(given)
    pairs = _pairs(given)
    name, identity = str(function.get("name", "")), str(call.get("id", ""))
    if pairs is None:
        return CallView(name, identity, (), texts.add(given, mono=True))
    arguments = tuple(Argument(key, texts.add(text, mono=True)) for key, text in pairs)
    return CallView(name, identity, arguments, None)


def _pairs(text: str) -> list[tuple[str, str]] | None:
    """The members of a JSON object; None where the text is no JSON object, or has a key twice.

    >>> _pairs('{"n": 1, "command": "a\\\\nb"}')
    [('n', '1'), ('command', 'a\\nb')]
    """
    try:
        found = json.loads(text, object_pairs_hook=_Members, parse_float=_Literal, parse_int=_Literal)
        if not isinstance(found, _Members) or len({key for key, _ in found}) < len(found):
            return None
        return [(key, value if isinstance(value, str) and "\n" in value else _literal(value)) for key, value in found]
    except (ValueError, RecursionError):
        return None


class _Members(list[tuple[str, Any]]):
    """A JSON object's members in order, with every duplicate."""


class _Literal(str):
    """A number as it was written."""

    __slots__ = ()


def _literal(value: object) -> str:
    if isinstance(value, _Literal):
        return str(value)
    if isinstance(value, _Members):
        return "{" + ", ".join(f"{_json(key)}: {_literal(item)}" for key, item in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def tool_of(tool: Mapping[str, Any], texts: NumberedTexts) -> ToolView:
    function = tool.get("function") or {}
    description = texts.add(str(function.get("description", "")), mono=False)
    return ToolView(
        str(function.get("name", "")), description, texts.add(exact_json(function.get("parameters", {})), mono=True)
    )


def _texts_of(calls: Sequence[CallView]) -> Iterator[TextView]:
    for call in calls:
        yield from (argument.text for argument in call.arguments)
        if call.whole:
            yield call.whole


def texts_of(turn: MessageView) -> list[TextView]:
    """Every text of a turn."""
    return [*turn.texts, *_texts_of(turn.calls)]


def within_budget(turns: Sequence[MessageView]) -> list[MessageView]:
    """The turns. Old ones show less of their texts once the later ones have used up what a page shows at once."""
    left = SHOWN_AT_ONCE
    found = []
    for turn in reversed(turns):
        limit = max(LEAST, min(SHORT, left))
        left -= sum(min(len(text.text), limit) for text in texts_of(turn))
        found.append(limited(turn, limit) if limit < SHORT else turn)
    return found[::-1]


def limited(turn: MessageView, limit: int) -> MessageView:
    """The turn, of whose texts a page shows so many characters at once."""
    calls = tuple(
        replace(
            call,
            arguments=tuple(replace(a, text=replace(a.text, limit=limit)) for a in call.arguments),
            whole=replace(call.whole, limit=limit) if call.whole else None,
        )
        for call in turn.calls
    )
    return replace(turn, texts=tuple(replace(text, limit=limit) for text in turn.texts), calls=calls)


@dataclass(frozen=True, slots=True)
class TextWindow:
    """A window of a text as a page shows it. It has no blocks where it is left out."""

    window: Window
    blocks: tuple[Block, ...]


def text_windows(text: TextView, pattern: re.Pattern[str] | None = None) -> list[TextWindow]:
    """A text's windows, in order."""
    found = text.regions()
    return [
        TextWindow(window, tuple(blocks(text.text, found, window.start, window.end, pattern)) if window.shown else ())
        for window in windows(text.text, text.limit, pattern)
    ]
