"""`stepdown audit prelabel`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from stepdown.audit.store import AuditStore
from stepdown.audit.verdicts import AuditVerdict, PreLabel
from stepdown.builder.common.text import printable
from stepdown.builder.config.validation import Strict, read_jsonl, validated
from stepdown.builder.errors import BadInput


class _Guess(Strict):
    """A line of the file: a model's guess at one step's verdict."""

    id: str
    verdict: AuditVerdict
    notes: str = ""


@click.command("prelabel")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
def command(run: Path, file: Path) -> None:
    """Keep a model's guesses at the audit verdicts of RUN, from FILE: JSONL of `{id, verdict, notes}`.

    The review page shows a guess only after its reviewer has answered the step, so that it cannot lead. No label
    depends on it. If there is any problem, every one is listed with its line, nothing is taken, and the exit code is 2.
    """
    guesses: dict[str, PreLabel] = {}
    problems: list[str] = []
    with AuditStore(run) as store:
        sampled = {step.id: step for step in store.steps()}
        for line, data in read_jsonl(file):
            try:
                guess = validated(_Guess, data, file=file, line=line)
                if guess.id not in sampled:
                    raise BadInput(f"{guess.id[:200]!r} is not in the sample", file=file, line=line, field="id")
                if guess.id in guesses:
                    raise BadInput(f"a duplicate: {guess.id[:200]!r}", file=file, line=line, field="id")
            except BadInput as error:
                problems.append(str(error))
            else:
                guesses[guess.id] = PreLabel(guess.verdict, guess.notes)
        for problem in problems:
            click.echo(f"stepdown: {printable(problem, longest=2000)}", err=True)
        if problems:
            sys.exit(2)
        store.set_prelabels(guesses)
    click.echo(f"{len(guesses)} guesses kept; each is shown once its reviewer has answered")
    if idle := sum(sampled[step].lowest for step in guesses):
        click.echo(f"{idle} of them are on labels of the lowest tier, about which nobody is asked", err=True)
