"""The protocol once more, from its text alone: what a search of a planted instance must try, find and pay for.

It shares no code with the engine. A trajectory is the list of the models that made its calls: on planted instances
this says all. Where a pair of texts could be read in two ways, the design's section 2 was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

STRONG = 3


@dataclass(frozen=True)
class World:
    """A planted instance, the pool, and the rules."""

    needs: Sequence[int]
    hints: Mapping[int, int] = field(default_factory=dict)
    sizes: Sequence[int] = (3, 3, 3, 2)
    cascade: int = 3
    early: bool = False
    same_length: bool = False
    effects: Collection[tuple[int, int]] = ()
    shorter: Mapping[str, Collection[int]] = field(default_factory=dict)

    def played(self, models: Sequence[str]) -> tuple[int, bool]:
        """How many planted steps the calls of these models make, and whether they are all well made."""
        made, well, low = 0, True, set()
        for model in models:
            tier = int(model[0])
            for _ in range(2 if made + 1 in self.shorter.get(model, ()) and made + 1 < len(self.needs) else 1):
                made += 1
                well = well and tier >= self.needs[made - 1]
                if tier < STRONG:
                    low.add(made)
            well = well and not any(first in low and second in low for first, second in self.effects)
        return made, well


@dataclass(frozen=True)
class Tried:
    """A trial and what became of it. `calls` is the length of the trajectory, replayed steps included."""

    step: int
    model: str
    sample: int
    limit: int
    verdict: str
    accepted: bool
    calls: int


@dataclass
class Answer:
    """What a search must come to."""

    models: list[str]
    """Who makes each step of the final trajectory."""
    tried: list[Tried]

    @property
    def labels(self) -> list[int]:
        return [int(model[0]) for model in self.models]

    @property
    def paid(self) -> int:
        """Calls: a trial at step i pays for the candidate's and all that come after it; seeds are not counted."""
        return sum(trial.calls - (trial.step - 1) for trial in self.tried)


def executed(world: World, current: Sequence[str], step: int, model: str) -> tuple[str, list[str]]:
    """Verdict and trajectory of a trial."""
    models = [*current[: step - 1], model]
    while True:
        made, well = world.played(models)
        if world.early and not well:
            return "fail", models
        if made == len(world.needs):
            return ("pass" if well else "fail"), models
        if len(models) == len(current):
            return "incomplete", models
        models.append(f"{STRONG}-0")


Drawn = Callable[[int, str, int], tuple[str, int]]
"""Verdict and length of the trial of a (step, model, sample), where they were seen and not computed."""


def search(world: World, passes: int = 1, of: int = 1, drawn: Drawn | None = None) -> Answer:
    """The design's section 2, line by line."""
    seed: list[str] = []
    while world.played(seed)[0] < len(world.needs):
        seed.append(f"{STRONG}-0")
    current, tried = list(seed), []

    def trial(step: int, model: str, sample: int) -> list[str] | None:
        verdict, models = executed(world, current, step, model)
        if drawn is not None:
            verdict, length = drawn(step, model, sample)
            models = models[:length]
        limit = len(current)
        fits = len(models) == limit if world.same_length else len(models) <= limit
        accepted = verdict == "pass" and fits
        tried.append(Tried(step, model, sample, limit, verdict, accepted, len(models)))
        return models if accepted else None

    def probe(step: int, tier: int) -> list[str] | None:
        for k in range(min(world.sizes[tier], world.cascade)):
            good: list[list[str]] = []
            for sample in range(of):
                models = trial(step, f"{tier}-{k}", sample)
                if models is not None:
                    good.append(models)
                if len(good) == passes:
                    return good[0]
                if len(good) + of - sample - 1 < passes:
                    break
        return None

    step = 1
    while step <= len(current):
        tier, best, failed = 0, None, set()
        if len(current) == len(seed) and step in world.hints:
            tier = min(world.hints[step], STRONG - 1)
        while True:
            models = probe(step, tier)
            if models is not None:
                best = models
                if tier == 0 or tier - 1 in failed:
                    break
                tier -= 1
            else:
                failed.add(tier)
                if best is not None or tier + 1 == STRONG:
                    break
                tier += 1
        if best is not None:
            current = best
        step += 1
    return Answer(current, tried)
