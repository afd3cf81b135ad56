"""`stepdown live`: policies execute tasks, and their bills stand side by side."""

from __future__ import annotations

import shlex
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from stepdown.builder.cli import console
from stepdown.builder.cli.documents import print_document
from stepdown.builder.cli.labelling import WORK_LEFT
from stepdown.builder.cli.stopping import stop_on_signals
from stepdown.builder.common.extras import require
from stepdown.builder.common.tables import Table, print_table
from stepdown.builder.common.text import printable
from stepdown.builder.config.loading import load_config
from stepdown.builder.engine.progress import RunProgress
from stepdown.builder.errors import BudgetReached


@click.command("live")
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--policy",
    "named",
    multiple=True,
    required=True,
    help="A policy's folder, a YAML file of a model to ask, always:TIER, chance, rules, uncommon-route, labels:RUN (the"
    " labels of a run or release) or module:Class (code of yours, which runs here). Give it again for several policies "
    "on the same tasks.",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The live run's folder; made if needed.")
@click.option(
    "--penalty", type=click.FloatRange(0), default=0.60, show_default=True, help="USD for an unresolved task."
)
@click.option(
    "--cache-life",
    type=click.FloatRange(0),
    default=300.0,
    show_default=True,
    help="Seconds a provider keeps a prompt.",
)
@click.option(
    "--most-calls", type=click.IntRange(1), default=250, show_default=True, help="Calls of one task, at most."
)
@click.option(
    "--export",
    "exported",
    type=click.Choice(["twinrouterbench"]),
    help="Also write, into OUT, what that benchmark's own scorer reads.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the bills as one JSON object.")
def command(
    config: Path, named: tuple[str, ...], out: Path, penalty: float, cache_life: float, most_calls: int,
    exported: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Execute the tasks of CONFIG, every call by the model that a policy chooses, to the workload's own verdict.

    The bill of a policy is the list price of its calls and a penalty for each task that it leaves unresolved. Policies
    are compared on the same tasks; intervals come from drawing groups of tasks again. Every step is kept before the
    next one is begun: the same command goes on after an interruption. A task on which the apparatus fails is executed
    again by the same command, and is never counted as unresolved.
    """
    require("route", "numpy")
    from stepdown.routing.live.bill import bills
    from stepdown.routing.live.driving import LiveSettings
    from stepdown.routing.live.policies import live_policies
    from stepdown.routing.live.run import run_live
    from stepdown.routing.live.store import LiveStore

    loaded = load_config(config)
    console.name_foreign_code(loaded.protocol)
    for name in named:
        console.name_policy_code(name, config.parent)
    policies = live_policies(named, loaded.protocol.pool, config.parent)
    progress = RunProgress(counted="steps", notify=console.notify)
    stop, again = threading.Event(), f"the same command (it goes on in {shlex.quote(str(out))})"
    settings = LiveSettings(cache_life, penalty, most_calls)
    reached = None
    with stop_on_signals(stop, again), console.show_progress(progress):
        try:
            run_live(loaded, policies, out, settings, stop, progress)
        except BudgetReached as budget:
            reached = budget
    store = LiveStore(out, "ro")
    try:
        tasks = list(store.tasks())
    finally:
        store.close()
    names = [policy.name for policy in policies]
    found = bills(tasks, names, penalty)
    if exported:
        from stepdown.routing.live.export import write_twinrouterbench

        write_twinrouterbench(out / exported, tasks, loaded.protocol.pool)
    if as_json:
        print_document({"live": asdict(settings), "policies": [asdict(one) for one in found]})
    else:
        _print(found)
    if reached is not None:
        click.echo(f"stepdown: {reached}; to go on, raise `operation.budget` and give {again}", err=True)
        sys.exit(WORK_LEFT)
    if any(one.technical for one in found):
        click.echo(f"some tasks are technical; when the cause is gone: {again}", err=True)
        sys.exit(WORK_LEFT)


def _print(found: Sequence[object]) -> None:
    from stepdown.routing.live.bill import PolicyBill

    each = [one for one in found if isinstance(one, PolicyBill)]
    tiers = sorted({tier for one in each for tier in one.calls_by_tier})
    out = console.stdout()
    print_table(
        out,
        Table(
            "bills on the tasks that every policy has finished",
            ("policy", "tasks", "resolved", "technical", "calls", "USD", "bill", "95% interval", "over the first"),
            tuple(
                (
                    printable(one.policy), str(one.tasks), str(one.resolved), str(one.technical), str(one.calls),
                    f"{one.usd:.4f}", f"{one.bill.value or 0.0:.4f}", _interval(one.bill.low, one.bill.high),
                    "" if one.over_first is None
                    else f"{one.over_first.value or 0.0:+.4f} ({_interval(one.over_first.low, one.over_first.high)})",
                )
                for one in each
            ),
            note="bill: list price of the calls, and the penalty for each unresolved task. Intervals draw whole groups",
        ),
    )  # fmt: skip
    print_table(
        out,
        Table(
            "calls by tier",
            ("policy", *tiers, "no answer", "prompt cached"),
            tuple(
                (
                    printable(one.policy), *(str(one.calls_by_tier.get(tier, 0)) for tier in tiers),
                    str(one.fell_back), f"{100 * one.cached_share:.1f}%",
                )
                for one in each
            ),
        ),
    )  # fmt: skip


def _interval(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{low:.4f}..{high:.4f}"
