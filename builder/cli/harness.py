"""`stepdown harness check`."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepdown.builder.cli.documents import print_document
from stepdown.builder.common.secrets import SECRETS
from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput

if TYPE_CHECKING:
    from stepdown.harnesses.base import Harness
    from stepdown.testing.words import Breach

BROKEN = 3
"""The exit code for a harness that breaks its contract."""


@click.group("harness")
def command() -> None:
    """Try a workload of your own on all that the contract asks."""


@command.command()
@click.argument("harness", metavar="MODULE:CLASS")
@click.option("--source", metavar="JSON|FILE", help="What a config would hold as the workload's `source`.")
@click.option("--options", metavar="JSON|FILE", help="What a config would hold as its `options`.")
@click.option("--answers", metavar="FILE", help="A seed file whose steps are played, where there is no `reference`.")
@click.option("--model", "models", multiple=True, help="A further pseudo-model, tried with wrong answers; repeatable.")
@click.option("--most", type=click.IntRange(1), default=2, show_default=True, help="How many instances are played.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def check(
    harness: str,
    source: str | None,
    options: str | None,
    answers: str | None,
    models: tuple[str, ...],
    most: int,
    as_json: bool,
) -> None:
    """Try a harness, MODULE:CLASS of your own or the name of an installed one, on all that its contract asks.

    Instances are played again and again: twice alike, from every checkpoint, beside each other, with hostile answers
    and with the right ones broken in every part, and in a fresh interpreter to which they are carried by pickle. The
    answers are those of the pseudo-model `reference`, which must pass. A finding is a line, with the file and line of
    your code that raised, or of the part that is to blame. `stepdown.testing.check_harness` is the same as a test.

    \b
    stepdown harness check game:Guessing --source '{"numbers": [17, 58]}'
    stepdown harness check maze:Maze --source mazes.json --most 5

    Exit codes: 0 where it keeps to the contract, 3 where it does not, 2 where it, or its source, can not be read.
    """
    from stepdown.harnesses.own_code import told_of
    from stepdown.harnesses.registry import harness_class, make_harness
    from stepdown.testing.suite import Suite

    given, taken = _mapping(source, "--source"), _mapping(options, "--options")
    module, is_own, _ = harness.partition(":")
    if is_own and (place := told_of(module, None)):
        click.echo(printable(f"loading {harness} from {place}: its code runs here"), err=True)
    made = harness_class(harness)
    _try_source(make_harness(made, taken), given)
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(made, given, taken, _answers(answers), Path(folder), models)
        breaches = list(suite.breaches(most))
    if as_json:
        shown = [_told(breach) for breach in breaches]
        print_document({"ok": not breaches, "harness": harness, "findings": shown})
    else:
        for breach in breaches:
            click.echo(_line(breach))
        if not breaches:
            click.echo(f"ok: {harness} keeps to the contract on what was played")
    if breaches:
        count = f"{len(breaches)} finding{'s' if len(breaches) > 1 else ''}"
        click.echo(f"stepdown: {harness} breaks the contract of a harness: {count}", err=True)
        sys.exit(BROKEN)


def _try_source(harness: Harness, source: dict[str, Any]) -> None:
    """Raises BadInput where the harness refuses its source; whatever else it raises is a finding."""
    try:
        for _ in harness.instances(source):
            break
    except BadInput:
        raise
    except Exception:
        return


def _mapping(given: str | None, name: str) -> dict[str, Any]:
    """A mapping as JSON or as the name of a file, which may be YAML too. Raises BadInput."""
    if given is None:
        return {}
    if not given.lstrip().startswith(("{", "[")):
        from stepdown.builder.config.validation import read_yaml

        return read_yaml(Path(given))
    try:
        value = json.loads(given)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON: {error}", field=name) from None
    if not isinstance(value, dict):
        raise BadInput("must be a mapping of keys to values", field=name)
    return value


def _answers(file: str | None) -> Any:
    """The answers of a seed file, by instance; None where the reference is to give them."""
    if file is None:
        return None
    from stepdown.builder.engine.seeds import recorded_responses

    recorded = recorded_responses(Path(file))
    return lambda instance: recorded.get(instance.id, ())


def _line(breach: Breach) -> str:
    return printable(SECRETS.hidden(f"{_place(breach)}{breach.words}"), longest=2000)


def _place(breach: Breach) -> str:
    from stepdown.harnesses.own_code import shown

    return f"{shown(breach.place.file)}:{breach.place.line}: " if breach.place is not None else ""


def _told(breach: Breach) -> dict[str, Any]:
    place = breach.place
    return {
        "what": SECRETS.hidden(breach.words),
        "file": str(place.file) if place is not None else None,
        "line": place.line if place is not None else None,
    }
