"""What providers' prompt caches hold of conversations that come call by call, without anybody saying which is which.

A call's messages are digested one by one, each digest standing for all messages so far. So the longest part of a prefix
that a model was sent lately is found by looking its digests up, whoever's conversation it is.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stepdown.builder.digests import exact_json

LIFE = 300.0
MOST_REMEMBERED = 20_000
"""Prefixes; the oldest are forgotten."""


@dataclass(frozen=True, slots=True)
class SentPrefix:
    """A prefix that was sent to a model."""

    at: float
    tokens: int


def chain(messages: Sequence[Any], tools: Sequence[Any]) -> list[str]:
    """A digest for each message, of all that a provider is sent up to its end. Tools stand before all messages."""
    link = hashlib.sha256(exact_json(list(tools)).encode("utf-8", "surrogatepass")).hexdigest()
    found = []
    for message in messages:
        text = exact_json(message).encode("utf-8", "surrogatepass")
        link = hashlib.sha256(link.encode() + text).hexdigest()
        found.append(link)
    return found


class SentPrefixes:
    """The prefixes that every model was sent. Used by one thread."""

    def __init__(self, life: float = LIFE) -> None:
        self._life = life
        self._sent: OrderedDict[tuple[str, str], SentPrefix] = OrderedDict()

    def held(self, model: str, prefix: Sequence[str], now: float) -> tuple[int, float | None]:
        """Tokens of a prefix that a model's cache should hold, and the age of what it holds; 0 and None: nothing."""
        for digest in reversed(prefix):
            sent = self._sent.get((model, digest))
            if sent is not None and now - sent.at <= self._life:
                return sent.tokens, now - sent.at
        return 0, None

    def note(self, model: str, prefix: Sequence[str], tokens: int, now: float) -> None:
        """A model was sent this prefix, of so many tokens."""
        if not prefix:
            return
        self._sent[model, prefix[-1]] = SentPrefix(now, tokens)
        self._sent.move_to_end((model, prefix[-1]))
        while len(self._sent) > MOST_REMEMBERED:
            self._sent.popitem(last=False)
