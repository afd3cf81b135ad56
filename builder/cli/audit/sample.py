"""`stepdown audit sample`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import click

from stepdown.audit.carry_over import AGAIN, CARRIED, GONE, ITSELF, carry_over, find_earlier_run
from stepdown.audit.corpus import assign_disputed_steps, draw_sample, load_audited_workloads, share_out_steps
from stepdown.audit.sampling import SamplingPlan
from stepdown.audit.store import AuditStore
from stepdown.audit.verdicts import reviewer_name
from stepdown.builder.cli import console
from stepdown.builder.cli.shares import ShareOption
from stepdown.builder.common.tables import Table, draw
from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput
from stepdown.builder.run.folder import open_for_reading


@click.command("sample")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--rate", type=ShareOption(), help="Share of the steps to sample; by default the run's own (0.1).")
@click.option("--seed", type=int, help="Seed of the draw; by default the run's own (0).")
@click.option(
    "--minimum",
    type=click.IntRange(0),
    default=0,
    help="Least number of steps of each stratum, as far as it has so many.",
)
@click.option(
    "--strata",
    type=click.Choice(["workload", "tier"]),
    default="workload",
    show_default=True,
    help="What the minimum applies to: each workload, or each tier of a workload.",
)
@click.option(
    "--include", multiple=True, metavar="WORKLOAD", help="Sample this workload too, though its tasks have one step."
)
@click.option(
    "--reviewers",
    metavar="NAME,NAME",
    help="Share the steps out among these; without it every reviewer gets every step.",
)
@click.option(
    "--overlap",
    type=ShareOption(),
    default=0.2,
    show_default=True,
    help="With --reviewers: the share of the steps that all of them get, to measure their agreement.",
)
@click.option("--settle", metavar="NAME", help="Give the steps on which reviewers disagree to this further reviewer.")
@click.option(
    "--from", "old", type=click.Path(path_type=Path), help="Folder of the run that RUN relabels, if it moved."
)
def command(
    run: Path,
    rate: float | None,
    seed: int | None,
    minimum: int,
    strata: Literal["workload", "tier"],
    include: tuple[str, ...],
    reviewers: str | None,
    overlap: float,
    settle: str | None,
    old: Path | None,
) -> None:
    """Draw the steps of RUN that people review, and keep the sample in RUN/audit.sqlite.

    A step is sampled if and only if hash(seed, id) is below the rate: the same steps on any machine, and after the run
    has grown. A stratum with fewer steps than --minimum is filled with the steps of its smallest hashes. A step once
    sampled stays sampled: drawing again adds steps and takes none away. A step whose label is the lowest tier settles
    itself: it counts in the sample, and nobody is asked about it.

    Workloads whose tasks have one step are left out unless --include names them: where a judge grades them, it is
    calibrated against people instead. Where RUN relabels another run that was audited, verdicts carry over if prefix,
    label and the models one tier lower are the same; else the step is queued again.

    Two reviewers who disagree on a step need a third: --settle gives such steps, and nothing else, to one. While there
    are none, that reviewer's queue is empty.
    """
    names = [reviewer_name(name, field="--reviewers") for name in reviewers.split(",")] if reviewers else []
    if len(set(names)) < len(names):
        raise BadInput("a reviewer is named twice", field="--reviewers")
    with open_for_reading(run) as (ledger, protocol):
        console.name_foreign_code(protocol)
        rules = protocol.audit
        plan = SamplingPlan(rules.rate if rate is None else rate, rules.seed if seed is None else seed, minimum, strata)
        workloads = load_audited_workloads(protocol, include)
        steps = {workload: count for workload, count in ledger.labelled_steps().items() if workload in workloads}
        if not steps:
            raise BadInput(
                f"no instance of {', '.join(workloads) or 'a workload that is audited'} is labelled yet", file=run
            )
        earlier = find_earlier_run(run, ledger, old)
        with AuditStore(run, create=True) as store:
            carried = carry_over(store, ledger, protocol, earlier) if earlier else None
            new = draw_sample(store, ledger, protocol, plan, workloads)
            share_out_steps(store, names, overlap, plan.seed)
            _report(store, steps, new)
            if none := [name for name in names if not store.progress(name).total]:
                click.echo(
                    f"no step is left for {printable(', '.join(none))}: assigned steps stay with their reviewers",
                    err=True,
                )
            if settle is not None:
                name = reviewer_name(settle, field="--settle")
                click.echo(
                    printable(f"{assign_disputed_steps(store, name)} steps on which reviewers disagree are for {name}")
                )
                if not store.progress(name).total:
                    click.echo(
                        printable(f"the queue of {name} is empty: settle again when reviewers disagree"), err=True
                    )
    if carried is not None:
        click.echo(printable(_carried_line(carried, earlier)))


def _report(store: AuditStore, labelled: Mapping[str, int], new: int) -> None:
    sampled: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for step in store.steps():
        sampled[step.benchmark] += 1
        asked[step.benchmark] += not step.lowest
    rows = (
        (workload, str(steps), str(sampled[workload]), f"{sampled[workload] / steps:.1%}", str(asked[workload]))
        for workload, steps in sorted(labelled.items())
    )
    table = Table("sample", ("workload", "steps", "sampled", "share", "for people"), tuple(rows))
    out = console.stdout()
    out.print(draw(table))
    out.print(f"{new} steps are new in the sample; it holds {sum(sampled.values())}: {store.path}", markup=False)
    if itself := sampled.total() - asked.total():
        out.print(f"labels of the lowest tier settle themselves: {itself} steps; {asked.total()} are for people")
    if not sampled:
        click.echo("no step is below the rate: name a --minimum", err=True)


def _carried_line(counts: Counter[str], earlier: Path | None) -> str:
    """How many steps' verdicts of an earlier run carried over, in one line.

    >>> _carried_line(Counter({CARRIED: 3, AGAIN: 1, ITSELF: 2}), Path("old"))
    'verdicts of old: 3 steps carried over, 1 queued again with what was said as history, 2 settle themselves, 0 gone'
    """
    return (
        f"verdicts of {earlier}: {counts[CARRIED]} steps carried over, {counts[AGAIN]} queued again with what was said "
        f"as history, {counts[ITSELF]} settle themselves, {counts[GONE]} gone"
    )
