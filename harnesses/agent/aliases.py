"""Paths and addresses of an episode, spelt the same in every episode.

A program that runs on this machine sees a workspace with a name of its own. A model that was shown it would write it
into its answers, and these could be replayed nowhere else. So what comes in is spelt as if the workspace were
`/workspace`, and what goes out is spelt back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stepdown.builder.records import Message, Response, Tool, ToolCall
from stepdown.harnesses.agent.request import ChatRequest


class Aliases:
    """What is spelt otherwise: real texts and their aliases.

    >>> aliases = Aliases({"/tmp/x1/workspace": "/workspace"})
    >>> aliases.inwards("cat /tmp/x1/workspace/a.txt")
    'cat /workspace/a.txt'
    >>> aliases.outwards("cat /workspace/a.txt my/workspace /workspaces")
    'cat /tmp/x1/workspace/a.txt my/workspace /workspaces'
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._in = {real: alias for real, alias in names.items() if real != alias}
        self._out = {alias: real for real, alias in self._in.items()}
        self._real, self._alias = _any_of(self._in), _any_of(self._out)

    def inwards(self, text: str) -> str:
        """A text of the program as models and rows are to see it."""
        return self._real.sub(lambda found: self._in[found[0]], text) if self._real else text

    def outwards(self, text: str) -> str:
        """A text of a model as the program is to see it."""
        return self._alias.sub(lambda found: self._out[found[0]], text) if self._alias else text

    def request(self, asked: ChatRequest) -> ChatRequest:
        """A request, spelt inwards."""
        if not self._in:
            return asked
        messages: tuple[Message, ...] = tuple(self._deep(message) for message in asked.messages)
        tools: tuple[Tool, ...] = tuple(self._deep(tool) for tool in asked.tools)
        return replace(asked, messages=messages, tools=tools)

    def response(self, response: Response) -> Response:
        """A response, spelt outwards."""
        calls = tuple(ToolCall(call.name, self.outwards(call.arguments)) for call in response.tool_calls)
        return replace(response, content=self.outwards(response.content), tool_calls=calls)

    def _deep(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.inwards(value)
        if isinstance(value, dict):
            return {key: self._deep(item) for key, item in value.items()}
        return [self._deep(item) for item in value] if isinstance(value, list) else value


def _any_of(names: Mapping[str, str]) -> re.Pattern[str] | None:
    """Any of the texts, the longest first, where it is not a part of a longer word or path.

    In JSON an escaped line break may stand before it.
    """
    listed = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?:(?<![\w/.-])|(?<=\\[nrt]))(?:{listed})(?![\w-])") if listed else None
