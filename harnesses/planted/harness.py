"""The planted workload as stepdown's harness contract has it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

from pydantic import Field, field_validator

from stepdown.builder.config.validation import Strict, validated
from stepdown.builder.records import Instance, Prefix, Response, Sample, digest
from stepdown.harnesses.base import Checkpoint, Episode, Harness, Terms
from stepdown.harnesses.planted import models, source
from stepdown.harnesses.planted.episode import Laws, PlantedEpisode, PlantedState, mask

VERSION = "1"
"""Raised with every change of this package that can change a prefix, an answer or a verdict."""

Step = Annotated[int, Field(ge=1)]
_NAME = re.compile(models.NAME)
_ORDER = re.compile(r"Step (\d+) of (\d+) ")


class Options(Strict):
    """What a real workload may have, one by one."""

    early_verdicts: bool = False
    """The episode says that it is lost at once, not at its end."""
    checkpoints: bool = True
    """The episode's state can be captured; else every trial replays the locked steps."""
    volatile: bool = False
    """Observations show a clock that reads otherwise at every replay."""
    latency: float = Field(0.0, ge=0)
    """Seconds that a call takes."""
    effects: tuple[tuple[Step, Step], ...] = ()
    """Pairs of steps of every instance that fail if both are made below the strong tier, and only then."""
    shorter: dict[models.ModelName, tuple[Step, ...]] = Field(default_factory=dict)
    """Steps at which a model makes this step and the next in one call; its tier must be enough for both."""
    noise: models.Noise | None = None

    @field_validator("effects")
    @classmethod
    def _two_steps(cls, value: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        if any(first == second for first, second in value):
            raise ValueError("a pair needs two different steps")
        return value


class Planted(Harness):
    """Instances whose every step has a known cheapest tier, and models that pass or fail accordingly.

    The pseudo-models are `<tier>-<k>` with the index of a tier of four, `0-0` to `3-1` for the paper's 3/3/3/2 pool.
    """

    name = source.BENCHMARK
    terms = Terms("Apache-2.0", "Made by stepdown itself, to test with; no real task.")

    def __init__(self, **options: Any) -> None:
        """Raises BadInput for an unknown or wrong option."""
        self._options = validated(Options, options, field="options")
        given = self._options
        self._laws = Laws(
            early_verdicts=given.early_verdicts,
            volatile=given.volatile,
            effects=[frozenset(pair) for pair in given.effects],
            checkpoints=given.checkpoints,
        )
        self.early_verdicts = given.early_verdicts
        # Latency shapes nothing that a key must tell apart.
        self.version = f"{VERSION}+{digest(given.model_dump(mode='json', exclude={'latency'}))[:12]}"
        self.mask = mask if given.volatile else None

    def instances(self, source_: Mapping[str, Any]) -> Iterator[Instance]:
        """The instances of `source: {instances, steps, seed, weights}` or `source: {tiers: [[0, 3, ...], ...]}`."""
        return source.instances(source_)

    @contextmanager
    def open(self, instance: Instance, at: Checkpoint | None = None) -> Iterator[Episode]:
        """An episode of the instance. It holds no resource beyond memory."""
        assert at is None or isinstance(at, PlantedState)
        yield PlantedEpisode(instance.id, instance.task["tiers"], self._laws, at)

    def answer(self, name: str, instance: Instance, prefix: Prefix, sample: Sample) -> Response | None:
        """The pseudo-model's answer; None for a name that is not one."""
        if not _NAME.fullmatch(name):
            return None
        if self._options.latency:
            time.sleep(self._options.latency)
        return models.answer(name, self._steps_at_once(name, prefix), self._options.noise, prefix, sample)

    def _steps_at_once(self, name: str, prefix: Prefix) -> int:
        places = self._options.shorter.get(name)
        if not places:
            return 1
        order = _ORDER.match(prefix.messages[-1]["content"])
        assert order is not None, "the last message of a prefix is the episode's own"
        step, last = map(int, order.groups())
        return 2 if step in places and step < last else 1
