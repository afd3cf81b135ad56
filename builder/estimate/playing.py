"""Plays trajectories that cost nothing, to see how large their steps are: imported and reference seeds.

Nothing is kept and no provider is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stepdown.builder.cache.responses import Cache
from stepdown.builder.common import tokens
from stepdown.builder.common.faults import place_of, said
from stepdown.builder.config.pool import WORKLOAD, Model, Pool
from stepdown.builder.engine.calls import Calls
from stepdown.builder.engine.replay import Replayer
from stepdown.builder.engine.seeds import REFERENCE, strong_models
from stepdown.builder.engine.workloads import LoadedWorkload
from stepdown.builder.errors import BadInput, StepdownError, Technical
from stepdown.builder.estimate.arithmetic import Amount, StepSize, StepSizes
from stepdown.builder.models import Completion
from stepdown.builder.records import (
    FIRST,
    Instance,
    Outcome,
    Prefix,
    Reasoning,
    Response,
    Ruling,
    Sample,
    Step,
    Trajectory,
    Verdict,
)
from stepdown.harnesses.base import Harness
from stepdown.judges.case import JudgeCase, RefusalCase

LONGEST = 1000
"""Steps. A reference that has not ended after so many is given up."""


@dataclass(frozen=True, slots=True)
class SeedSize:
    """The seed that an instance has or is expected to have: its strong model, and the sizes of its steps."""

    strong: str
    sizes: StepSizes
    basis: str
    """How its length is known, in a few words."""
    is_known: bool = True
    """Whether it is known to pass. Else it may turn out that the instance has no seed."""
    failed: Mapping[str, Amount] | None = None
    """What the attempts at it took, by model, in a run that found none that passes."""


def sizes_of(trajectory: Trajectory) -> StepSizes:
    """The sizes of a trajectory's steps: as their provider counted them, else by their characters."""
    return tuple(
        StepSize(
            prompt=step.response.usage.prompt or _prompt_size(step.prefix),
            output=step.response.usage.completion or _answer_size(step.response),
        )
        for step in trajectory
    )


def _prompt_size(prefix: Prefix) -> int:
    """Approximate tokens of a prefix, its tool definitions included."""
    return tokens.of_request(prefix.messages, prefix.tools)


def _answer_size(response: Response) -> int:
    return tokens.approximate(response.content + "".join(call.name + call.arguments for call in response.tool_calls))


def play_reference(instance: Instance, harness: Harness) -> StepSizes | None:
    """Play the trajectory of the workload's pseudo-model that knows accepted answers; None where it has none."""
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
                    return sizes_of(tuple(steps))
    except (Exception, SystemExit):  # a harness is anybody's code, and only an estimate depends on this
        return None
    return None


def measure_first_prompt(instance: Instance, harness: Harness) -> int:
    """Approximate tokens of an instance's first prefix. Raises BadInput where the instance cannot be opened."""
    try:
        with harness.open(instance) as episode:
            return _prompt_size(episode.prefix())
    except StepdownError:
        raise
    except (Exception, SystemExit) as error:  # a harness is anybody's code
        place = place_of(error, type(harness).__module__)
        where = f"{place}: " if place else ""
        raise BadInput(f"instance {instance.id!r} can not be opened: {where}{said(error)}") from None


def play_seed(instance: Instance, workload: LoadedWorkload, pool: Pool) -> SeedSize | None:
    """Play the instance's seeds until one passes, as a build would; None where none does."""
    calls = Calls(instance, workload.harness, _NoProvider(), Cache(_NoStore(), run="estimate"))
    replayer = Replayer(instance, workload.harness, pool, calls, judge=_pass_unjudged)
    for model, outcome in _play_attempts(instance, workload, pool, replayer):
        if outcome.verdict is Verdict.PASS:
            basis = f"played ({workload.config.seeds.source})"
            return SeedSize(model, sizes_of(outcome.trajectory), basis, not workload.harness.needs_judge)
    return None


def _play_attempts(
    instance: Instance, workload: LoadedWorkload, pool: Pool, replayer: Replayer
) -> Iterator[tuple[str, Outcome]]:
    if workload.seeds is not None:
        for imported in workload.seeds.read(instance.id):
            yield imported.model, replayer.verify(imported.responses, imported.model)
        return
    for model in strong_models(workload.config.seeds, pool):
        yield model, replayer.collect(model, 0)


def _pass_unjudged(case: JudgeCase | RefusalCase) -> Ruling:
    """Judges cost money, so a seed that needs one is taken to pass."""
    return Ruling(Verdict.PASS)


class _NoProvider:
    """A provider that answers nothing: imported and reference seeds need none."""

    def complete(
        self,
        model: Model,
        prefix: Prefix,
        sample: Sample = FIRST,
        reasoning: Mapping[int, Reasoning] | None = None,
        grows: bool = False,
    ) -> Completion:
        raise Technical(f"{model.name} is not asked for an estimate")


class _NoStore:
    """A store of a response cache that keeps nothing."""

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
