"""A section of a report: one question, answered in a sentence, tables and plots."""

from __future__ import annotations

from dataclasses import dataclass

from stepdown.builder.common.tables import Table
from stepdown.reports.charts import Chart


@dataclass(frozen=True, slots=True)
class Section:
    """One question and its answer."""

    key: str
    """Of its anchor on the page."""
    title: str
    lead: str
    """What is shown, in a sentence or two."""
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()


def counted(count: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "step"), counted(2000, "step")
    ('1 step', '2,000 steps')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def percent(part: float, of: float) -> str:
    """A share in percent, `-` of nothing.

    >>> percent(1, 8), percent(0, 0)
    ('12.5%', '-')
    """
    return f"{100 * part / of:.1f}%" if of else "-"
