"""What each model's prompt cache holds of one task's prefixes, by the wall clock; and what a call costs by it.

A provider's own report of cached tokens is believed. Where it reports none, a prefix that was sent to the same model
within the cache's life and stands at this one's head is read, and the rest is written; else all of it is written
(paper: 300 s).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stepdown.builder.records import Prefix, Usage

LIFE = 300.0
"""Seconds for which a provider keeps a prompt."""


@dataclass(frozen=True, slots=True)
class LastCall:
    """The last call of a model: when it was made, and the prefix that it sent."""

    at: float
    """Seconds since the epoch."""
    prefix: Prefix
    tokens: int
    """Prompt tokens, by the call's usage."""


class PromptCaches:
    """The caches of all models, for one task."""

    def __init__(self, life: float = LIFE) -> None:
        self._life = life
        self._sent: dict[str, LastCall] = {}

    def held(self, model: str, prefix: Prefix, now: float) -> tuple[int, float | None]:
        """How many tokens of a prefix a model's cache holds, and the age in seconds of its last call; None: none."""
        sent = self._sent.get(model)
        if sent is None:
            return 0, None
        return (sent.tokens if self._is_warm(sent, prefix, now) else 0), max(0.0, now - sent.at)

    def charge(self, model: str, prefix: Prefix, usage: Usage, at: float) -> Usage:
        """The call's usage with its prompt divided into what was read and written; the model's cache then holds it."""
        charged = usage
        if not usage.cache_read and not usage.cache_write:
            read = min(self.held(model, prefix, at)[0], usage.prompt)
            charged = replace(usage, cache_read=read, cache_write=usage.prompt - read)
        self._sent[model] = LastCall(at, prefix, usage.prompt)
        return charged

    def _is_warm(self, sent: LastCall, prefix: Prefix, now: float) -> bool:
        same_tools = sent.prefix.tools_digest == prefix.tools_digest
        return now - sent.at <= self._life and same_tools and prefix.grew_from(sent.prefix)
