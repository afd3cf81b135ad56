"""Answers that were kept before the rules of reading changed, read by the rules of today without asking again."""

from __future__ import annotations

from dataclasses import replace

from stepdown.builder.actions import Actions, Raw, parsed
from stepdown.builder.actions.thought import separated
from stepdown.builder.records import Prefix, Response, Stop

READING = 1
"""Counts the changes of how answers are read. Kept with every answer; one that has none is of before the first."""


def reread(actions: Actions, prefix: Prefix, response: Response) -> Response | None:
    """A kept answer of an earlier reading as it is read today; None where it can not be told, or was no answer at all.

    Calls left as text become malformed, and thought leaves the text. A text's action may have stood in the thought.
    """
    if response.stop in (Stop.OVERFLOW, Stop.REFUSED):
        return response
    if not (response.content or response.tool_calls or "reasoning" in response.extra) and response.stop is Stop.END:
        was_generated = response.usage.completion > 0 or response.usage.prompt == 0
        return response if was_generated else None
    thought, answer = separated(response.content)
    if response.tool_calls:
        if not thought:
            return response
        return _apart(response, answer, thought) if actions == "tools" else None
    if actions == "tools":
        if response.malformed:
            return response
    elif not thought or (actions == "json_schema" and prefix.tools and not response.malformed):
        return response
    today = parsed(actions, prefix, Raw(answer))
    apart = _apart(response, today.content, thought)
    return replace(apart, tool_calls=today.tool_calls, malformed=today.malformed)


def _apart(response: Response, answer: str, thought: str) -> Response:
    extra = {**response.extra, "thought": thought} if thought else response.extra
    return replace(response, content=answer, extra=extra)
