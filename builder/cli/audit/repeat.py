"""`stepdown audit repeat`."""

from __future__ import annotations

import shlex
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from stepdown.audit.repeat import Repeated, Repeats, count_repeats, picked
from stepdown.audit.store import AuditStore
from stepdown.builder.artifacts.writing import write_artifacts
from stepdown.builder.cli import console
from stepdown.builder.cli.documents import print_document
from stepdown.builder.cli.labelling import WORK_LEFT
from stepdown.builder.cli.stopping import stop_on_signals
from stepdown.builder.common.tables import Table, draw
from stepdown.builder.config.loading import load_config
from stepdown.builder.errors import BadInput, BudgetReached
from stepdown.builder.run.folder import open_for_work


@click.command("repeat")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--times", type=click.IntRange(1, 1000), default=3, show_default=True, help="Executions of each step.")
@click.option("--steps", "most", type=click.IntRange(1), help="At most so many steps of each workload and label.")
@click.option("--workload", "workloads", multiple=True, help="Only this one.")
@click.option("--config", type=click.Path(path_type=Path), help="Work under the `operation` part of this config.")
@click.option("--json", "as_json", is_flag=True, help="The figures as JSON.")
def command(
    run: Path, times: int, most: int | None, workloads: tuple[str, ...], config: Path | None, as_json: bool
) -> None:
    """Execute sampled steps of RUN afresh: does the locked model do it again?

    At a step's prefix the model that its label was locked with answers anew, and the strong model goes on. The
    workload's own predicate decides, under the limit of calls that the label was found with. No earlier response is
    used. Calls count towards the run's budget. Executions are recorded one by one: after an interruption the same
    command goes on, and a larger --times adds to what is there.

    Counts are by workload and label, with exact 95% intervals over the executions that were made. Executions of the
    same step are alike, so as a statement about other steps the intervals are too narrow, and more so with a larger
    --times. No label and no file of a release depends on them.
    """
    stop = threading.Event()
    with AuditStore(run) as store, open_for_work(run, load_config(config) if config else None) as opened:
        sampled = {step.benchmark for step in store.steps()}
        for name in workloads:
            if name not in sampled:
                raise BadInput(f"no sampled step is of a workload {name[:100]!r}", field="--workload", file=run)
        steps = picked(store.steps(), most, opened.config.protocol.audit.seed, workloads)
        if not steps:
            raise BadInput(f"nothing is sampled yet: stepdown audit sample {run}", file=run)
        opened.config.check_keys()
        console.name_foreign_code(opened.config.protocol)
        repeats = Repeats(opened, stop, steps, times)
        reached: BudgetReached | None = None
        with (
            stop_on_signals(stop, _resume_command(run, times, most, workloads, config)),
            console.show_progress(repeats.progress),
        ):
            try:
                repeats.execute()
            except BudgetReached as error:
                reached = error
        write_artifacts(opened, repeats.multi_step)  # what was spent has changed; no other file has
        found = count_repeats(opened.ledger, steps, times)
    _print(found, as_json)
    technical = sum(one.technical for one in found.values())
    if technical:
        click.echo(
            f"{technical} executions came to no verdict for technical reasons: the same command tries again", err=True
        )
    if reached is not None:
        click.echo(f"stepdown: {reached}; raise `operation.budget.{reached.name}`, then name the --config", err=True)
    if technical or reached is not None:
        sys.exit(WORK_LEFT)


def _resume_command(run: Path, times: int, most: int | None, workloads: tuple[str, ...], config: Path | None) -> str:
    """The command that goes on with exactly this work.

    >>> _resume_command(Path("runs/q"), 3, 2, ("made",), None)
    'stepdown audit repeat runs/q --times 3 --steps 2 --workload made'
    """
    words = ["stepdown", "audit", "repeat", str(run), "--times", str(times)]
    words += ["--steps", str(most)] if most is not None else []
    words += [word for name in workloads for word in ("--workload", name)]
    words += ["--config", str(config)] if config is not None else []
    return shlex.join(words)


def _print(found: Mapping[tuple[str, str], Repeated], as_json: bool) -> None:
    if as_json:
        print_document([_as_json(*key, one) for key, one in sorted(found.items())])
        return
    rows = []
    for (workload, tier), one in sorted(found.items()):
        low, high = one.interval
        share = f"{one.passed / one.executions:.1%}" if one.executions else "-"
        counts = (str(one.steps), str(one.executions), str(one.passed), share)
        rows.append((workload, tier, *counts, console.percents(low, high), str(one.always)))
    numbers = ("steps", "executions", "passed", "%", "95% interval", "steps that always passed")
    console.wide().print(draw(Table("fresh executions", ("workload", "label", *numbers), tuple(rows), words=2)))


def _as_json(workload: str, tier: str, one: Repeated) -> dict[str, Any]:
    return {
        "workload": workload,
        "tier": tier,
        "steps": one.steps,
        "executions": one.executions,
        "passed": one.passed,
        "interval": list(one.interval),
        "always_passed": one.always,
        "technical": one.technical,
        "verdicts": dict(sorted(one.verdicts.items())),
    }
