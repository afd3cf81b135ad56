"""`stepdown diff`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from stepdown.builder.artifacts.evidence import trial_evidence
from stepdown.builder.cli import console
from stepdown.builder.cli.explain import verdict_words
from stepdown.builder.cli.relabel import cost_line
from stepdown.builder.common.tables import Table, draw
from stepdown.builder.common.text import printable
from stepdown.builder.inspect.costs import RunCost, run_cost
from stepdown.builder.inspect.diff import Change, Fate, InstanceChange, Side, StepChange, StepLabel, Totals, differences
from stepdown.builder.run.folder import open_for_reading


@click.command("diff")
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON document, an instance per line.")
def command(old: Path, new: Path, as_json: bool) -> None:
    """Say what changed between the runs OLD and NEW, by instance and step.

    A label has moved only where the prefix is the same, byte for byte; else the prefix changed, and the two labels
    answer different questions. A workload's mask does not count here: where observations show times or paths, steps
    after the first one that does have changed prefixes in any two runs that executed them anew. The trials that decide
    a moved label stand beside it. Reads only.
    """
    with _open_side(old) as before, _open_side(new) as after:
        changes, cost = differences(before, after), run_cost(after.ledger, after.protocol)
        if as_json:
            _write_json(changes, cost, before, after)
        else:
            _write_text(changes, cost, before, after)


@contextmanager
def _open_side(path: Path) -> Iterator[Side]:
    with open_for_reading(path) as (ledger, protocol):
        yield Side(ledger, protocol)


# For a person


def _write_text(changes: Iterable[InstanceChange], cost: RunCost, old: Side, new: Side) -> None:
    out, totals = console.stdout(), Totals()
    for instance in changes:
        totals.add(instance)
        for line in _lines(instance):
            out.print(printable(line, longest=2000), markup=False)
    _print_moves(out, totals, old, new)
    kept, lost, gained = (totals.instances[fate] for fate in (Fate.KEPT, Fate.LOST, Fate.GAINED))
    out.print(f"instances: {kept} kept, {lost} lost, {gained} gained")
    out.print("steps: " + ", ".join(f"{totals.steps[change]} {_COUNTED[change]}" for change in Change))
    out.print(f"audit verdicts that would carry over: {totals.audit_carries} steps")
    out.print(cost_line(cost))


_COUNTED = {change: "unchanged" if change is Change.NONE else change.value for change in Change}


def _lines(instance: InstanceChange) -> Iterator[str]:
    if instance.fate is not Fate.KEPT:
        yield f"{instance.id}: instance {instance.fate.value}: {instance.reason}"
    for step in instance.steps:
        if step.change is not Change.NONE:
            yield f"{step.id}: {step.change.value}{_from_where_to_where(step)}"


def _from_where_to_where(step: StepChange) -> str:
    old, new = step.old, step.new
    if old is None or new is None:
        only = old or new
        return f": {only.tier}" if only else ""
    moved = f": {_tier(old, new)} -> {_tier(new, old)}"
    if step.change is not Change.MOVED:
        return moved
    return f"{moved}; before: {_decided(old, new)}; now: {_decided(new, old)}"


def _tier(label: StepLabel, other: StepLabel) -> str:
    """The tier's name, with its id where the name alone would not tell the labels apart."""
    ambiguous = label.tier == other.tier and label.tier_id != other.tier_id
    return f"{label.tier} ({label.tier_id})" if ambiguous else label.tier


def _decided(label: StepLabel, other: StepLabel) -> str:
    """The deciding trials in a few words; what stands in for one that was not made is said."""
    trials = [
        f"{trial.trial.model} of {label.tiers[trial.trial.tier]} {verdict_words(trial)}"
        + (f" ({trial.reason})" if trial.reason else "")
        for trial in label.decided_by
    ]
    if (lacking := _why_not_lower(label, other)) is not None:
        trials.insert(0, lacking)
    return ", ".join(trials) or "-"


def _why_not_lower(label: StepLabel, other: StepLabel) -> str | None:
    """Why the other run's lower tier has no trial here; None where it has one, or is not lower."""
    own = label.tiers.index(label.tier)
    if other.tier not in label.tiers:
        return f"the pool has no tier {other.tier}" if own else None
    lower = label.tiers.index(other.tier)
    if lower >= own or any(trial.trial.tier == lower for trial in label.decided_by):
        return None
    return f"{other.tier} was not probed, since a tier above it failed"


def _print_moves(out: Console, totals: Totals, old: Side, new: Side) -> None:
    """Steps of equal prefix by old and new tier: a table on a terminal, plain columns elsewhere."""
    title = "steps of equal prefix: old tier down, new tier across"
    across = [tier.name for tier in new.tiers]
    rows = [[tier.name, *(str(totals.moves[tier.name, name]) for name in across)] for tier in old.tiers]
    if out.is_terminal:
        out.print(draw(Table(title, ("", *across), tuple(map(tuple, rows)))))
        return
    out.print(title, markup=False)
    width = max(len(cell) for row in [["", *across], *rows] for cell in row)
    for row in [["", *across], *rows]:
        first, *others = row
        cells = [printable(first).ljust(width), *(printable(cell).rjust(width) for cell in others)]
        out.print("  ".join(cells).rstrip(), markup=False)


# For a program


def _write_json(changes: Iterable[InstanceChange], cost: RunCost, old: Side, new: Side) -> None:
    """Write one document, instance by instance: `pools`, `instances`, then `summary`."""
    totals = Totals()
    pools = {"old": old.protocol.pool.version, "new": new.protocol.pool.version}
    click.echo(f'{{"pools": {_text(pools)},\n"instances": [', nl=False)
    separator = "\n"
    for instance in changes:
        totals.add(instance)
        click.echo(separator + _text(_instance(instance)), nl=False)
        separator = ",\n"
    click.echo(f'\n],\n"summary": {_text(_summary(totals, cost, old, new))}}}')


def _text(value: Any) -> str:
    # ASCII: reasons quote what models wrote, and this may go to a terminal.
    return json.dumps(value)


def _instance(instance: InstanceChange) -> dict[str, Any]:
    return {
        "id": instance.id,
        "change": instance.fate.value,
        "reason": instance.reason or None,
        "steps": [
            {
                "id": step.id,
                "change": step.change.value,
                "old": _label(step.old, step),
                "new": _label(step.new, step),
                "audit_carries": step.audit_carries,
            }
            for step in instance.steps
        ],
    }


def _label(label: StepLabel | None, step: StepChange) -> dict[str, Any] | None:
    """A step's label; the trials that decide it where it moved."""
    if label is None:
        return None
    named: dict[str, Any] = {"tier": label.tier, "tier_id": label.tier_id, "model": label.model}
    if step.change is Change.MOVED:
        named["decided_by"] = [trial_evidence(trial, label.tiers[trial.trial.tier]) for trial in label.decided_by]
    return named


def _summary(totals: Totals, cost: RunCost, old: Side, new: Side) -> dict[str, Any]:
    return {
        "instances": {fate.value: totals.instances[fate] for fate in Fate},
        "steps": {change.value: totals.steps[change] for change in Change},
        "moves": {
            tier.name: {other.name: totals.moves[tier.name, other.name] for other in new.tiers} for tier in old.tiers
        },
        "audit_carries": totals.audit_carries,
        "cost": {
            "paid_calls": cost.paid_calls,
            "paid_usd": cost.paid_usd,
            "list_price_calls": cost.needed_calls,
            "list_price_usd": cost.needed_usd,
            "saved_calls": cost.saved_calls,
            "saved_usd": cost.saved_usd,
        },
    }
