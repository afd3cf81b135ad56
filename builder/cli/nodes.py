"""The part of `stepdown estimate` that plans a cluster: `--nodes N`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import click

from stepdown.builder.common.tables import Table
from stepdown.builder.common.text import printable
from stepdown.builder.config.loading import Config
from stepdown.builder.errors import BadInput
from stepdown.builder.estimate.cluster_plan import ClusterPlan, ClusterSize, PlannedCase, plan_cluster
from stepdown.builder.estimate.pace import Pace
from stepdown.builder.estimate.run_estimate import RunEstimate

PER_NODE, CALL_SECONDS, TRIAL_SECONDS = 4, 10.0, 60.0
"""What is assumed where nothing says it: an answer of a large model and the command it leads to; a container, and a
grading."""
_DAY = 24.0

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What the command line says of a cluster; None: not said."""

    nodes: int | None
    per_node: int | None
    call_seconds: float | None
    trial_seconds: float | None
    image_gib: float | None


def plan_options(command: _Command) -> _Command:
    """The options of a command that `PlanOptions` holds, in their order."""
    positive = click.FloatRange(0, min_open=True)
    for option in (
        click.option("--image-gib", type=positive, help="With --nodes: what one container image takes of a disk."),
        click.option(
            "--trial-seconds",
            type=click.FloatRange(0),
            help="With --nodes: what a trial takes beside its calls, such as opening a container and grading. "
            f"Not said: {TRIAL_SECONDS:g} where a workload has container images, else nothing; with --run nothing, for "
            "the run's time between answers has it.",
        ),
        click.option(
            "--call-seconds",
            type=positive,
            help="With --nodes: what a call takes, with what is done upon its answer. "
            f"Not said: as measured in --run, else {CALL_SECONDS:g}.",
        ),
        click.option(
            "--per-node",
            type=click.IntRange(1, 1024),
            help=f"With --nodes: instances in hand on each. Not said: {PER_NODE}.",
        ),
        click.option(
            "--nodes",
            type=click.IntRange(1, 10_000),
            help="Plan a cluster of so many machines too: days, node-hours, disk for container images.",
        ),
    ):
        command = option(command)
    return command


def made_plan(config: Config, estimate: RunEstimate, options: PlanOptions, measured: Pace | None) -> ClusterPlan | None:
    """The plan that the options ask for; None where they ask for none. `measured` is a run's pace, where one is named.

    Raises BadInput where options speak of nodes and none are named.
    """
    if options.nodes is None:
        for name, value in asdict(options).items():
            if value is not None:
                raise BadInput("goes with --nodes: it says what each of them does", field=_option(name))
        return None
    cluster = ClusterSize(options.nodes, options.per_node or PER_NODE)
    in_containers = any(workload.images for workload in estimate.workloads)
    return plan_cluster(estimate, config.operation, cluster, _pace(options, measured, in_containers), options.image_gib)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _pace(options: PlanOptions, measured: Pace | None, in_containers: bool) -> Pace:
    """What the command line says comes first, then what a run showed, then what is assumed."""
    said = "as said"
    if options.call_seconds is None and measured is not None:
        extra = options.trial_seconds or 0.0
        more = f", and {extra:g} s more a trial ({said})" if extra else ""
        return Pace(measured.call, extra, f"{measured.basis}{more}")
    call = CALL_SECONDS if options.call_seconds is None else options.call_seconds
    usual = TRIAL_SECONDS if in_containers else 0.0
    execution = usual if options.trial_seconds is None else options.trial_seconds
    whence = ["assumed" if value is None else said for value in (options.call_seconds, options.trial_seconds)]
    return Pace(
        call,
        execution,
        f"an instance takes {call:g} s a call, with what is done upon its answer ({whence[0]}), and {execution:g} s a "
        f"trial beside them, for its environment and its grading ({whence[1]})",
    )


def plan_table(plan: ClusterPlan) -> Table:
    """A plan as a table: a row for each case."""
    title = f"on {plan.nodes} node{'s' if plan.nodes != 1 else ''}, {plan.in_hand} instances in hand"
    columns = ("case", "hours", "days", "node-hours", "calls", "usd", "calls/s")
    return Table(title, columns, tuple(_row(name, case) for name, case in plan.cases.items()))


def _row(name: str, case: PlannedCase) -> tuple[str, ...]:
    usd = f"{case.spent.usd:.2f}" if case.spent.usd >= 100 else f"{case.spent.usd:.4f}"
    taken = f"{case.hours:.2f}", f"{case.hours / _DAY:.2f}", f"{case.node_hours:.1f}"
    return name, *taken, str(case.spent.calls), usd, f"{case.calls_per_second:.2f}"


def plan_lines(plan: ClusterPlan) -> Iterator[str]:
    """What a plan assumes, a line each, and what its nodes must hold."""
    yield f"nodes: {plan.pace.basis}"
    yield (
        f"nodes: {plan.in_hand} instances in hand in all, until fewer are left; the last one ends as late as it may; "
        f"say `operation.workers: {plan.in_hand}`"
    )
    for name, case in plan.cases.items():
        if case.limited_by:
            yield f"nodes: the {name} case waits for {printable(case.limited_by)}'s limit of requests, not for nodes"
    for images in plan.images:
        yield (
            f"{images.benchmark}: {images.images} container images: {images.gib:.1f} GiB of disk on every node that "
            f"fetches all of them, {images.share_gib:.1f} GiB where it fetches the {images.share} of its share as they "
            "are needed; without layers that all share"
        )


def plan_json(plan: ClusterPlan) -> dict[str, Any]:
    """A plan for programs."""
    return asdict(plan)
