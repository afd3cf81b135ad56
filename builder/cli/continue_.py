"""`stepdown continue`: frozen steps go on under variants of their messages, and their outcomes stand side by side."""

from __future__ import annotations

import shlex
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepdown.builder.cli import console
from stepdown.builder.cli.documents import print_document
from stepdown.builder.cli.labelling import WORK_LEFT
from stepdown.builder.cli.stopping import stop_on_signals
from stepdown.builder.common.extras import require
from stepdown.builder.common.tables import print_table
from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput, BudgetReached
from stepdown.builder.records import OutcomeState

if TYPE_CHECKING:
    from stepdown.builder.continuations.run import Carried
    from stepdown.scoring.continuations.analysis import Analysis

_FACTORS = ("context", "feedback", "model", "stage", "condition")


@click.command("continue")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="The folder of the plan's continuations; made if needed.")
@click.option(
    "--mask",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="CSV or JSONL: matched sets that no figure shall hold, by `parent`, `checkpoint`, or that and `draw`.",
)
@click.option("--by", "told_apart", default="model", show_default=True, help="Factors to tell apart, with commas.")
@click.option(
    "--features",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="CSV or JSONL: numbers by `parent`, `checkpoint` or cell, to predict an outcome by.",
)
@click.option(
    "--predict",
    "predicted",
    type=click.Choice([state.value for state in OutcomeState if state is not OutcomeState.TECHNICAL]),
    default=OutcomeState.UNSAFE.value,
    show_default=True,
    help="The outcome that --features predict.",
)
@click.option("--resamples", type=click.IntRange(0, 100_000), default=5000, show_default=True, help="0: no intervals.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the resamples.")
@click.option("--csv", "tables", type=click.Path(path_type=Path, file_okay=False), help="Also write the tables here.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
def command(
    plan: Path, out: Path | None, mask: Path | None, told_apart: str, features: Path | None, predicted: str,
    resamples: int, seed: int, tables: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Execute the frozen steps of PLAN under variants of their messages, each to its end, and tabulate what came of it.

    PLAN is a YAML file: checkpoints (a run, a task, a step), contexts (a text kept, or a neutral one of equal length in
    its place), feedback (a message that is appended), models of a config's pool, draws. Every combination is a cell.
    Its environment goes on live from the checkpoint, and comes to one of five states: unsafe, complete, refused,
    technical, incomplete. Or PLAN is a folder that --out named before: nothing is executed.

    \b
      transitions   how states change where one thing alone differs: context, feedback, model, stage, condition
      rescue        not complete under one model, complete under the other
      loss          complete under one model, not complete under the other
      persistent    unsafe under both

    OUT holds `checkpoints.jsonl` and `cells.jsonl`, the record of every cell. Intervals draw whole parents again. A
    technical cell says nothing about a model: it is shown, is in no share, and is executed again by the same command,
    which also goes on after an interruption and pays for nothing twice.
    """
    require("route", "numpy", "scipy", "sklearn")
    from stepdown.builder.continuations.cells import FILE
    from stepdown.scoring.continuations.analysis import AnalysisSettings, analyse
    from stepdown.scoring.continuations.reading import masked_cells, read_cells, read_features

    settings = AnalysisSettings(_factors(told_apart), resamples, seed)
    carried, reached = None, None
    if plan.is_dir():
        if out is not None:
            raise click.UsageError("--out goes with a plan: this is a folder of continuations")
        folder = plan
    elif out is None:
        raise click.UsageError("--out is needed: the folder in which the plan's continuations stand")
    else:
        folder = out
        carried, reached = _carry_out(plan, out)
    if not (folder / FILE).is_file():
        raise BadInput(f"holds no {FILE}: give the plan", file=folder)
    cells = read_cells(folder / FILE)
    left = masked_cells(cells, mask)
    given = read_features(features, left.cells) if features is not None else None
    found = analyse(left.cells, settings, left.excluded, given, OutcomeState(predicted))
    if tables is not None:
        from stepdown.builder.cli.continuation_tables import write_tables

        write_tables(found, tables)
    if as_json:
        print_document(found)
    else:
        _print(found)
    _say_what_is_left(plan, folder, carried, reached)


def _factors(given: str) -> tuple[str, ...]:
    named = tuple(part.strip() for part in given.split(",") if part.strip())
    if unknown := next((name for name in named if name not in _FACTORS), None):
        raise click.BadParameter(f"{unknown!r} is none of {', '.join(_FACTORS)}", param_hint="--by")
    return named


def _carry_out(plan: Path, out: Path) -> tuple[Carried | None, BudgetReached | None]:
    from stepdown.builder.continuations.plan import load_plan
    from stepdown.builder.continuations.run import continue_plan
    from stepdown.builder.engine.progress import RunProgress

    loaded = load_plan(plan)
    protocol = loaded.config.protocol

    def begins() -> None:
        judges = [model.name for model in protocol.judge.models] if protocol.judge else []
        loaded.config.check_keys(only={*loaded.models, *judges})
        console.name_foreign_code(protocol)

    progress = RunProgress(worked_at="cells", counted="decisions", notify=console.notify)
    stop = threading.Event()
    with stop_on_signals(stop, _again(plan, out)), console.show_progress(progress):
        try:
            return continue_plan(loaded, out, stop, progress, begins), None
        except BudgetReached as budget:
            return None, budget


def _again(plan: Path, out: Path) -> str:
    return shlex.join(["stepdown", "continue", str(plan), "--out", str(out)])


def _print(found: Analysis) -> None:
    from stepdown.builder.cli.continuation_tables import lines_of, tables_of

    out = console.wide()
    for table in tables_of(found):
        print_table(out, table)
    for line in lines_of(found):
        out.print(printable(line, 2000), markup=False)


def _say_what_is_left(plan: Path, folder: Path, carried: Carried | None, reached: BudgetReached | None) -> None:
    if reached is not None:
        again = _again(plan, folder)
        click.echo(
            f"stepdown: {reached}; to go on, raise `operation.budget.{reached.name}` and give: {again}", err=True
        )
        sys.exit(WORK_LEFT)
    if carried is not None and carried.technical:
        click.echo(
            f"{carried.technical} of {carried.cells} cells are technical, for the reasons above; when the cause is "
            f"gone: {_again(plan, folder)}",
            err=True,
        )
        sys.exit(WORK_LEFT)
