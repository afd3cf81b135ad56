"""Approximate numbers of tokens, for what is decided before a provider has counted them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stepdown.builder.records import exact_json

CHARACTERS_PER_TOKEN = 4
USUAL_ANSWER = 500
"""Tokens of an answer of which nothing is known (paper, static scoring)."""


def approximate(text: str) -> int:
    """Tokens of a text: its characters by four, rounded up.

    >>> approximate("a word or two")
    4
    """
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def of_request(messages: Iterable[Mapping[str, Any]], tools: Iterable[Mapping[str, Any]] = ()) -> int:
    """Tokens of a request's messages and tool definitions, their JSON counted as it is."""
    return sum(approximate(exact_json(part)) for part in (*messages, *tools))
