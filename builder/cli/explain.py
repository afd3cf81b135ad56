"""`stepdown explain`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from stepdown.builder.cli.documents import as_json_option, print_document
from stepdown.builder.common.faults import is_traceback
from stepdown.builder.common.tables import Table, draw
from stepdown.builder.common.text import printable
from stepdown.builder.inspect.explain import Explained, Explanation, InstanceExplanation, StepInShort, explain
from stepdown.builder.records import Lock, Response, Stop, Verdict
from stepdown.builder.run.ledger import TrialRecord
from stepdown.builder.run.reading import open_begun_ledger

LONGEST_ANSWER = 400
LONGEST_REASON = 120
"""Characters of an answer, and of a reason where many stand together."""
COLUMNS = (
    "trial",
    "purpose",
    "tier",
    "model",
    "sample",
    "limit",
    "verdict",
    "length",
    "asked",
    "paid",
    "usd",
    "reason",
)


@click.command("explain")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("row_id", metavar="ID")
@click.option(
    "--answers",
    is_flag=True,
    help="Show what each trial's candidate answered and how that was graded, cut to the beginning.",
)
@as_json_option
def command(run: Path, row_id: str, answers: bool, as_json: bool) -> None:
    """Show every trial that led to the label of a row (ID: benchmark/instance_id/step_index) in RUN; of an instance
    (benchmark/instance_id) its seed, and each of its steps in short.

    `length` is that of the trajectory as executed; `asked` are the calls that no earlier trial had asked, `paid` those
    of them that this run paid, `usd` their list price. The rest came from the current trajectory, the cache or an
    earlier trial. Reads only.
    """
    with open_begun_ledger(run) as ledger:
        found = explain(ledger, row_id, run, answers)
    if as_json:
        print_document(_document(found))
        return
    head = _head(found) if isinstance(found, Explanation) else _instance_lines(found)
    for line in head:
        click.echo(printable(line, longest=2000))
    _print("seed", found.seeds)
    if isinstance(found, Explanation):
        _print("trials", found.trials)


def _document(found: Explanation | InstanceExplanation) -> dict[str, Any]:
    """All that is shown, whole: nothing is cut."""
    instance, tiers = found.instance, found.tiers
    about = {
        "benchmark": instance.benchmark,
        "instance_id": instance.instance_id,
        "state": instance.state,
        "reason": instance.reason,
        "seeds": [_trial(trial) for trial in found.seeds],
    }
    if isinstance(found, Explanation):
        hint = {"asked": found.hint_asked, "tier": None if found.hint is None else tiers[found.hint]}
        trials = [_trial(trial) for trial in found.trials]
        return {**about, "step": found.step, **_label(found.lock, tiers), "hint": hint, "trials": trials}
    steps = [
        {
            "step": step.step,
            **_label(step.lock, tiers),
            "trials": [
                {"model": one.trial.model, "tier": tiers[one.trial.tier], "verdict": one.verdict, "reason": one.reason}
                for one in step.trials
            ],
        }
        for step in found.steps
    ]
    return {**about, "steps": steps}


def _label(lock: Lock | None, tiers: Sequence[str]) -> dict[str, Any]:
    return {"label": tiers[lock.tier] if lock else None, "locked_with": lock.model if lock else None}


def _trial(trial: Explained) -> dict[str, Any]:
    record, cost = trial.record, trial.cost
    answer = {}
    if trial.answer is not None:
        calls = [{"name": call.name, "arguments": call.arguments} for call in trial.answer.tool_calls]
        said = {"content": trial.answer.content, "tool_calls": calls, "stop": trial.answer.stop}
        answer = {"answer": said, "grading": record.grading}
    return {
        "trial": record.id,
        "purpose": record.purpose,
        "tier": trial.tier,
        "model": record.trial.model,
        "sample": record.trial.sample.number,
        "limit": record.trial.limit,
        "verdict": record.verdict,
        **({"state": record.state} if record.state is not None else {}),
        "accepted": record.accepted,
        "superseded": record.superseded,
        "length": record.calls,
        "asked": cost.calls,
        "paid": cost.paid_calls,
        "usd": cost.usd,
        "reason": record.reason,
        "errors": record.attempts,
        **answer,
    }


def _head(found: Explanation) -> Iterator[str]:
    instance, tiers = found.instance, found.tiers
    yield f"{instance.benchmark}/{instance.instance_id}/{found.step}"
    if found.lock is not None:
        lock, steps = found.lock, len(instance.locks)
        yield f"label: {tiers[lock.tier]}, locked with {lock.model}; step {found.step} of {steps}"
    else:
        yield _no_label(found)
    yield from _seed(found)
    if not found.hint_asked:
        yield "hint: not asked for"
    else:
        yield "hint: " + (tiers[found.hint] if found.hint is not None else "none")


def _instance_lines(found: InstanceExplanation) -> Iterator[str]:
    instance = found.instance
    yield f"{instance.benchmark}/{instance.instance_id}"
    yield f"{len(instance.locks)} steps labelled" if instance.locks else _no_label(found)
    yield from _seed(found)
    for step in found.steps:
        yield _step_line(step, found.tiers)


def _step_line(step: StepInShort, tiers: Sequence[str]) -> str:
    """A step's label, and its trials in order."""
    label = f"{tiers[step.lock.tier]} ({step.lock.model})" if step.lock is not None else "no label"
    tried = ", ".join(
        f"{trial.trial.model} of {tiers[trial.trial.tier]} {verdict_words(trial)}"
        + (f" ({trial.reason[:LONGEST_REASON]})" if trial.reason else "")
        for trial in step.trials
    )
    return f"step {step.step}: {label}; tried: {tried or 'nothing'}"


def _no_label(found: Explanation | InstanceExplanation) -> str:
    instance = found.instance
    return f"no label: the instance is {instance.state.value}" + (f": {instance.reason}" if instance.reason else "")


def _seed(found: Explanation | InstanceExplanation) -> Iterator[str]:
    if (seed := found.instance.seed) is not None:
        made = next(trial.record for trial in found.seeds if trial.record.id == seed)
        yield f"seed: trial {made.id}, {made.calls} steps by {made.trial.model}"


def _print(title: str, trials: Sequence[Explained]) -> None:
    """The trials as a table on a terminal, else as lines of `name=value`; their errors before retries beneath."""
    if not trials:
        click.echo(f"{title}: none")
    elif sys.stdout.isatty():
        from stepdown.builder.cli import console  # what draws takes longer to load than all else here

        rows = tuple(tuple(_cells(trial)) for trial in trials)
        console.stdout().print(draw(Table(title, COLUMNS, rows, words=len(COLUMNS))))
    else:
        click.echo(f"{title}:")
        for trial in trials:
            pairs = zip(COLUMNS, _cells(trial), strict=True)
            click.echo("  " + " ".join(f"{name}={printable(cell)}" for name, cell in pairs))
    for trial in trials:
        for error in trial.record.attempts:
            for line in _error_lines(trial.record.id, error):
                click.echo(line)
        if trial.answer is not None:
            click.echo(f"  trial {trial.record.id}, {trial.record.trial.model} answered: {answer_words(trial.answer)}")
            if trial.record.grading is not None:
                click.echo(f"  trial {trial.record.id}, graded: {_graded(trial.record.grading)}")


def _error_lines(trial: int, error: str) -> Iterator[str]:
    """An error before a retry in one line; the traceback of a harness that broke as Python prints it."""
    if not is_traceback(error):
        yield f"  trial {trial}, before a retry: {printable(error)}"
        return
    yield f"  trial {trial}, its harness broke:"
    yield from (f"    {printable(line)}" for line in error.splitlines())


def _graded(grading: Mapping[str, Any]) -> str:
    """What a verdict rests on, cut like an answer: the evidence has all of it."""
    return printable(json.dumps(grading, ensure_ascii=False), LONGEST_ANSWER)


def answer_words(answer: Response) -> str:
    """An answer in one line: its text, its calls, and how it ended where it did not end by itself."""
    calls = (f"{call.name}({call.arguments})" for call in answer.tool_calls)
    ended = () if answer.stop is Stop.END else (f"[{answer.stop.value}]",)
    return printable(" ".join(part for part in (answer.content, *calls, *ended) if part), LONGEST_ANSWER) or "nothing"


def _cells(trial: Explained) -> list[str]:
    record, cost = trial.record, trial.cost
    return [
        str(record.id),
        record.purpose.value,
        trial.tier,
        record.trial.model,
        str(record.trial.sample.number),
        "-" if record.trial.limit is None else str(record.trial.limit),
        verdict_words(record),
        str(record.calls),
        str(cost.calls),
        str(cost.paid_calls),
        f"{cost.usd:.6f}",
        record.reason or "-",
    ]


def verdict_words(record: TrialRecord) -> str:
    """A trial's verdict with the state it came to, where that is told, and what became of it where the verdict alone
    would mislead.
    """
    if record.state is not None and record.state.value != record.verdict.value:
        return f"{_verdict_alone(record)} ({record.state.value})"
    return _verdict_alone(record)


def _verdict_alone(record: TrialRecord) -> str:
    if record.superseded:
        return f"{record.verdict.value}, tried again"
    if record.verdict is Verdict.PASS and not record.accepted:
        return f"{record.verdict.value}, not accepted"
    return record.verdict.value
