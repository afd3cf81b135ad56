"""Policies as a section of a report: a score's tables, what each saves against how many rows pass, and its errors."""

from __future__ import annotations

from collections.abc import Sequence

from stepdown.reports.charts import Points, Stacked
from stepdown.reports.section import Section, counted
from stepdown.routing.scores.comparing import PolicyScore
from stepdown.routing.scores.tables import shown, tables

_ERRORS = ("exact", "one up", "further up", "jump to top", "below", "none")
"""From cheap to dear in what follows of them."""


def policies_section(found: Sequence[PolicyScore], split: str | None) -> Section:
    """The policies of a bank, or of one split of it. There is at least one."""
    first = found[0].score
    whose = "one policy" if len(found) == 1 else f"{len(found)} policies"
    rows, of_split = counted(first.overall.rows, "row"), f" of the split {split}" if split else ""
    lead = f"What {whose} would have chosen for {rows}{of_split}, beside what needs no router."
    if split is None:
        lead += " One that was trained on some of these rows looks better than it is: --split test leaves them out."
    return Section("policies", "Policies", lead, tuple(tables(found)), tuple(_charts(found)))


def _charts(found: Sequence[PolicyScore]) -> list[Points | Stacked]:
    names, across, up = [], [], []
    for one in found:
        metrics = one.score.overall.metrics
        saved, passed = metrics["CostSave E"].value, metrics["RowPass"].value
        if saved is not None and passed is not None:
            names.append(shown(one.name))
            across.append(passed)
            up.append(saved)
    fixed = []
    for name, each in found[0].score.baselines.items():
        saved, passed = each["CostSave E"], each["RowPass"]
        if saved is not None and passed is not None:
            fixed.append((name, passed, saved))
    charts: list[Points | Stacked] = []
    if names:
        charts.append(
            Points(
                (*names, *(name for name, _, _ in fixed)),
                tuple(zip((*across, *(x for _, x, _ in fixed)), (*up, *(y for _, _, y in fixed)), strict=True)),
                len(names),
                "RowPass, percent",
                "CostSave, percent",
                "Rows that pass against cost saved: "
                + "; ".join(f"{name} {x:.0f} and {y:.0f}" for name, x, y in zip(names, across, up, strict=True)),
            )
        )
    patterns = tuple(tuple(one.score.overall.patterns[error] for error in _ERRORS) for one in found)
    if any(map(sum, patterns)):
        charts.append(
            Stacked(
                tuple(shown(one.name) for one in found),
                _ERRORS,
                patterns,
                f"Choices on rows labelled below {found[0].score.tiers[-1]}, by how they differ from the label",
            )
        )
    return charts
