"""A model's own reasoning behind its earlier steps, which some APIs want back with the model's tool calls."""

from __future__ import annotations

from collections.abc import Iterable

from stepdown.builder.records import Prefix, Reasoning, Step


def own_reasoning(model: str, prefix: Prefix, steps: Iterable[Step]) -> dict[int, Reasoning]:
    """The reasoning of the steps that `model` made itself, by the place of their messages in the prefix.

    It goes to that model only. A prefix and a row hold none, since nothing there tells who made a step.
    """
    found: dict[int, Reasoning] = {}
    for step in steps:
        if step.model != model or not step.response.extra:
            continue
        own, place = step.response.reasoning, len(step.prefix.messages)
        if own == Reasoning() or place >= len(prefix.messages):
            continue
        if prefix.messages[place]["role"] == "assistant" and prefix.grew_from(step.prefix):
            found[place] = own
    return found
