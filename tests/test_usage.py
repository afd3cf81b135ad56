"""The tokens that providers report, under many names and in many ways of counting."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepdown.builder.models.usage import reported
from stepdown.builder.records import MOST_TOKENS


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}, (100, 0, 0, 10)),
        ({"input_tokens": 100, "output_tokens": 10}, (100, 0, 0, 10)),
        ({"inputTokens": 100, "outputTokens": 10, "totalTokens": 110}, (100, 0, 0, 10)),
        (
            {"promptTokenCount": 100, "candidatesTokenCount": 10, "thoughtsTokenCount": 50, "totalTokenCount": 160},
            (100, 0, 0, 60),
        ),
        ({"promptTokens": 100, "completionTokens": 10}, (100, 0, 0, 10)),
        ({"input_token_count": 100, "generated_token_count": 10}, (100, 0, 0, 10)),
        ({"tokens_evaluated": 100, "tokens_predicted": 10}, (100, 0, 0, 10)),
        ({"billed_units": {"input_tokens": 9}, "tokens": {"input_tokens": 100, "output_tokens": 10}}, (100, 0, 0, 10)),
        ({"prompt_tokens": 100, "completion_tokens": 10, "num_cached_tokens": 80}, (100, 80, 0, 10)),
        ({"prompt_tokens": 100, "total_tokens": 130}, (100, 0, 0, 30)),
        ({"completion_tokens": 30, "total_tokens": 130}, (100, 0, 0, 30)),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 60,
                "total_tokens": 160,
                "completion_tokens_details": {"reasoning_tokens": 50},
            },
            (100, 0, 0, 60),
        ),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 10,
                "total_tokens": 160,
                "completion_tokens_details": {"reasoning_tokens": 50},
            },
            (100, 0, 0, 60),
        ),
        ({"prompt_tokens": 100, "completion_tokens": 10, "reasoning_tokens": 50}, (100, 0, 0, 60)),
        (
            {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010, "cached_tokens": 900},
            (1000, 900, 0, 10),
        ),
        (
            {"prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 900}},
            (1000, 900, 0, 10),
        ),
        (
            {"input_tokens": 1000, "output_tokens": 10, "input_tokens_details": {"cached_tokens": 900}},
            (1000, 900, 0, 10),
        ),
        ({"prompt_tokens": 1000, "completion_tokens": 10, "prompt_cache_hit_tokens": 900}, (1000, 900, 0, 10)),
        (
            {"prompt_cache_hit_tokens": 900, "prompt_cache_miss_tokens": 100, "completion_tokens": 10},
            (1000, 900, 0, 10),
        ),
        ({"prompt_tokens": 1000, "completion_tokens": 10, "cache_read_input_tokens": 900}, (1000, 900, 0, 10)),
        (
            {"prompt_tokens": 1000, "completion_tokens": 10, "cached_tokens": 0, "cache_read_input_tokens": 900},
            (1000, 900, 0, 10),
        ),
        (
            {"prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": {"cache_write_tokens": 7}},
            (1000, 0, 7, 10),
        ),
        ({"prompt_tokens": 1000, "completion_tokens": 10, "cache_creation_input_tokens": 7}, (1000, 0, 7, 10)),
        (
            {
                "input_tokens": 100,
                "cache_read_input_tokens": 900,
                "cache_creation_input_tokens": 50,
                "output_tokens": 10,
            },
            (1050, 900, 50, 10),
        ),
        ({"prompt_tokens": 100, "cache_read_input_tokens": 900, "completion_tokens": 10}, (1000, 900, 0, 10)),
        (
            {
                "input_tokens": 0,
                "cache_read_input_tokens": 900,
                "cache_creation_input_tokens": 50,
                "output_tokens": 10,
            },
            (950, 900, 50, 10),
        ),
        (
            {"prompt_tokens": 1000, "cache_read_input_tokens": 900, "completion_tokens": 10, "total_tokens": 1910},
            (1900, 900, 0, 10),
        ),
    ],
)
def test_tokens_are_found_wherever_they_stand(usage: dict[str, Any], counts: tuple[int, ...]) -> None:
    """`counts` are prompt, read from a cache, written to it, completion."""
    found = reported(usage)
    assert (found.prompt, found.cache_read, found.cache_write, found.completion) == counts


NO_COSTS: tuple[Any, ...] = ("free", -1, True, None, float("inf"), float("nan"), 10**400, {}, [1])


@pytest.mark.parametrize("usage", [None, 5, "x", [], {}, {"prompt_tokens": "many"}, {"prompt_tokens": 0}])
def test_what_is_not_told_is_none(usage: Any) -> None:
    found = reported(usage)
    assert (found.prompt, found.cache_read, found.cache_write, found.completion) == (None, 0, 0, None)


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        ({"cost": 0.25}, 0.25),
        ({"cost": 0}, 0.0),
        ({"cost": {"input_tokens_cost": 0.1, "total_cost": 0.25}}, 0.25),
        ({"estimated_cost": 0.25}, 0.25),
        ({"cost": "0.25"}, 0.25),
        ({"cost": 0.05, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.2}}, 0.25),
        ({"cost": 0.25, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.2}}, 0.25),
        ({"cost": 0.25, "tokens": {"input_tokens": 1}}, 0.25),
        *(({"cost": odd}, None) for odd in NO_COSTS),
        (None, None),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_cost_is_usd_or_nothing(usage: Any, usd: float | None) -> None:
    assert reported(usage).usd == usd


NAMES = st.sampled_from(
    [
        "prompt_tokens",
        "input_tokens",
        "completion_tokens",
        "total_tokens",
        "cached_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "reasoning_tokens",
        "prompt_tokens_details",
        "completion_tokens_details",
        "cost",
    ]
)
ODD = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("9" * 5000)


@given(st.dictionaries(NAMES, ODD | st.dictionaries(NAMES, ODD, max_size=3), max_size=6) | ODD)
def test_whatever_is_told_can_be_added_up(usage: Any) -> None:
    found = reported(usage)
    for count in (found.prompt, found.cache_read, found.cache_write, found.completion, found.total):
        assert count is None or (type(count) is int and 0 <= count <= MOST_TOKENS)
