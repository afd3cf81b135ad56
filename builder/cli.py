"""The `stepdown` command: arguments in, exit codes out."""

from __future__ import annotations

import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from builder import config as configs
from builder import console, doctor, release, runs
from builder.build import Build
from builder.commands import (
    audit,
    cache,
    diff,
    estimate,
    explain,
    judge,
    publish,
    relabel,
    report,
    score,
    seeds,
    verify,
)
from builder.commands.stopping import INTERRUPTED, stopping
from builder.config import Config
from builder.errors import BadInput, BudgetReached, Interrupted, RunStopped, StepdownError
from builder.ledger import Ledger, State
from builder.text import printable

FINISHED, BAD_INPUT, WORK_LEFT = 0, 2, 3


class _Command(click.Group):
    """Turns every error that stepdown raises on purpose into one line and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (Interrupted, KeyboardInterrupt):
            sys.exit(INTERRUPTED)
        except StepdownError as error:
            click.echo(f"stepdown: {printable(str(error), longest=2000)}", err=True)
            sys.exit(BAD_INPUT)
        except BrokenPipeError:
            raise  # click ends quietly where the reader of a pipe has gone
        except OSError as error:
            click.echo(f"stepdown: {printable(str(error))}", err=True)
            sys.exit(BAD_INPUT)


@click.group(cls=_Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="stepdown")
def main() -> None:
    """Build datasets of step-level tier labels: for every LLM call of a passing agent trajectory, the cheapest model
    tier that still lets the whole task pass, proved by executing the mixed-model run.

    \b
    Start here:
      stepdown doctor                                       what this machine can run
      stepdown estimate configs/quickstart.yaml             what a run will cost, before it does
      stepdown build configs/quickstart.yaml --run runs/q   real labels from local models
      stepdown status runs/q                                where a run stands
      stepdown resume runs/q                                go on after an interruption
      stepdown explain runs/q ROW_ID                        why a step has its label
      stepdown report runs/q --out report.html              what its labels look like, and what they would save
      stepdown audit sample runs/q                          steps for people to check
      stepdown publish runs/q --out release                 a data set that others can load and check
      stepdown score release predictions.jsonl              how well a router's tiers do against a release

    Exit codes: 0 finished, 2 bad input, 3 stopped with work left, 130 interrupted.
    """


_config_argument = click.argument("config", type=click.Path(path_type=Path))
_run_argument = click.argument("run", type=click.Path(path_type=Path))


@main.command()
@_config_argument
@click.option(
    "--run", "folder", required=True, type=click.Path(path_type=Path), help="The run's folder; made if needed."
)
def build(config: Path, folder: Path) -> None:
    """Label the workloads of CONFIG into the run's folder.

    Every response is kept before it is used and every trial is recorded: after any interruption `stepdown resume`
    goes on at the very next trial. Building into the folder of an unfinished run of the same protocol resumes it.

    \b
    Writes into the folder:
      question_bank.jsonl   one tier-labelled prefix per step
      evidence.jsonl        the trials behind every label (names models: internal)
      audit_queue.jsonl     sampled steps for a human reviewer
      manifest.json         pool, protocol, counts, drops, digests of the files above
      spend.json            what was really paid
    """
    _label(folder, configs.load(config))


@main.command()
@_run_argument
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Go on with the `operation` part of this config (workers, addresses, keys); its protocol must be the run's.",
)
@click.option("--drop-blocked", is_flag=True, help="Give up on instances that technical errors have blocked.")
def resume(run: Path, config: Path | None, drop_blocked: bool) -> None:
    """Go on with an interrupted or blocked RUN at the very next trial. At most the calls that were in flight when it
    was killed are paid again."""
    if not runs.is_run(run):
        raise BadInput("no run is here; `stepdown build CONFIG --run DIR` begins one", file=run)
    _label(run, configs.load(config) if config else None, drop_blocked=drop_blocked)


def _label(folder: Path, config: Config | None, drop_blocked: bool = False, origin: runs.Origin | None = None) -> None:
    stop = threading.Event()
    with runs.opened(folder, config, origin) as run, stopping(stop, _resume_command(folder)):
        run.config.check_keys()
        console.name_foreign_code(run.config.protocol)
        work = Build(run, stop)
        if drop_blocked:
            click.echo(f"{run.ledger.drop_blocked()} blocked instances given up", err=True)
        work.admit()
        reached: BudgetReached | None = None
        with console.shown(work.progress), _told_how_to_go_on(folder):
            try:
                work.execute()
            except BudgetReached as error:  # what is finished is released, as where instances are blocked
                reached = error
        summary = release.write(run, work.multi_step)
        _report(run, summary)
        left = run.ledger.counts()
    if reached is not None:
        click.echo(f"stepdown: {reached}; {_after_a_budget(reached.name, folder)}", err=True)
        sys.exit(WORK_LEFT)
    if blocked := left.get(State.BLOCKED, 0):
        click.echo(
            f"{blocked} instances are blocked by technical errors, for the reasons above, and have no labels. "
            f"When the cause is gone: {_resume_command(folder)}",
            err=True,
        )
        sys.exit(WORK_LEFT)


@contextmanager
def _told_how_to_go_on(folder: Path) -> Iterator[None]:
    try:
        yield
    except RunStopped as error:
        raise RunStopped(f"{error}; what was paid for is kept; when it is mended: {_resume_command(folder)}") from None


def _report(run: runs.RunFolder, summary: release.Summary) -> None:
    out = console.stdout()
    out.print(console.label_table(summary, run.config.protocol.pool))
    for line in console.held_back(summary):
        out.print(line, markup=False)
    for name in (release.ROWS, release.EVIDENCE, release.QUEUE, release.MANIFEST, release.SPEND):
        out.print(str(run.path / name), markup=False)


def _resume_command(folder: Path) -> str:
    return f"stepdown resume {shlex.quote(str(folder))}"


def _after_a_budget(name: str, folder: Path) -> str:
    """How to go on; the time that a process may take begins anew with the next one."""
    if name == "wall_clock":
        return f"go on with: {_resume_command(folder)}"
    return f"to go on, raise `operation.budget.{name}` and: {_resume_command(folder)} --config CONFIG"


@main.command()
@_run_argument
def status(run: Path) -> None:
    """Say where RUN stands: instances by state, labels so far, what is blocked and why, what was spent.

    Reads only; a build may be working on the run meanwhile.
    """
    if not runs.is_run(run):
        raise BadInput("no run is here", file=run)
    ledger = Ledger(run, read_only=True)
    try:
        for line in console.status_lines(ledger, run):
            click.echo(line)
    finally:
        ledger.close()


@main.command("doctor")
@click.argument("config", required=False, type=click.Path(path_type=Path))
def doctor_command(config: Path | None) -> None:
    """Say what this machine can run; with CONFIG, whether all that it needs is here.

    Exit code 2 where something that CONFIG needs is missing.
    """
    findings = doctor.examine(configs.load(config) if config else None)
    for finding in findings:
        click.echo(printable(f"{'ok  ' if finding.ok else 'none'} {finding.part}: {finding.detail}"))
    if config and not all(finding.ok for finding in findings if finding.needed):
        sys.exit(BAD_INPUT)


main.add_command(estimate.command)
main.add_command(relabel.command(_label))
main.add_command(diff.command)
main.add_command(cache.group)
main.add_command(explain.command)
main.add_command(seeds.group)
main.add_command(report.command)
main.add_command(score.command)
main.add_command(judge.group)
main.add_command(audit.group)
main.add_command(publish.command)
main.add_command(verify.command)


if __name__ == "__main__":
    main()
