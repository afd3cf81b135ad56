"""Plays BFCL episodes with given responses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from stepdown.builder.records import Instance, Prefix, Response, ToolCall, Verdict
from stepdown.harnesses.base import Episode
from stepdown.harnesses.bfcl import BFCL

Player = Callable[[int, Prefix], Response]


def one(harness: BFCL, name: str) -> Instance:
    """The instance with this id."""
    category = name.rsplit("_", 1)[0]
    return next(iter(harness.instances({"categories": {category: [name]}})))


def call(name: str, /, **arguments: Any) -> Response:
    """A response that makes one call."""
    return Response(tool_calls=(ToolCall(name, json.dumps(arguments)),))


def played(harness: BFCL, instance: Instance, player: Player) -> tuple[Verdict, str]:
    """The verdict, with its reason, of a whole episode in which `player` makes every response."""
    with harness.open(instance) as episode:
        finish(episode, player)
        ruling = episode.verdict()
        return ruling.verdict, ruling.reason


def finish(episode: Episode, player: Player, limit: int = 400) -> int:
    """Play an episode on until it halts; the number of responses made."""
    for step in range(1, limit + 1):
        if not episode.advance(player(step, episode.prefix())):
            return step
    raise AssertionError("the episode does not halt")


def reference(harness: BFCL, instance: Instance) -> Player:
    """The reference pseudo-model as a player."""

    def answer(step: int, prefix: Prefix) -> Response:
        response = harness.answer("reference", instance, prefix)
        assert response is not None
        return response

    return answer


def scripted(responses: Iterable[Response]) -> Player:
    """Makes the given responses in turn, then only closing messages."""
    left = iter(responses)
    return lambda step, prefix: next(left, Response("Done."))


def observations(prefix: Prefix) -> list[str]:
    """The contents of all tool messages."""
    return [message["content"] for message in prefix.messages if message["role"] == "tool"]
