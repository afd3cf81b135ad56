"""How long seeds are, and how large their steps, before a cent is spent: what an estimate starts from.

Imported and reference seeds are played in the harness, which costs nothing. What is still to be collected has to be
assumed, or is taken from a run that has collected it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from builder import tokens
from builder.build import selected
from builder.cache import Cache
from builder.calls import Calls, Completion
from builder.config import Protocol
from builder.errors import BadInput, StepdownError, Technical
from builder.estimate import Shape, StepSize
from builder.label import Bench
from builder.ledger import Ledger
from builder.pool import WORKLOAD, Model, Pool
from builder.records import FIRST, Instance, Outcome, Prefix, Response, Sample, Step, Trajectory, Verdict
from builder.replay import Replayer
from builder.seeds import REFERENCE, strong_models
from harnesses.base import Answers, Harness
from judges.case import Case
from judges.panel import Finding

LONGEST = 1000
"""Steps after which a reference that does not come to an end is left alone."""
OPENED = 5
"""Instances of a workload that are opened to see how large their first prefix is; the others are taken to be alike."""


@dataclass(frozen=True, slots=True)
class Seed:
    """The seed that an instance has or is expected to have: its strong model, and the sizes of its steps."""

    strong: str
    shape: Shape
    basis: str
    """What its length rests on."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds of a run, by (benchmark, instance id)."""

    by_instance: Mapping[tuple[str, str], Seed]

    def mean_steps(self, benchmark: str) -> int | None:
        """Steps of a seed of a benchmark, rounded up; None where the run has none."""
        return _mean([len(seed.shape) for (name, _), seed in self.by_instance.items() if name == benchmark])


def seeds_of_run(ledger: Ledger) -> Seeds:
    """The verified seeds that a run has, with the tokens that providers counted where they did."""
    found: dict[tuple[str, str], Seed] = {}
    for record in ledger.instances():
        if record.seed is not None:
            trajectory = ledger.trajectory(record.seed)
            found[record.benchmark, record.instance_id] = Seed(
                trajectory[0].model, shape_of(trajectory), "as the run had them"
            )
    return Seeds(found)


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


def seeds_of(protocol: Protocol, index: int, bench: Bench, steps: int | None, run: Seeds) -> Iterator[Seed | None]:
    """The seed of every instance that a workload selects and does not drop; None where there will be none.

    A seed that is still to be collected is taken to be as `run` had it, as long as `steps` says, or as the workload's
    own reference plays it, in this order. Raises BadInput where nothing says it.
    """
    instances = [instance for instance in selected(index, bench) if instance.dropped is None]
    if bench.workload.seeds.source == "collect":
        yield from _to_collect(instances, index, bench, protocol.pool, steps, run)
    else:
        for instance in instances:
            yield _played(instance, bench, protocol.pool)


def _to_collect(
    instances: Sequence[Instance], index: int, bench: Bench, pool: Pool, steps: int | None, run: Seeds
) -> Iterator[Seed]:
    harness = bench.harness
    steps = steps if harness.multi_step else None  # others take one, whatever is said of the rest of the config
    strong = strong_models(bench.workload.seeds, pool)[0]
    unknown = [instance for instance in instances if instance.key not in run.by_instance]
    played = {} if steps else {instance.key: _by_reference(instance, harness) for instance in unknown}
    lengths = [len(shape) for shape in played.values() if shape]
    first: list[int] = []
    for instance in instances:
        if known := run.by_instance.get(instance.key):
            yield replace(known, strong=known.strong if known.strong in pool.by_name else strong)
        elif shape := played.get(instance.key):
            yield Seed(strong, shape, "as the workload's reference plays them; live ones may be longer")
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
            yield Seed(strong, _assumed_shape(sum(first) // len(first), length), _assumption(length))


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
    if not isinstance(harness, Answers):
        return None
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


def _played(instance: Instance, bench: Bench, pool: Pool) -> Seed | None:
    """The first seed that passes, as a build would find it; nothing is kept and no provider is asked."""
    calls = Calls(instance, bench.harness, _Nobody(), Cache(_Nothing(), run="estimate"))
    replayer = Replayer(instance, bench.harness, pool, calls, judge=_lenient)
    for model, outcome in _attempts(instance, bench, pool, replayer):
        if outcome.verdict is Verdict.PASS:
            return Seed(model, shape_of(outcome.trajectory), f"played ({bench.workload.seeds.source})")
    return None


def _attempts(instance: Instance, bench: Bench, pool: Pool, replayer: Replayer) -> Iterator[tuple[str, Outcome]]:
    if bench.seeds is not None:
        for imported in bench.seeds.of(instance.id):
            yield imported.model, replayer.verify(imported.responses, imported.model)
        return
    for model in strong_models(bench.workload.seeds, pool):
        yield model, replayer.collect(model, 0)


def _lenient(case: Case) -> Finding:
    """Judges cost something: a seed that one is to look at is taken to pass."""
    return Finding(Verdict.PASS, "", (), ())


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
