"""What a provider says that a call took: servers name and count the same tokens in many ways."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepdown.builder.records import MOST_TOKENS

_LONGEST_INTEGER = 400
"""Digits. A longer number is no float, and Python refuses to read one of several thousand digits."""
_DECIMAL = re.compile(r"\d{1,12}(\.\d{1,30})?", re.ASCII)
_MOST_USD = 1e6
"""A gateway that reports more for one call is mistaken."""

_PROMPT = (
    "prompt_tokens",
    "input_tokens",
    "inputTokens",
    "prompt_token_count",
    "promptTokenCount",
    "prompt_eval_count",
    "promptTokens",
    "inputTokenCount",
    "inputTextTokenCount",
    "input_token_count",
    "tokens_evaluated",
    "prompt_n",
)
_COMPLETION = (
    "completion_tokens",
    "output_tokens",
    "outputTokens",
    "candidates_token_count",
    "candidatesTokenCount",
    "eval_count",
    "completionTokens",
    "outputTokenCount",
    "generated_token_count",
    "generation_token_count",
    "tokens_predicted",
    "predicted_n",
)
_TOTAL = ("total_tokens", "totalTokens", "total_token_count", "totalTokenCount")
_PROMPT_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_COMPLETION_DETAILS = ("completion_tokens_details", "output_tokens_details")
_READ = (
    "cached_tokens",
    "cache_read_tokens",
    "cache_read_input_tokens",
    "prompt_cache_hit_tokens",
    "cacheReadInputTokens",
    "num_cached_tokens",
    "prompt_cached_tokens",
    "cached_content_token_count",
    "cachedContentTokenCount",
)
_WRITTEN = (
    "cache_creation_input_tokens",
    "cache_creation_tokens",
    "cache_write_tokens",
    "cache_write_input_tokens",
    "cacheWriteInputTokens",
)
_MISSED = ("prompt_cache_miss_tokens",)
_REASONING = ("reasoning_tokens", "thoughts_token_count", "thoughtsTokenCount")
_NESTED = ("tokens",)
"""Under which Cohere's own form has the counts, beside what it bills."""
_COST = ("cost", "total_cost", "estimated_cost")


@dataclass(frozen=True, slots=True)
class Reported:
    """What a provider says that a call took. None is a part that it does not tell and that does not follow."""

    prompt: int | None = None
    cache_read: int = 0
    cache_write: int = 0
    completion: int | None = None
    total: int | None = None
    usd: float | None = None
    """What a gateway says that the call cost."""


def reported(usage: Any) -> Reported:
    """The tokens of a provider's `usage`, under whatever names. `prompt` includes what a cache read or wrote,
    `completion` includes reasoning, whether or not the provider counts them in.

    >>> reported({"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 10})
    Reported(prompt=1000, cache_read=900, cache_write=0, completion=10, total=None, usd=None)
    >>> reported({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 160}).completion
    60
    """
    usd, usage = _cost(usage), _part(usage, _NESTED) or usage
    details, answer_details = _part(usage, _PROMPT_DETAILS), _part(usage, _COMPLETION_DETAILS)
    read = _first((usage, details), _READ) or 0
    written = _first((usage, details), _WRITTEN) or 0
    missed = _first((usage,), _MISSED)
    told = _first((usage,), _PROMPT)
    # No request is empty: a prompt of no tokens is one that was not counted.
    prompt = told or (read + missed if missed is not None else None) or None
    if told == 0 and read + written and _is_anthropic(usage):
        prompt = 0  # beside what its cache read and wrote
    if prompt is not None and (_is_anthropic(usage) or read + written > prompt):
        prompt += read + written
    completion, total = _first((usage,), _COMPLETION), _first((usage,), _TOTAL)
    if total:
        prompt, completion = _filled(prompt, completion, total, read + written)
    elif completion is not None:
        reasoning = _first((answer_details, usage), _REASONING) or 0
        completion += reasoning if reasoning > completion else 0  # it can not be a part of less
    return Reported(
        prompt=_bounded(prompt),
        cache_read=min(read, MOST_TOKENS),
        cache_write=min(written, MOST_TOKENS),
        completion=_bounded(completion),
        total=total,
        usd=usd,
    )


def _filled(prompt: int | None, completion: int | None, total: int, cached: int) -> tuple[int | None, int | None]:
    """Prompt and completion by their total. What it holds beyond them is reasoning, or the prompt's part in a cache."""
    if prompt is None:
        return (max(0, total - completion) or None, completion) if completion is not None else (None, None)
    if completion is None:
        return prompt, max(0, total - prompt)
    beyond = total - prompt - completion
    if beyond <= 0:
        return prompt, completion
    return (prompt + beyond, completion) if beyond == cached else (prompt, completion + beyond)


def _is_anthropic(usage: Any) -> bool:
    """Whether the prompt's number leaves out what the cache read and wrote, as Anthropic's does under its own names."""
    if _first((usage,), ("prompt_tokens",)) is not None:
        return False
    own = ("cache_read_input_tokens", "cache_creation_input_tokens", "cacheReadInputTokens", "cacheWriteInputTokens")
    return any(_field(usage, name) is not None for name in own)


def _part(usage: Any, names: Sequence[str]) -> Any:
    return next((part for name in names if (part := _field(usage, name)) is not None), None)


def _first(holders: Sequence[Any], names: Sequence[str]) -> int | None:
    """The first of these counts that is more than 0; else 0 where one of them is given, None where none is."""
    counts = [count for holder in holders for name in names if (count := _count(_field(holder, name))) is not None]
    return next(filter(None, counts), counts[0] if counts else None)


def _field(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _count(value: Any) -> int | None:
    """A number of tokens that a ledger can add up, whatever the provider says it is; None where it is no number."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value) if len(value) < _LONGEST_INTEGER else math.inf
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or value < 0:
        return None
    return int(min(value, MOST_TOKENS))


def _bounded(count: int | None) -> int | None:
    return None if count is None else min(count, MOST_TOKENS)


def _cost(usage: Any) -> float | None:
    """USD as a gateway reports them; some give the parts, and the whole among them. Where the key at the provider
    behind it is the user's own, the gateway's fee and what that provider takes stand apart (OpenRouter)."""
    for name in _COST:
        value = _field(usage, name)
        value = _field(value, "total_cost") if isinstance(value, Mapping) else value
        if (usd := _usd(value)) is not None:
            upstream = _usd(_field(_field(usage, "cost_details"), "upstream_inference_cost"))
            return usd + (upstream or 0.0) if _field(usage, "is_byok") is True else usd
    return None


def _usd(value: Any) -> float | None:
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _MOST_USD:
        return float(value)
    return None
