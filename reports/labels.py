"""Sections on the labels themselves: by workload, by position, by role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stepdown.builder.common.tables import Table
from stepdown.harnesses.roles import Role
from stepdown.reports.charts import Stacked
from stepdown.reports.facts import Facts
from stepdown.reports.section import Section, counted, percent


def _total(rows: Sequence[Sequence[int]], tiers: int) -> list[int]:
    """Sums by tier."""
    sums = [0] * tiers
    for row in rows:
        sums = [a + b for a, b in zip(sums, row, strict=True)]
    return sums


def _tier_table(title: str, head: str, facts: Facts, groups: Mapping[str, Sequence[int]], note: str = "") -> Table:
    """Rows by group and tier, with the share above the cheapest tier."""
    rows = [*groups.items()]
    if len(rows) > 1:
        rows.append(("all", _total([counts for _, counts in rows], len(facts.tiers))))
    return Table(
        title,
        (head, "rows", *facts.tiers, f"above {facts.tiers[0]}"),
        tuple(
            (name, str(sum(counts)), *map(str, counts), percent(sum(counts[1:]), sum(counts))) for name, counts in rows
        ),
        note=note,
    )


def _stacked(facts: Facts, groups: Mapping[str, Sequence[int]], what: str) -> Stacked:
    return Stacked(
        tuple(groups), facts.tiers, tuple(tuple(map(int, counts)) for counts in groups.values()), f"Labels by {what}"
    )


def labels(facts: Facts) -> Section:
    groups = dict(sorted(facts.labels.items()))
    rows, instances = counted(facts.rows, "labelled step"), counted(sum(facts.instances.values()), "instance")
    lead = f"{rows} of {instances}: the cheapest tier that was accepted."
    table = _tier_table("labels by workload and tier", "workload", facts, groups)
    return Section(
        "labels", "Labels", lead, (table,), (_stacked(facts, groups, "workload and tier"),) if groups else ()
    )


_STARTS = (*range(1, 11), 11, 16, 21, 31, 51)
"""Where a group of step numbers begins: alone up to the tenth, then ever wider."""


def positions(facts: Facts) -> Section | None:
    if not facts.positions:
        return None
    groups: dict[str, list[int]] = {}
    last = max(facts.positions)
    for start, following in zip(_STARTS, (*_STARTS[1:], last + 1), strict=True):
        inside = [counts for step, counts in facts.positions.items() if start <= step < following]
        if inside:
            end = min(following - 1, last)
            groups[str(start) if start == end else f"{start} to {end}"] = _total(inside, len(facts.tiers))
    lead = "By the step's place in its trajectory, where that has more than one step."
    table = _tier_table("labels by step position", "step", facts, groups)
    return Section("positions", "By step position", lead, (table,), (_stacked(facts, groups, "step position"),))


def roles(facts: Facts) -> Section | None:
    if not facts.roles:
        return None
    groups = {role.value: facts.roles[role] for role in Role if role in facts.roles}
    unknown = facts.roles.get(None)
    if unknown:
        groups["not known"] = unknown
    note = (
        "not known: the step's response is not among the rows; a release has no response to a last step"
        if unknown
        else ""
    )
    lead = (
        "What a step does, told from its response alone, before its tier is looked at. A step that does several things "
        "counts as the first of: edits, verification, exploration, reading, tool operations, prose."
    )
    table = _tier_table("labels by step role", "role", facts, groups, note)
    return Section("roles", "By step role", lead, (table,), (_stacked(facts, groups, "step role"),))
