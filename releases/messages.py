"""The messages of a row: their shape, the numbering of calls, and what their texts must not hold.

Rows of an instance mostly repeat the messages of the row before. Those were checked there, and are not checked again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stepdown.builder.common.shapes import message_problems, tool_problems
from stepdown.builder.records import Message
from stepdown.releases.problems import FieldProblem
from stepdown.releases.texts import Watch, texts_of


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is known after a message: calls so far, and the pool models that were named."""

    calls: int
    names: frozenset[str]


class Prefixes:
    """Checks the messages of one row after the other; those that the row before had are not checked again."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._messages: list[Message] = []
        self._seen: list[_Seen] = []
        self._tools: Any = None

    def check(self, messages: list[Message], tools: list[dict[str, Any]] | None) -> Iterator[FieldProblem]:
        """What is wrong with the row's messages and tools, but for what the row before had already."""
        if not messages:
            yield "messages", "must not be empty"
        same = 0
        for old, new in zip(self._messages, messages, strict=False):
            if old != new:
                break
            same += 1
        del self._seen[same:]
        for index in range(same, len(messages)):
            message = messages[index]
            before = self._seen[-1] if self._seen else _Seen(0, frozenset())
            found, calls = message_problems(message, before.calls)
            for name, problem in found:
                yield f"messages.{index}{name}", problem
            names = before.names
            texts = texts_of(message)
            for problem in self._watch.in_message(texts):
                yield f"messages.{index}", problem
            if message.get("role") == "assistant":
                names |= self._watch.names_in(texts.joined)
            elif isinstance(message.get("name"), str):
                names |= self._watch.names_in(message["name"])
            for name in sorted(names - before.names - self._watch.allowed_names):
                yield f"messages.{index}", f"names a model of the pool: {name}"
            self._seen.append(_Seen(before.calls + calls, names))
        self._messages = messages
        if tools is not None and tools != self._tools:
            yield from tool_problems(tools)
            for problem in self._watch.in_message(texts_of(tools)):
                yield "tools", problem
        self._tools = tools

    @property
    def names(self) -> frozenset[str]:
        """Names of pool models in the row that was looked at last."""
        return self._seen[-1].names if self._seen else frozenset()
