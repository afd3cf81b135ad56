"""A model's own reasoning behind its earlier steps, which some APIs want back with the model's tool calls."""

from __future__ import annotations

from collections.abc import Iterable

from stepdown.builder.records import Prefix, Step


def own_reasoning(model: str, prefix: Prefix, steps: Iterable[Step]) -> dict[int, str]:
    """The reasoning of the steps that `model` made itself, by the place of their messages in the prefix.

    It goes to that model only. A prefix and a row hold none, since nothing there tells who made a step.
    """
    found: dict[int, str] = {}
    for step in steps:
        thought = step.response.extra.get("reasoning")
        place = len(step.prefix.messages)
        if step.model != model or not isinstance(thought, str) or not thought or place >= len(prefix.messages):
            continue
        if prefix.messages[place]["role"] == "assistant" and prefix.grew_from(step.prefix):
            found[place] = thought
    return found
