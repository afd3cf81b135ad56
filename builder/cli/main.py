"""The `stepdown` command: arguments in, exit codes out. A subcommand is imported when it is called."""

from __future__ import annotations

import sys
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click

from stepdown.builder.common.secrets import SECRETS
from stepdown.builder.common.text import nearest, printable
from stepdown.builder.errors import Interrupted, StepdownError

BAD_INPUT, INTERRUPTED = 2, 130
"""Exit codes, beside 0 for finished and `labelling.WORK_LEFT`."""

COMMANDS = {
    "init": "Write a commented config that runs, with sample tasks or an example workload.",
    "build": "Label the workloads of CONFIG into the run's folder.",
    "resume": "Go on with an interrupted or blocked run at the very next trial.",
    "status": "Say where RUN stands: instances by state, labels so far, what was spent.",
    "explain": "Show every trial that led to a row's label.",
    "view": "Show RUN in a browser: every instance, step and trial, with answers, verdicts and costs.",
    "diff": "Say which labels moved between two runs, and why.",
    "relabel": "Make a new version of a run for a changed config; only what the change reaches is paid for.",
    "estimate": "Say what labelling the workloads of CONFIG will take: calls and list price, by model.",
    "install": "Install what a part of stepdown needs: local models, or a workload.",
    "doctor": "Say what this machine can run; with CONFIG, whether all that it needs is here.",
    "cluster": "Make the nodes of a Ray cluster ready for a run.",
    "cache": "Look into a response cache, check it, and remove what no run needs any more.",
    "seeds": "Make seed files of what other tools recorded.",
    "harness": "Try a workload of your own on all that the contract asks.",
    "agent": "Record what agent programs do, as seeds.",
    "audit": "Have people check a sample of the labels.",
    "judge": "Try a judge on one answer; measure a judge, or recorded scores, against human ratings.",
    "publish": "Make one release of finished runs: a data set that others can load and check.",
    "verify": "Check a release, whoever made it, against every gate that a release must pass.",
    "push": "Bring a release to the Hugging Face Hub.",
    "route": "Make a router from labels, and run it.",
    "live": "Have policies execute tasks, and compare their bills.",
    "continue": "Execute frozen steps under variants of their messages, and tabulate outcomes and transitions.",
    "compare": "Say what fixed models and routers are worth on a grid of outcomes, without hindsight.",
    "score": "Score a router's tiers for the rows of a release or run.",
    "schema": "Print the JSON schema of a config file, for editors.",
    "report": "Show what a run or a release holds, as tables or as one page with plots.",
}
"""Every subcommand with its line in `--help`; `NAME` is `command` in the module of that name beside this one, or of
that name with `_` after it where it is a word of Python's own."""


SLOW = frozenset(
    {
        "build",
        "cluster",
        "compare",
        "continue",
        "estimate",
        "judge",
        "live",
        "publish",
        "push",
        "relabel",
        "report",
        "resume",
        "score",
    }
)
"""Commands whose libraries may take seconds to load: on a terminal they say at once that they have begun."""


class _LazyGroup(click.Group):
    """Imports a subcommand only when it is called, and turns every error that stepdown raises on purpose into one line
    and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            if not ctx.resilient_parsing and (near := nearest(cmd_name, COMMANDS)):
                ctx.fail(f"No such command {cmd_name!r}: did you mean {near!r}?")
            return None
        if cmd_name in SLOW and not ctx.resilient_parsing and sys.stderr.isatty():
            click.echo(f"starting {cmd_name}", err=True)
        module = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command: click.Command = import_module(f"stepdown.builder.cli.{module}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (Interrupted, KeyboardInterrupt):
            sys.exit(INTERRUPTED)
        except StepdownError as error:
            click.echo(f"stepdown: {printable(SECRETS.hidden(str(error)), longest=2000)}", err=True)
            sys.exit(BAD_INPUT)
        except BrokenPipeError:
            raise  # click ends quietly where the reader of a pipe has gone
        except OSError as error:
            click.echo(f"stepdown: {printable(SECRETS.hidden(str(error)))}", err=True)
            sys.exit(BAD_INPUT)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="stepdown")
def main() -> None:
    """Build datasets of step-level tier labels: for every LLM call of a passing agent trajectory, the cheapest model
    tier that still lets the whole task pass, proved by executing the mixed-model run.

    \b
    Start here:
      stepdown doctor                            what this machine can run
      stepdown install local                     two small models that run here
      stepdown doctor quickstart                 what a first run lacks, and how to install it
      stepdown estimate quickstart               what a run will cost, before it does
      stepdown build quickstart --run runs/q     real labels from local models
      stepdown status runs/q                     where a run stands
      stepdown resume runs/q                     go on after an interruption
      stepdown explain runs/q ROW_ID             why a step has its label
      stepdown view runs/q                       what happened, step by step, in a browser
      stepdown report runs/q --out report.html   what its labels look like, and what they would save
      stepdown audit sample runs/q               steps for people to check
      stepdown publish runs/q --out release      a data set that others can load and check
      stepdown push release ORG/NAME             the same on the Hugging Face Hub
      stepdown score release predictions.jsonl   how well a router's tiers do against a release

    CONFIG is a YAML file, or the bare name of a config that comes with stepdown: `doctor` lists them.

    Exit codes: 0 finished, 2 bad input, 3 stopped with work left, 130 interrupted.
    """
