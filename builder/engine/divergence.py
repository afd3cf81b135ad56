"""What a diverged replay shows: where the live text first differs from the recorded one."""

from __future__ import annotations

from stepdown.builder.common.text import printable
from stepdown.builder.digests import exact_json, masked
from stepdown.builder.records import Message, Prefix

SHOWN = 60
"""Characters of each text; a third of them come before the first difference."""


def first_difference(recorded: Prefix, live: Prefix) -> str:
    """The two texts where the prefixes first differ under the mask, cut short and printable."""
    for number in range(max(len(recorded.messages), len(live.messages))):
        before, now = _message(recorded, number), _message(live, number)
        if before is None or now is None:
            return f"recorded {_whole(before)}, now {_whole(now)}"
        if before != now:
            return _around(*_texts(before, now))
    return _around(exact_json(recorded.tools), exact_json(live.tools))


def _message(prefix: Prefix, number: int) -> Message | None:
    """A message as digests see it; None beyond the last."""
    if number >= len(prefix.messages):
        return None
    message = prefix.messages[number]
    masked_message: Message = message if prefix.mask is None else masked(message, prefix.mask)
    return masked_message


def _texts(before: Message, now: Message) -> tuple[str, str]:
    """What two messages say, where that is what differs; else their JSON."""
    old, new = before.get("content"), now.get("content")
    if isinstance(old, str) and isinstance(new, str) and old != new:
        return old, new
    return exact_json(before), exact_json(now)


def _around(old: str, new: str) -> str:
    at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    start = max(0, at - SHOWN // 3)
    return f"recorded {_cut(old, start)}, now {_cut(new, start)}"


def _cut(text: str, start: int) -> str:
    end = start + SHOWN
    return f"'{'…' if start else ''}{printable(text[start:end])}{'…' if end < len(text) else ''}'"


def _whole(message: Message | None) -> str:
    if message is None:
        return "no message"
    content = message.get("content")
    return _cut(content if isinstance(content, str) and content else exact_json(message), 0)
