"""An answer of a chat API as one message, whether it came whole or in chunks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stepdown.builder.models.usage import reported
from stepdown.builder.records import Usage


@dataclass(slots=True)
class Collected:
    """What is read of an answer as it passes: its usage, and its message as one."""

    hide_usage: bool = False
    """Whether the client did not ask for the usage of a stream: its chunk is left out."""
    usage: Any = None
    content: list[str] = field(default_factory=list)
    calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    finish: str | None = None

    @property
    def tokens(self) -> Usage:
        found = reported(self.usage) if self.usage is not None else reported({})
        return Usage(found.prompt or 0, found.cache_read, found.cache_write, found.completion or 0)

    @property
    def message(self) -> dict[str, Any]:
        """The assistant's message."""
        made: dict[str, Any] = {"role": "assistant", "content": "".join(self.content) or None}
        if self.calls:
            made["tool_calls"] = [self.calls[place] for place in sorted(self.calls)]
        return made

    def whole(self, data: Mapping[str, Any]) -> None:
        """Read an answer that was not streamed."""
        self.usage = data.get("usage")
        choices = data.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else {}
        message = first.get("message") if isinstance(first, dict) else None
        if isinstance(message, dict):
            self.finish = first.get("finish_reason")
            self.content = [message["content"]] if isinstance(message.get("content"), str) else []
            self.calls = dict(enumerate(message.get("tool_calls") or ()))

    def chunk(self, data: Any) -> bool:
        """Read one chunk of a stream; whether the client is to have it."""
        if not isinstance(data, dict):
            return True
        if data.get("usage"):
            self.usage = data["usage"]
        choices = data.get("choices")
        if not isinstance(choices, list) or not choices:
            return not (self.hide_usage and data.get("usage"))
        for choice in choices[:1]:
            if isinstance(choice, dict):
                self.finish = choice.get("finish_reason") or self.finish
                self._delta(choice.get("delta"))
        return True

    def _delta(self, delta: Any) -> None:
        if not isinstance(delta, dict):
            return
        if isinstance(delta.get("content"), str):
            self.content.append(delta["content"])
        for part in delta.get("tool_calls") or ():
            if not isinstance(part, dict):
                continue
            call = self.calls.setdefault(
                int(part.get("index") or 0), {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
            )
            call["id"] = part.get("id") or call["id"]
            function = part.get("function") or {}
            call["function"]["name"] += function.get("name") or ""
            call["function"]["arguments"] += function.get("arguments") or ""
