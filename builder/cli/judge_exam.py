"""`stepdown judge exam`: judges asked about answers that code knows to be wrong, and about good ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import click

from stepdown.builder.cli.documents import print_document
from stepdown.builder.common.extras import require
from stepdown.builder.common.text import printable
from stepdown.builder.config.loading import load_config
from stepdown.builder.config.protocol import JudgeBar
from stepdown.judges import configured
from stepdown.judges.exam.probes import library_probes
from stepdown.judges.exam.tally import Tally
from stepdown.judges.prompts import prompts_digest

BELOW = 3
"""The exit code where a judge has fallen below its bar."""


@click.command("exam")
@click.option(
    "--config", required=True, type=click.Path(path_type=Path), help="The config whose `protocol.judge` is examined."
)
@click.option(
    "--probes", "most", default=120, show_default=True, type=click.IntRange(min=1), help="How many probes at most."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Another seed, other probes.")
@click.option("--all", "go_on", is_flag=True, help="Go on asking a judge that has fallen below its bar.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def exam_command(config: Path, most: int, seed: int, go_on: bool, as_json: bool) -> None:
    """Examine each judge of a config by itself on answers of known worth.

    The answers are stepdown's own. Two of three were made wrong by code, in a dozen ways: another number, unit, date or
    name, a negation, a quantifier, a comparison or an order turned round, a part left out, a claim added, an
    instruction to the judge, the answer to another question. One of three is good. The judge is asked as in a run.

    Shown are detection (wrong answers that it failed) and false alarms (good answers that it did not pass) with exact
    95% intervals. A judge is no longer asked once it is below `judge.bar` with a confidence of 99%; the exit code is
    then 3. Where the config names a cache, what was asked before is not paid again.

    \b
    stepdown judge exam --config run.yaml
    """
    require("judge", "statsmodels")
    probes = list(islice(library_probes(seed), most))
    tally, below = Tally(), dict[str, str]()
    with configured.open_judges(load_config(config)) as judges:
        names, bar = [model.name for model in judges.panel.models], judges.panel.bar
        unanswered = dict.fromkeys(names, 0)
        for number, probe in enumerate(probes, 1):
            for judge in names:
                if judge in below and not go_on:
                    continue
                observation = judges.examine(probe, judge)
                if observation is None:
                    unanswered[judge] += 1
                    continue
                tally.add(observation)
                if judge not in below and (why := tally.below(judge, bar)):
                    below[judge] = why
                    click.echo(f"{number}/{len(probes)} {judge} is below its bar", err=True)
            if number % 10 == 0:
                click.echo(f"{number}/{len(probes)}", err=True)
            if len(below) == len(names) and not go_on:
                break
        requests = judges.requests
    if as_json:
        found = tally.to_json(bar, lambda share: share.to_json())
        shown = {"judges": found, "unanswered": unanswered, "prompts": prompts_digest(), "requests": requests}
        print_document(shown)
    else:
        for line in _lines(tally, names, bar, unanswered):
            click.echo(printable(line))
        click.echo(f"prompts {prompts_digest()[:12]}, {requests} calls made now")
    sys.exit(BELOW if below else 0)


def _lines(tally: Tally, names: list[str], bar: JudgeBar, unanswered: dict[str, int]) -> Iterator[str]:
    for judge in names:
        yield f"judge {judge}"
        yield f"  detection     {tally.detection(judge)}"
        for kind, share in tally.by_kind(judge).items():
            yield f"    {kind:22}{share}"
        yield f"  false alarms  {tally.false_alarm(judge)}"
        yield f"  not believed  {tally.not_believed(judge)}"
        if unanswered[judge]:
            yield f"  no answer to {unanswered[judge]} probes, which say nothing"
        why = tally.below(judge, bar)
        yield f"  below its bar: {why}" if why else "  nothing shows that it is below its bar"
