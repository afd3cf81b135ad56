"""How long seeds are, and how large their steps, before a cent is spent: what an estimate starts from.

Imported and reference seeds are played in the harness, which costs nothing. What is still to be collected has to be
assumed, or is taken from a run that has collected it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stepdown.builder.cache.responses import Cache
from stepdown.builder.common import tokens
from stepdown.builder.config.pool import WORKLOAD, Model, Pool
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.engine.calls import Calls
from stepdown.builder.engine.replay import Replayer
from stepdown.builder.engine.seeds import REFERENCE, strong_models
from stepdown.builder.engine.workloads import LoadedWorkload, select_instances
from stepdown.builder.errors import BadInput, StepdownError, Technical
from stepdown.builder.estimate.arithmetic import Shape, StepSize
from stepdown.builder.models import Completion
from stepdown.builder.records import (
    FIRST,
    Instance,
    Outcome,
    Prefix,
    Response,
    Ruling,
    Sample,
    Step,
    Trajectory,
    Verdict,
)
from stepdown.builder.run.ledger import Ledger
from stepdown.harnesses.base import Harness
from stepdown.judges.case import JudgeCase

LONGEST = 1000
"""Steps after which a reference that does not come to an end is left alone."""
OPENED = 5
"""Instances of a workload that are opened to see how large their first prefix is; the others are taken to be alike."""


@dataclass(frozen=True, slots=True)
class SeedSize:
    """The seed that an instance has or is expected to have: its strong model, and the sizes of its steps."""

    strong: str
    shape: Shape
    basis: str
    """What its length rests on."""


@dataclass(frozen=True, slots=True)
class RunSeedSizes:
    """The seeds of a run, by (benchmark, instance id)."""

    by_instance: Mapping[tuple[str, str], SeedSize]

    def mean_steps(self, benchmark: str) -> int | None:
        """Steps of a seed of a benchmark, rounded up; None where the run has none."""
        return _mean([len(seed.shape) for (name, _), seed in self.by_instance.items() if name == benchmark])


def read_seed_sizes(ledger: Ledger) -> RunSeedSizes:
    """The verified seeds that a run has, with the tokens that providers counted where they did."""
    found: dict[tuple[str, str], SeedSize] = {}
    for record in ledger.instances():
        if record.seed is not None:
            trajectory = ledger.trajectory(record.seed)
            found[record.benchmark, record.instance_id] = SeedSize(
                trajectory[0].model, shape_of(trajectory), "as the run had them"
            )
    return RunSeedSizes(found)


def shape_of(trajectory: Trajectory) -> Shape:
    """The sizes of a trajectory's steps: as their provider counted them, else by their characters."""
    return tuple(
        StepSize(
            prompt=step.response.usage.prompt or prompt_size(step.prefix),
            output=step.response.usage.completion or _answer_size(step.response),
        )
        for step in trajectory
    )


def prompt_size(prefix: Prefix) -> int:
    """Approximate tokens of a prefix, its tool definitions included."""
    return tokens.of_request(prefix.messages, prefix.tools)


def _answer_size(response: Response) -> int:
    return tokens.approximate(response.content + "".join(call.name + call.arguments for call in response.tool_calls))


def measure_seeds(
    protocol: ProtocolConfig, index: int, workload: LoadedWorkload, steps: int | None, run: RunSeedSizes
) -> Iterator[SeedSize | None]:
    """The seed of every instance that a workload selects and does not drop; None where there will be none.

    A seed that is still to be collected is taken to be as `run` had it, as long as `steps` says, or as the workload's
    own reference plays it, in this order. Raises BadInput where nothing says it.
    """
    instances = [instance for instance in select_instances(index, workload) if instance.dropped is None]
    if workload.config.seeds.source == "collect":
        yield from _to_collect(instances, index, workload, protocol.pool, steps, run)
    else:
        for instance in instances:
            yield _played(instance, workload, protocol.pool)


def _to_collect(
    instances: Sequence[Instance],
    index: int,
    workload: LoadedWorkload,
    pool: Pool,
    steps: int | None,
    run: RunSeedSizes,
) -> Iterator[SeedSize]:
    harness = workload.harness
    steps = steps if harness.multi_step else None  # others take one, whatever is said of the rest of the config
    strong = strong_models(workload.config.seeds, pool)[0]
    unknown = [instance for instance in instances if instance.key not in run.by_instance]
    played = {} if steps else {instance.key: _by_reference(instance, harness) for instance in unknown}
    lengths = [len(shape) for shape in played.values() if shape]
    first: list[int] = []
    for instance in instances:
        if known := run.by_instance.get(instance.key):
            yield replace(known, strong=known.strong if known.strong in pool.by_name else strong)
        elif shape := played.get(instance.key):
            yield SeedSize(strong, shape, "as the workload's reference plays them; live ones may be longer")
        else:
            length = steps or run.mean_steps(harness.name) or _mean(lengths) or (None if harness.multi_step else 1)
            if length is None:
                raise BadInput(
                    f"how long the seeds of {harness.name!r} will be is not known before they are collected: say it "
                    "by `--steps N`, or name a run of this workload by `--run`",
                    field=f"protocol.workloads.{index}.seeds",
                )
            if len(first) < OPENED:
                first.append(_first_prompt(instance, harness))
            yield SeedSize(strong, _assumed_shape(sum(first) // len(first), length), _assumption(length))


def _mean(lengths: Sequence[int]) -> int | None:
    """Rounded up; None where there is none."""
    return math.ceil(sum(lengths) / len(lengths)) if lengths else None


def _assumed_shape(first: int, length: int) -> Shape:
    """Every step adds a usual answer, and as much again of what comes back."""
    return tuple(StepSize(first + 2 * tokens.USUAL_ANSWER * n, tokens.USUAL_ANSWER) for n in range(length))


def _assumption(length: int) -> str:
    return (
        f"assumed to take {length} steps, the first prefix as those of the first {OPENED} instances, "
        f"then {2 * tokens.USUAL_ANSWER} tokens a step"
    )


def _by_reference(instance: Instance, harness: Harness) -> Shape | None:
    """The trajectory of the workload's pseudo-model that knows accepted answers; None where there is none."""
    steps: list[Step] = []
    try:
        with harness.open(instance) as episode:
            while len(steps) < LONGEST:
                prefix = episode.prefix()
                answer = harness.answer(REFERENCE.removeprefix(WORKLOAD), instance, prefix, FIRST)
                if answer is None:
                    return None
                steps.append(Step(prefix, answer, REFERENCE))
                if not episode.advance(answer):
                    return shape_of(tuple(steps))
    except Exception:  # a harness is anybody's code, and nothing but a number depends on this
        return None
    return None


def _first_prompt(instance: Instance, harness: Harness) -> int:
    try:
        with harness.open(instance) as episode:
            return prompt_size(episode.prefix())
    except StepdownError:
        raise
    except Exception as error:  # a harness is anybody's code
        raise BadInput(f"instance {instance.id!r} can not be opened: {type(error).__name__}: {error}") from None


def _played(instance: Instance, workload: LoadedWorkload, pool: Pool) -> SeedSize | None:
    """The first seed that passes, as a build would find it; nothing is kept and no provider is asked."""
    calls = Calls(instance, workload.harness, _Nobody(), Cache(_Nothing(), run="estimate"))
    replayer = Replayer(instance, workload.harness, pool, calls, judge=_lenient)
    for model, outcome in _attempts(instance, workload, pool, replayer):
        if outcome.verdict is Verdict.PASS:
            return SeedSize(model, shape_of(outcome.trajectory), f"played ({workload.config.seeds.source})")
    return None


def _attempts(
    instance: Instance, workload: LoadedWorkload, pool: Pool, replayer: Replayer
) -> Iterator[tuple[str, Outcome]]:
    if workload.seeds is not None:
        for imported in workload.seeds.of(instance.id):
            yield imported.model, replayer.verify(imported.responses, imported.model)
        return
    for model in strong_models(workload.config.seeds, pool):
        yield model, replayer.collect(model, 0)


def _lenient(case: JudgeCase) -> Ruling:
    """Judges cost something: a seed that one is to look at is taken to pass."""
    return Ruling(Verdict.PASS)


class _Nobody:
    """A provider that is not there: seeds that can be played need none."""

    def complete(self, model: Model, prefix: Prefix, sample: Sample = FIRST) -> Completion:
        raise Technical(f"{model.name} is not asked for an estimate")


class _Nothing:
    """A cache's store that keeps nothing."""

    def get(self, key: str) -> Any | None:
        return None

    def put(self, key: str, value: Any) -> None:
        pass

    def keys(self) -> Iterator[str]:
        return iter(())

    def delete(self, key: str) -> None:
        pass

    def close(self) -> None:
        pass
