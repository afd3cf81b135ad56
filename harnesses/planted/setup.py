"""Run configs for the planted workload: what a config file would hold, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnesses.planted.source import BENCHMARK, TIERS

PAPER_SIZES = (3, 3, 3, 2)
"""Models by tier in the paper's static pool."""
_PRICES = ((0.26, 0.5), (0.3, 2.0), (0.5, 5.0), (5.0, 25.0))
"""The paper's accounting rates by tier: USD per million prompt and completion tokens."""


def planted_pool(sizes: Sequence[int] = PAPER_SIZES) -> dict[str, Any]:
    """A pool of pseudo-models, so many of each tier.

    >>> [model["name"] for model in planted_pool((1, 1, 1, 2))["tiers"][-1]["models"]]
    ['3-0', '3-1']
    """
    return {
        "version": f"planted-{'-'.join(map(str, sizes))}",
        "tiers": [
            {
                "name": name,
                "id": tier,
                "models": [
                    {"name": f"{tier}-{k}", "model": f"workload/{tier}-{k}", "price": {"input": price, "output": out}}
                    for k in range(size)
                ],
            }
            for tier, (name, size, (price, out)) in enumerate(zip(TIERS, sizes, _PRICES, strict=True))
        ],
    }


def planted_config(
    source: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
    protocol: Mapping[str, Any] | None = None,
    operation: Mapping[str, Any] | None = None,
    sizes: Sequence[int] = PAPER_SIZES,
) -> dict[str, Any]:
    """A config with the planted workload alone; seeds are made by the strong tier. It needs no provider.

    `protocol` and `operation` hold further entries of those parts (hints, rules, audit; workers, cache).
    """
    workload = {
        "harness": BENCHMARK,
        "source": dict(source),
        "options": dict(options or {}),
        "seeds": {"source": "collect"},
    }
    return {
        "protocol": {"pool": planted_pool(sizes), "workloads": [workload], **(protocol or {})},
        "operation": dict(operation or {"workers": 1}),
    }
