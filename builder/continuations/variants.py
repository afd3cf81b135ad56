"""What a model is shown of a prefix: texts replaced by neutral ones, feedback appended, long tool results cut off.

The workload knows nothing of it: its own messages stay as they are, here and in the record of an execution.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import regex

from stepdown.builder.continuations.plan import Replacement
from stepdown.builder.digests import exact_json, masked
from stepdown.builder.errors import Technical
from stepdown.builder.records import Message, Prefix, Reasoning

FILLER = (
    "The following paragraph describes an ordinary day. The morning was mild and the street was quiet. A train "
    "left the station on time and crossed the river by the old bridge. In the library people read the papers, "
    "and somebody returned a book about birds. At noon the shops were open and the market sold bread, apples "
    "and cheese. In the afternoon a light wind came up from the west, and the windows of the school were "
    "closed. The evening was calm, the lamps were lit one after another, and the last bus went back to the "
    "depot."
)
"""What stands in place of a text where a plan gives no neutral one."""
_SECONDS = 1.0
"""Which a pattern may take on one text."""


def neutral_text(length: int, text: str = FILLER) -> str:
    """A text of exactly so many characters: `text` cut off, or repeated with a space between.

    >>> neutral_text(7, "calm"), neutral_text(2, "calm")
    ('calm ca', 'ca')
    """
    times = length // (len(text) + 1) + 1
    return " ".join([text] * times)[:length]


class TooSlow(Exception):
    """A pattern took longer on a text than it may."""


def found_texts(prefix: Prefix, wanted: Replacement, own: str | None) -> list[str]:
    """The distinct texts of a prefix that are to be replaced, in their order; empty where it has none of them.

    `own` is the checkpoint's text, for a replacement that says no other. Raises TooSlow.
    """
    texts = [text for message in prefix.messages for text in _texts(message)]
    if wanted.pattern is None:
        exact = wanted.text or own or ""
        return [exact] if any(exact in text for text in texts) else []
    try:
        found = [
            match[1] if match.re.groups else match[0]
            for text in texts
            for match in regex.finditer(wanted.pattern, text, timeout=_SECONDS)
        ]
    except TimeoutError:
        raise TooSlow from None
    return list(dict.fromkeys(text for text in found if text))


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """How a checkpoint, and whatever grows from it, is shown in one variant."""

    checkpoint: Prefix
    replaced: tuple[tuple[str, str], ...] = ()
    """Texts, and the neutral ones in their place."""
    said: str = ""
    """The message that is appended to the checkpoint; none where it is empty."""
    longest_result: int | None = None
    """Characters of a tool's result."""

    def of(self, prefix: Prefix) -> Prefix:
        """The prefix as the variant has it. Raises Technical where it has not grown from the checkpoint, so that
        there is no place for what was appended.
        """
        shown = [self._message(message) for message in prefix.messages]
        if self.said:
            if not prefix.grew_from(self.checkpoint):
                raise Technical("the workload has changed the messages that the feedback stands after")
            shown.insert(len(self.checkpoint.messages), {"role": "user", "content": self.said})
        return Prefix.start(shown, prefix.tools, prefix.mask)

    def places(self, reasoning: Mapping[int, Reasoning]) -> dict[int, Reasoning]:
        """What belongs to messages by their places, by their places in what is shown."""
        first = len(self.checkpoint.messages)
        return {place + (1 if self.said and place >= first else 0): one for place, one in reasoning.items()}

    def _message(self, message: Message) -> Message:
        if self.replaced:
            message = _changed(message, self._with_neutral)
        content = message.get("content")
        if self.longest_result is None or message["role"] != "tool" or not isinstance(content, str):
            return message
        return {**message, "content": content[: self.longest_result]}

    def _with_neutral(self, text: str) -> str:
        for old, new in self.replaced:
            text = text.replace(old, new)
        return text


def with_neutral_texts(found: Sequence[tuple[str, str | None]]) -> tuple[tuple[str, str], ...]:
    """Found texts, each with the neutral text of its replacement (None: the filler), as pairs of equal length. The
    longest come first: one may hold another.
    """
    neutral = {old: neutral_text(len(old), by or FILLER) for old, by in found}
    return tuple(sorted(neutral.items(), key=lambda pair: (-len(pair[0]), pair[0])))


def _texts(message: Message) -> Iterator[str]:
    """What a message says: its content, and the texts in the arguments of its calls."""
    seen: list[str] = []

    def see(text: str) -> str:
        seen.append(text)
        return text

    _changed(message, see)
    yield from seen


def _changed(message: Message, change: Callable[[str], str]) -> Message:
    """The message with each of its texts changed. Arguments are JSON in a text: they are read, and written anew only
    where something in them has changed.
    """
    changed = dict(message)
    if message.get("content") is not None:
        changed["content"] = masked(message["content"], change)
    if calls := message.get("tool_calls"):
        changed["tool_calls"] = [_changed_call(call, change) for call in calls]
    return changed


def _changed_call(call: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    function = call["function"]
    arguments = json.loads(function["arguments"])
    after = masked(arguments, change)
    if after == arguments:
        return dict(call)
    try:
        return {**call, "function": {**function, "arguments": exact_json(after)}}
    except ValueError:  # 1e999 is JSON, and no number that can be written
        raise Technical("the arguments of a call that holds a replaced text can not be written anew") from None
