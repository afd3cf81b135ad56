"""What single probing would have labelled, where every model was tried at every step: the grid of probes, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import groupby
from pathlib import Path
from typing import Any

from stepdown.builder.common.reading import read_json_lines
from stepdown.builder.common.tables import Table
from stepdown.builder.errors import BadInput
from stepdown.reports.section import Section, counted, percent


@dataclass(slots=True)
class LoweredBy:
    """Steps at which every model has an outcome, and who lowers them below the strong tier."""

    steps: int = 0
    lowerable: int = 0
    """Some model below the strong tier passes."""
    cascade: int = 0
    """The label is below the strong tier."""
    single: int = 0
    """The first model of a tier below the strong one passes."""
    same: int = 0
    """Single probing gives the label itself."""

    def __add__(self, other: LoweredBy) -> LoweredBy:
        return LoweredBy(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


@dataclass(slots=True)
class ProbeFacts:
    """What a grid of probes says, by workload."""

    all_steps: dict[str, LoweredBy] = field(default_factory=dict)
    last_steps: dict[str, LoweredBy] = field(default_factory=dict)
    labels: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Steps by their label and by what single probing gives, as indexes of tiers."""
    partly: int = 0
    """Steps that lack the outcome of some model, and are not counted."""


def count_probes(path: Path, tiers: Sequence[str], models: int) -> ProbeFacts:
    """What the grid of a run with so many models says. `tiers` are their names, cheapest first. Raises BadInput."""
    facts = ProbeFacts()
    for cells in _by_step(path):
        line, first = cells[0]
        try:
            outcomes = [(tiers.index(cell["tier"]), _outcome(cell["outcome"])) for _, cell in cells]
            label, workload = tiers.index(first["label"]), first["item"].split("/")[0]
            is_last = first["step"] == first["steps"]
        except (KeyError, ValueError, AttributeError):
            raise BadInput("not the probes of a step of this run", file=path, line=line) from None
        if len(outcomes) < models or any(outcome is None for _, outcome in outcomes):
            facts.partly += 1
            continue
        found = _lowered(outcomes, label, len(tiers) - 1, facts.labels)
        for groups in (facts.all_steps, *((facts.last_steps,) if is_last else ())):
            groups[workload] = groups.get(workload, LoweredBy()) + found
    return facts


def _outcome(value: Any) -> int | None:
    """Raises ValueError for what is no outcome of a probe: it would be neither a pass nor a failure."""
    if value not in (0, 1, None):
        raise ValueError
    return None if value is None else int(value)


def _by_step(path: Path) -> Iterator[list[tuple[int, Mapping[str, Any]]]]:
    """The lines of each step, with their numbers."""
    for item, group in groupby(read_json_lines(path), lambda one: one[1].get("item") if _is_object(one[1]) else None):
        cells = list(group)
        if item is None:
            raise BadInput("must be an object with an `item`", file=path, line=cells[0][0])
        yield cells


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _lowered(
    outcomes: Sequence[tuple[int, int | None]], label: int, strong: int, labels: Counter[tuple[int, int]]
) -> LoweredBy:
    """One step, by the tier and outcome of every model in the pool's order."""
    firsts = dict(reversed(outcomes))  # of each tier its first model's
    single = next((tier for tier in range(strong) if firsts.get(tier) == 1), strong)
    labels[label, single] += 1
    lowerable = any(outcome == 1 for tier, outcome in outcomes if tier < strong)
    return LoweredBy(1, int(lowerable), int(label < strong), int(single < strong), int(single == label))


def single_probing(facts: ProbeFacts, tiers: Sequence[str]) -> Section | None:
    """The label that each probed step would have, were only the first model of each tier asked."""
    if not facts.all_steps:
        return None
    rows = []
    for which, groups in (("all", facts.all_steps), ("last", facts.last_steps)):
        named = dict(sorted(groups.items()))
        if len(named) > 1:
            named["all"] = sum(groups.values(), LoweredBy())
        rows += [_row(name, which, found) for name, found in named.items()]
    note = f"{counted(facts.partly, 'step')} left out: some model has no outcome there" if facts.partly else ""
    present = [tier for tier in range(len(tiers)) if any(tier in pair for pair in facts.labels)]
    return Section(
        "probes",
        "What single probing would have labelled",
        "Every model of the pool was tried at these steps. A step can be lowered where some model below the strong "
        "tier passes. Single probing asks the first model of each tier alone, at the same prefixes; the cascade asks "
        "the tier's next models too, and gave the labels.",
        (
            Table(
                "steps below the strong tier by the cascade and by single probing",
                (
                    *("workload", "steps", "probed", "can be lowered"),
                    *("by the cascade", "share", "by single probing", "share", "same label"),
                ),
                tuple(rows),
                words=2,
                note=note,
            ),
            Table(
                "labels of the cascade by what single probing gives",
                ("label", "steps", *(tiers[tier] for tier in present)),
                tuple(
                    (
                        tiers[label],
                        str(sum(facts.labels[label, single] for single in present)),
                        *(str(facts.labels[label, single]) for single in present),
                    )
                    for label in present
                ),
            ),
        ),
    )


def _row(name: str, which: str, found: LoweredBy) -> tuple[str, ...]:
    return (
        *(name, which, str(found.steps), str(found.lowerable)),
        *(str(found.cascade), percent(found.cascade, found.lowerable)),
        *(str(found.single), percent(found.single, found.lowerable), str(found.same)),
    )
