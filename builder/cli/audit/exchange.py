"""`stepdown audit export` and `stepdown audit import`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from stepdown.audit.cases import CaseReader, open_cases
from stepdown.audit.exchange import FORMATS
from stepdown.audit.exchange.incoming import CheckedAnswers, check_answers
from stepdown.audit.exchange.records import OutgoingStep
from stepdown.audit.store import AuditStore
from stepdown.audit.verdicts import reviewer_name
from stepdown.builder.common.files import whole_text_file, write_text
from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput

_SHOWN = 20
"""Answers that were not submitted, named at most."""

_run = click.argument("run", type=click.Path(path_type=Path))


_format = click.option(
    "--format",
    "kind",
    type=click.Choice(list(FORMATS)),
    help="By default csv for a .csv file and jsonl for a .jsonl file.",
)


@click.command("export")
@_run
@click.option("-o", "--output", "file", required=True, type=click.Path(path_type=Path), help="`-` for standard output.")
@_format
@click.option(
    "--reviewer", "names", multiple=True, help="Whose queue to write; by default that of every known reviewer."
)
def _export(run: Path, file: Path, kind: str | None, names: tuple[str, ...]) -> None:
    """Write the sampled steps of RUN for review in another tool, with the verdicts given so far.

    A record holds the prefix, the label, the locked response, and what the tier below answered. It names no model.
    Steps whose label is the lowest tier are left out: nothing is below it, so they settle themselves. Fill in `verdict`
    (tight, uncertain or further-downgradeable) and `notes`, and take the file back with `stepdown audit import`. Leave
    `id`, `reviewer` and `prefix` as they are.

    label-studio writes tasks and a labelling config; argilla writes records and the dataset's settings.
    """
    form = FORMATS[_format_name(file, kind)]
    with open_cases(run) as cases, AuditStore(run) as store:
        known = set(store.reviewers.names())
        reviewers = [reviewer_name(name, field="--reviewer") for name in names] or sorted(known) or [""]
        steps = (step for reviewer in reviewers for step in _read_queue(store, cases, reviewer))
        if str(file) == "-":
            form.write(steps, sys.stdout)
            return
        try:
            with _open_whole(file) as out:
                count = form.write(steps, out)
            for ending, text in form.beside.items():
                write_text(file.with_name(file.stem + ending), text)
        except OSError as error:
            raise BadInput(f"can not be written: {error.strerror}", file=file) from None
    click.echo(printable(f"{count} steps for {', '.join(filter(None, reviewers)) or 'a reviewer'}: {file}"))
    for ending in form.beside:
        click.echo(printable(str(file.with_name(file.stem + ending))))


@contextmanager
def _open_whole(file: Path) -> Iterator[TextIO]:
    """Open the file to write. An older file there, perhaps with answers, is replaced only when all is written."""
    if file.exists() and not file.is_file():  # a pipe, a terminal
        with file.open("w", encoding="utf-8", newline="") as out:
            yield out
        return
    with whole_text_file(file.resolve()) as out:
        yield out


def _read_queue(store: AuditStore, cases: CaseReader, reviewer: str) -> Iterator[OutgoingStep]:
    for item in store.queue(reviewer):
        step = item.step
        case = cases.read(step.benchmark, step.instance_id, step.step_index)
        yield OutgoingStep(case, reviewer, item.verdict, item.notes)


@click.command("import")
@_run
@click.argument("file", type=click.Path(path_type=Path))
@_format
@click.option("--reviewer", help="Who gave the answers. Answers that name somebody else are refused.")
def _import(run: Path, file: Path, kind: str | None, reviewer: str | None) -> None:
    """Take a reviewed FILE back into the audit of RUN.

    Refused are unknown ids, duplicates, invalid verdicts, answers to another prefix than the step's (its digest
    differs), answers that their reviewer has changed since, and answers of somebody else than --reviewer. If there is
    any problem, every one is listed with its line, nothing of the file is taken, and the exit code is 2.

    Steps without a verdict are skipped, and so are answers that were not submitted in the tool: drafts, discarded or
    cancelled ones, which are counted and named. A new verdict on a step replaces the reviewer's earlier one, which
    stays in the log.
    """
    form = FORMATS[_format_name(file, kind)]
    name = reviewer_name(reviewer, field="--reviewer") if reviewer else None
    with open_cases(run) as cases, AuditStore(run) as store:
        found = check_answers(store, cases, file, form.read(file), name)
        for problem in found.problems:
            click.echo(f"stepdown: {printable(problem, longest=2000)}", err=True)
        if found.problems:
            click.echo(
                f"stepdown: {len(found.problems)} problems: nothing of {printable(str(file))} is taken", err=True
            )
            sys.exit(2)
        store.record_all(found.verdicts)
    click.echo(f"{len(found.verdicts)} verdicts taken, {found.unchanged} stood already, {found.blank} steps have none")
    tell_of_answers(found)


def tell_of_answers(found: CheckedAnswers) -> None:
    """What else there is to know of the answers that were taken, and of those that were not."""
    if found.idle:
        click.echo(f"{found.idle} of them are on labels of the lowest tier, which settle themselves", err=True)
    if found.unsubmitted:
        shown = ", ".join(found.unsubmitted[:_SHOWN]) + ", ..." * (len(found.unsubmitted) > _SHOWN)
        count = len(found.unsubmitted)
        told = f"not submitted, and not taken: {count} answer{'s' * (count > 1)}: {shown}"
        click.echo(printable(told, longest=2000), err=True)
    if found.noted:
        click.echo(f"{found.noted} of these have notes, which are not taken without a verdict", err=True)
    if found.strangers:
        click.echo(printable(f"reviewers that the audit did not know: {', '.join(found.strangers)}"), err=True)


def _format_name(file: Path, kind: str | None) -> str:
    """The format that is named, or else the one of the file's ending. Raises BadInput."""
    by_name = {".csv": "csv", ".jsonl": "jsonl"}.get(file.suffix)
    if found := kind or by_name:
        return found
    raise BadInput(f"which format? name one with --format ({', '.join(FORMATS)})", file=file)


commands = (_export, _import)
