"""A report as data: the terminal and the page show the same sections."""

from __future__ import annotations

from stepdown.reports import labels, money, per_label, search, states
from stepdown.reports.facts import Facts
from stepdown.reports.section import Section

MAKERS = (
    labels.labels,
    labels.positions,
    labels.roles,
    search.locks,
    search.cascade,
    search.probes,
    states.states,
    money.savings,
    money.case,
    per_label.per_label,
    money.build,
    search.drops,
    search.judge,
    search.audit,
)
"""In the order in which a report is read."""


def sections(facts: Facts) -> tuple[Section, ...]:
    """Every section that there are facts for."""
    return tuple(section for make in MAKERS if (section := make(facts)) is not None)
