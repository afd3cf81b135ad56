"""How long seeds are, and how large their steps: what an estimate starts from.

Imported and reference seeds are played. Seeds that are still to be collected are assumed, or are taken from a run that
has collected them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stepdown.builder.common import tokens
from stepdown.builder.config.pool import Pool
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.engine.seeds import strong_models
from stepdown.builder.engine.workloads import LoadedWorkload, select_instances
from stepdown.builder.errors import BadInput
from stepdown.builder.estimate.arithmetic import StepSize, StepSizes
from stepdown.builder.estimate.earlier_run import SeenInRun, rounded_mean
from stepdown.builder.estimate.playing import SeedSize, measure_first_prompt, play_reference, play_seed
from stepdown.builder.records import Instance

OPENED = 5
"""So many instances of a workload are opened to measure their first prefix; the others are taken to be alike."""


def measure_seeds(
    protocol: ProtocolConfig, index: int, workload: LoadedWorkload, steps: int | None, run: SeenInRun
) -> Iterator[SeedSize | None]:
    """The seed of every instance that a workload selects and does not drop; None where there will be none.

    A seed that is still to be collected is taken to be as `run` had it, as long as `steps` says, as `run` had others in
    the mean, or as the workload's own reference plays it, in this order. Raises BadInput where nothing says it.
    """
    instances = [instance for instance in select_instances(index, workload) if instance.dropped is None]
    if workload.config.seeds.source == "collect":
        yield from _assume_collected(instances, index, workload, protocol.pool, steps, run)
    else:
        for instance in instances:
            yield play_seed(instance, workload, protocol.pool)


def _assume_collected(
    instances: Sequence[Instance],
    index: int,
    workload: LoadedWorkload,
    pool: Pool,
    steps: int | None,
    run: SeenInRun,
) -> Iterator[SeedSize]:
    harness = workload.harness
    steps = steps if harness.multi_step else None  # workloads of one step have one, whatever is assumed of others
    strong = strong_models(workload.config.seeds, pool)[0]
    mean = () if steps else run.mean_sizes(harness.name)
    unknown = [] if steps or mean else [one for one in instances if one.key not in run.seeds]
    played = {instance.key: play_reference(instance, harness) for instance in unknown}
    lengths = [len(sizes) for sizes in played.values() if sizes]
    first: list[int] = []
    for instance in instances:
        failed = run.failed.get(instance.key)
        took = failed.took if failed is not None else None
        if known := run.seeds.get(instance.key):
            yield replace(known, strong=known.strong if known.strong in pool.by_name else strong)
        elif mean:
            yield SeedSize(strong, mean, "as the run's seeds in the mean", is_known=False, failed=took)
        elif sizes := played.get(instance.key):
            basis = "as the workload's reference plays them; live ones may be longer"
            yield SeedSize(strong, sizes, basis, is_known=False, failed=took)
        else:
            length = steps or rounded_mean(lengths) or (failed.longest if failed is not None else None)
            length = length or (None if harness.multi_step else 1)
            if length is None:
                raise BadInput(
                    f"how long the seeds of {harness.name!r} will be is not known before they are collected: say it "
                    "by `--steps N`, or name a run of this workload by `--run`",
                    field=f"protocol.workloads.{index}.seeds",
                )
            if len(first) < OPENED:
                first.append(measure_first_prompt(instance, harness))
            sizes = _assumed_sizes(sum(first) // len(first), length)
            yield SeedSize(strong, sizes, _assumption(length), is_known=False, failed=took)


def _assumed_sizes(first: int, length: int) -> StepSizes:
    """Steps of which each adds an answer of the usual size, and as much again of observations."""
    return tuple(StepSize(first + 2 * tokens.USUAL_ANSWER * n, tokens.USUAL_ANSWER) for n in range(length))


def _assumption(length: int) -> str:
    return (
        f"assumed to take {length} steps, the first prefix as those of the first {OPENED} instances, "
        f"then {2 * tokens.USUAL_ANSWER} tokens a step"
    )
