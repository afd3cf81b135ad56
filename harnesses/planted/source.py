"""Which tiers are planted: drawn at random, or given step by step."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field, field_validator

from stepdown.builder.config.validation import Strict, validated
from stepdown.builder.records import Instance

BENCHMARK = "planted"
TIERS = ("low", "mid", "mid_high", "high")
STRONG = len(TIERS) - 1

PlantedTier = Annotated[int, Field(ge=0, le=STRONG)]
"""A tier's index, 0 the cheapest."""


class Drawn(Strict):
    """Tiers drawn instance by instance, step by step: the same `source` always plants the same."""

    instances: int = Field(ge=1)
    steps: int = Field(ge=1)
    """Steps of every instance's seed."""
    seed: int = 7
    weights: tuple[float, ...] = Field((71, 6, 5, 18), min_length=len(TIERS), max_length=len(TIERS))
    """How often each tier is planted, relative to the others; by default the shares of the paper's release."""

    @field_validator("weights")
    @classmethod
    def _drawable(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if min(value) < 0 or not 0 < sum(value) < float("inf"):
            raise ValueError("must not be negative, and one must be more than 0")
        return value

    def tiers(self) -> Iterator[list[int]]:
        draw = random.Random(self.seed)  # noqa: S311 - a plan, not a secret
        for _ in range(self.instances):
            yield draw.choices(range(len(TIERS)), self.weights, k=self.steps)


class Given(Strict):
    """Tiers written out: an instance each, a step each."""

    tiers_: tuple[Annotated[tuple[PlantedTier, ...], Field(min_length=1)], ...] = Field(min_length=1, alias="tiers")

    def tiers(self) -> Iterator[list[int]]:
        return map(list, self.tiers_)


def instances(source: Mapping[str, Any]) -> Iterator[Instance]:
    """The planted instances, made one by one. Raises BadInput, naming the field, before the first is made."""
    kind: type[Given] | type[Drawn] = Given if "tiers" in source else Drawn
    plan = validated(kind, dict(source), field="source")
    return (Instance(BENCHMARK, str(number), {"tiers": row}) for number, row in enumerate(plan.tiers(), 1))
