"""`stepdown agent record`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click

from stepdown.builder.cli import console
from stepdown.builder.cli.labelling import WORK_LEFT
from stepdown.builder.cli.stopping import stop_on_signals
from stepdown.builder.common.text import printable
from stepdown.builder.config.loading import load_config
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Verdict

_path = click.Path(path_type=Path)


@click.group("agent")
def command() -> None:
    """Record what agent programs do, as seeds."""


@command.command()
@click.argument("config", type=_path)
@click.option("--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="The seed file to write.")
@click.option("--model", help="The strong model that answers, by its name in the pool; by default the first.")
@click.option("--workload", type=int, default=1, show_default=True, help="Which of the config's workloads, from 1.")
@click.option("--task", "tasks", multiple=True, help="Only the task of this id; repeatable.")
def record(config: Path, out: Path, model: str | None, workload: int, tasks: tuple[str, ...]) -> None:
    """Run your agent on the tasks of CONFIG, a strong model answering it, and keep the trajectories that pass.

    A config takes the result as `seeds: {source: import, file: OUT}`. Each answer is kept as it comes, in the config's
    cache or in the folder OUT.answers, so that nothing is paid for twice. Tasks that OUT has already are passed over.

    \b
    stepdown agent record agent.yaml --out seeds.jsonl
    stepdown agent record agent.yaml --out seeds.jsonl --model strong --task greet

    Exit codes: 0 where every task has a trajectory, 3 where some have none.
    """
    from stepdown.builder.engine.recording import record_seeds, recorded_ids
    from stepdown.builder.engine.workloads import load_workload

    loaded = load_config(config)
    console.name_foreign_code(loaded.protocol)
    name = _strong(loaded.protocol, model)
    loaded.check_keys(only={name})
    index = _place(loaded.protocol, workload)
    harness = load_workload(loaded.protocol, index)
    if started := harness.harness.runs_here:
        console.notify(f"workload {harness.harness.name} runs on this machine, unconfined: {started}")
    there, stop = recorded_ids(out), threading.Event()
    answers = loaded.operation.cache or out.with_name(f"{out.name}.answers")
    kept = failed = 0
    again = f"the same command, which keeps what is in {out}"
    with stop_on_signals(stop, again), _appended(out) as file:
        left = (lambda one: one not in there) if not tasks else (lambda one: one in tasks and one not in there)
        for one in record_seeds(loaded, index, harness, name, answers, left, stop):
            outcome = one.outcome
            passed = outcome.verdict is Verdict.PASS
            steps = f"{len(outcome.trajectory)} steps"
            console.notify(printable(f"{one.instance.id}: {outcome.verdict}, {outcome.reason or steps}"))
            kept, failed = kept + passed, failed + (not passed)
            if passed:
                file.write(one.line)
                file.flush()
    console.stdout().print(f"{kept} trajectories by {name} in {out}, {failed} tasks without", markup=False)
    if failed:
        raise SystemExit(WORK_LEFT)


def _strong(protocol: ProtocolConfig, model: str | None) -> str:
    """The strong model that answers. Raises BadInput for another one."""
    names = [one.name for one in protocol.pool.tiers[-1].models]
    if model is not None and model not in names:
        raise BadInput(f"{model!r} is no model of the pool's strong tier ({', '.join(names)})", field="--model")
    return model or names[0]


def _place(protocol: ProtocolConfig, workload: int) -> int:
    if not 1 <= workload <= len(protocol.workloads):
        raise BadInput(f"the config has {len(protocol.workloads)}", field="--workload")
    return workload - 1


@contextmanager
def _appended(out: Path) -> Iterator[IO[str]]:
    """The file, to add lines to. Raises BadInput where it can not be written."""
    try:
        file = out.open("a", encoding="utf-8")
    except OSError as error:
        raise BadInput(error.strerror or str(error), file=out) from None
    with file:
        yield file
