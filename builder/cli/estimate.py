"""`stepdown estimate`: what a run will take, before it is begun; for a run that exists also what it really took."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepdown.builder.cli import console
from stepdown.builder.cli.documents import print_document
from stepdown.builder.cli.nodes import PlanOptions, made_plan, plan_json, plan_lines, plan_options, plan_table
from stepdown.builder.common import tokens
from stepdown.builder.common.tables import Table, draw
from stepdown.builder.common.text import printable
from stepdown.builder.config.loading import Config, load_config
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.engine.hints import PolicyHints
from stepdown.builder.errors import BadInput
from stepdown.builder.estimate.arithmetic import Hints
from stepdown.builder.estimate.cluster_plan import ClusterPlan
from stepdown.builder.estimate.earlier_run import NeededAndPaid, SeenInRun, read_needed_and_paid, read_seen
from stepdown.builder.estimate.hinting import hinted_in_run
from stepdown.builder.estimate.pace import Pace, read_pace
from stepdown.builder.estimate.run_estimate import (
    NO_HINTS,
    PERFECT,
    REPORT,
    ModelEstimate,
    RunEstimate,
    WorkloadAssumptions,
    estimate_run,
)
from stepdown.builder.run.folder import open_for_reading
from stepdown.builder.run.ledger import InstanceState
from stepdown.builder.run.spent import Spent

if TYPE_CHECKING:
    from rich.console import Console

_Column = tuple[str, Callable[[ModelEstimate], Spent]]
_ESTIMATED: tuple[_Column, ...] = (
    ("best", lambda model: model.best),
    ("expected", lambda model: model.expected),
    ("worst", lambda model: model.worst),
)
_NOTHING = NeededAndPaid(Spent(), Spent())
_OF_RUN: tuple[_Column, ...] = (
    ("needed", lambda model: (model.of_run or _NOTHING).needed),
    ("paid", lambda model: (model.of_run or _NOTHING).paid),
)


@click.command("estimate")
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--run",
    "folder",
    type=click.Path(path_type=Path),
    help="A run of the same workloads: the estimate goes by what it saw, and shows what it really took.",
)
@click.option(
    "--steps",
    type=click.IntRange(1, 1000),
    help="How many steps seeds that are still to be collected are assumed to have.",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help="With --run: say also what the hints of this policy would save, as it would have hinted on the run's rows. "
    "Without this option, of the policy that the config names.",
)
@plan_options
@click.option("--json", "as_json", is_flag=True, help="Print the estimate as one JSON object.")
def command(
    config: Path,
    folder: Path | None,
    steps: int | None,
    policies: tuple[str, ...],
    as_json: bool,
    **planned: Any,
) -> None:
    """Say what labelling the workloads of CONFIG will take: calls and list price of every model, at best, as
    expected, and at worst. No model is called.

    Imported and reference seeds are played to see how long they are; for seeds that are still to be collected, say
    it by --steps or name a run of the same workload by --run. With --nodes it says too how long a cluster of so many
    machines takes. What else is assumed stands below the tables.
    """
    loaded = load_config(config)
    console.name_foreign_code(loaded.protocol)
    seen, of_run, open_instances, pace = SeenInRun(), None, 0, None
    if folder is not None:
        seen, of_run, open_instances, pace = _read_run(folder)
    elif policies:
        raise BadInput("goes with --run: its rows say what a policy would hint", field="--policy")
    hinting = _read_hinting(loaded.protocol, policies, folder, config.parent) if folder is not None else {}
    estimate = estimate_run(loaded, steps, seen, of_run, hinting)
    plan = made_plan(loaded, estimate, PlanOptions(**planned), pace)
    assumptions = list(_assumptions(loaded, estimate, seen, open_instances))
    if plan is not None:
        assumptions += plan_lines(plan)
    if as_json:
        document = _json(estimate, assumptions) | ({"cluster": plan_json(plan)} if plan is not None else {})
        print_document(document)
        return
    columns = _ESTIMATED + (_OF_RUN if of_run is not None else ())
    out = console.stdout()
    if out.is_terminal:
        out.print(draw(_table(estimate, columns), sums=True))
    else:
        for row in _rows(estimate, columns):
            click.echo("\t".join(row))
    if plan is not None:
        _print_plan(plan, out)
    for line in assumptions:
        out.print(printable(line), markup=False)


def _print_plan(plan: ClusterPlan, out: Console) -> None:
    table = plan_table(plan)
    if out.is_terminal:
        out.print(draw(table))
    else:
        for row in (table.columns, *table.rows):
            click.echo("\t".join(row))


def _read_run(folder: Path) -> tuple[SeenInRun, dict[str, NeededAndPaid], int, Pace | None]:
    """What a run saw, what it needed and paid, how many of its instances are still open or blocked, and its pace."""
    with open_for_reading(folder) as (ledger, protocol):
        counts = ledger.counts()
        left = counts.get(InstanceState.OPEN, 0) + counts.get(InstanceState.BLOCKED, 0)
        return read_seen(ledger), read_needed_and_paid(ledger, protocol), left, read_pace(folder, ledger)


def _read_hinting(
    protocol: ProtocolConfig, named: Sequence[str], run: Path, folder: Path
) -> dict[str, Mapping[str, Hints]]:
    """What each policy would have hinted on the run's rows, by its name. Those of one's own are named before."""
    if not named and protocol.hints.policy is not None:
        named = [protocol.hints.policy]
    tiers = [tier.name for tier in protocol.pool.tiers]
    found = {}
    for policy in named:
        if policy != protocol.hints.policy:  # which was named with the config's other code
            console.name_policy_code(policy, folder)
        hints = PolicyHints(policy, protocol.pool, folder)
        found[printable(hints.name)] = hinted_in_run(hints, run, tiers)
    return found


def _total(estimate: RunEstimate, column: Callable[[ModelEstimate], Spent]) -> Spent:
    return sum((column(model) for model in estimate.models), Spent())


def _rows(estimate: RunEstimate, columns: Sequence[_Column]) -> Iterator[list[str]]:
    """The table as text: a header, a row for every model, and the sum."""
    yield ["tier", "model", *(f"{name} {unit}" for name, _ in columns for unit in ("calls", "usd"))]
    for model in estimate.models:
        yield [
            printable(model.tier),
            printable(model.model),
            *_cells(column(model) for _, column in columns),
        ]
    yield ["all", "", *_cells(_total(estimate, column) for _, column in columns)]


def _cells(numbers: Iterator[Spent]) -> Iterator[str]:
    for number in numbers:
        yield str(number.calls)
        yield f"{number.usd:.2f}" if number.usd >= 100 else f"{number.usd:.4f}"


def _table(estimate: RunEstimate, columns: Sequence[_Column]) -> Table:
    header, *rows = map(tuple, _rows(estimate, columns))
    return Table("estimate", header, tuple(rows), words=2)


def _json(estimate: RunEstimate, assumptions: Sequence[str]) -> dict[str, Any]:
    columns = _ESTIMATED + (_OF_RUN if any(model.of_run is not None for model in estimate.models) else ())
    return {
        "workloads": [asdict(workload) for workload in estimate.workloads],
        "models": [
            {"tier": model.tier, "model": model.model, **{name: asdict(column(model)) for name, column in columns}}
            for model in estimate.models
        ],
        "total": {name: asdict(_total(estimate, column)) for name, column in columns},
        "where_seeds_pass": asdict(estimate.where_seeds_pass),
        "searched_by_hints": {hints: asdict(spent) for hints, spent in estimate.searched.items()},
        "assumptions": list(assumptions),
    }


def _assumptions(config: Config, estimate: RunEstimate, seen: SeenInRun, open_instances: int) -> Iterator[str]:
    """What the numbers assume, a line each."""
    for workload in estimate.workloads:
        yield _seeds_line(workload)
        tiers = (tier.name for tier in config.protocol.pool.tiers)
        shares = ", ".join(f"{share:.1%} {name}" for name, share in zip(tiers, workload.shares, strict=True))
        source = "as the run's" if workload.shares_of_run else "after the paper's"
        yield f"{workload.benchmark}: expected labels, {source}: {shares}"
        if workload.failing:
            share = f"{workload.failing:.1%}"
            yield f"{workload.benchmark}: {share} of the run's instances had no seed; so expected of others"
        yield f"{workload.benchmark}: {_EARLY[workload.early]}"
    yield (
        "best: every step's first candidate passes, or all fail where that takes fewer calls; a seed that is not known "
        "to pass fails at once where that takes fewer still; worst: all fail at last"
    )
    passing = estimate.where_seeds_pass
    yield f"where every seed passes at its first attempt, at best {passing.calls} calls, ${passing.usd:.4f}"
    if (probe := config.protocol.rules.probe) != "none":
        which = "all steps" if probe == "all" else "the last step of each trajectory"
        yield (
            f"every model is tried at {which}; the table counts that where the search does not try it itself, and "
            "takes all models of a tier that passes to pass"
        )
    yield from _hint_lines(estimate)
    yield "trajectories keep their length, no two models say the same, and the cache holds no answer yet"
    yield (
        f"tokens: {tokens.CHARACTERS_PER_TOKEN} characters each; an answer has those of the seed's, "
        f"{tokens.USUAL_ANSWER} where there is no seed yet; nothing is read from a provider's prompt cache"
    )
    if config.protocol.judge is not None:
        yield (
            f"a judge's report: {REPORT.prompt:.0f} tokens beside what the last step was shown and its answer, and "
            f"{REPORT.output:.0f} of its own; at worst every try is needed"
        )
    if seen.outputs:
        yield f"answers of {', '.join(sorted(seen.outputs))}: as long as the run's in the mean"
    if seen.retried:
        per_call = seen.retried / seen.calls if seen.calls else 0.0
        yield (
            f"the run met {seen.retried} errors by another try, at {seen.calls} calls: {per_call:.3f} a call, so "
            f"{per_call * _total(estimate, lambda model: model.expected).calls:.0f} requests more are to be expected"
        )
    if open_instances:
        yield f"the run is not finished: {open_instances} of its instances are open or blocked"


def _hint_lines(estimate: RunEstimate) -> Iterator[str]:
    """What hints would save of the searching."""
    without = estimate.searched.get(NO_HINTS, Spent())
    for hints, spent in estimate.searched.items():
        if hints == NO_HINTS or not without.calls:
            continue
        whose = "perfect hints" if hints == PERFECT else f"the hints of {hints}, as on the run's rows,"
        saved = 1 - spent.calls / without.calls
        said = f"{abs(saved):.1%} {'fewer' if saved >= 0 else 'more'}"
        yield (
            f"searching with {whose} would take {spent.calls} calls, ${spent.usd:.4f}: {said} than the {without.calls} "
            f"(${without.usd:.4f}) without any"
        )


_EARLY = {
    True: "a trial that fails is known to be lost at once: it costs the candidate's call alone",
    False: "a trial that fails is played to its end",
    None: "a trial that fails is expected to be played to its end; at best it is known to be lost at once",
}


def _seeds_line(workload: WorkloadAssumptions) -> str:
    line = f"{workload.benchmark}: {workload.instances} instances, {workload.steps} steps"
    if workload.without_seed:
        line += f", {workload.without_seed} without a seed that passes"
    bases = "; ".join(f"{count} {basis}" for basis, count in sorted(workload.bases.items()))
    return f"{line}: {bases}" if bases else line
