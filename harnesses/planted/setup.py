"""Run configs for the planted workload: what a config file would hold, as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stepdown.harnesses.planted.source import BENCHMARK, STRONG, TIERS, instances

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


def planted_seeds(source: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The lines of a seed file for the instances of a source: trajectories that the strong tier's first model made."""
    for instance in instances(source):
        steps = [{"content": f"{STRONG}-0 makes 1 {number}"} for number in range(1, len(instance.task["tiers"]) + 1)]
        yield {"instance_id": instance.id, "model": f"{STRONG}-0", "steps": steps}


def planted_config(
    source: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
    protocol: Mapping[str, Any] | None = None,
    operation: Mapping[str, Any] | None = None,
    sizes: Sequence[int] = PAPER_SIZES,
    seeds: Path | None = None,
) -> dict[str, Any]:
    """A config with the planted workload alone. It needs no provider.

    `protocol` and `operation` hold further entries of those parts (hints, rules, audit; workers, cache). The strong
    tier makes the seeds, unless a file of them is named.
    """
    workload = {
        "harness": BENCHMARK,
        "source": dict(source),
        "options": dict(options or {}),
        "seeds": {"source": "import", "file": str(seeds)} if seeds else {"source": "collect"},
    }
    return {
        "protocol": {"pool": planted_pool(sizes), "workloads": [workload], **(protocol or {})},
        "operation": dict(operation or {"workers": 1}),
    }
