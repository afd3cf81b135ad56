"""The report as one HTML page: nothing outside it is asked for, no script runs, and every name is text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from stepdown.builder.common.tables import Table
from stepdown.builder.common.text import printable
from stepdown.reports.charts import svg
from stepdown.reports.facts import Facts
from stepdown.reports.per_label import usd_per_label
from stepdown.reports.section import Section, percent

HERE = Path(__file__).parent
MOST_BESIDE = 7
"""Columns of a table that still stands beside its plot; a wider one has the page's whole width, below it."""
WIDEST_BESIDE = 84
"""Characters of all columns together."""
LONGEST_LINE = 36
"""Characters of a cell that is not broken into lines."""


def page(facts: Facts, sections: Sequence[Section], footer: str) -> str:
    """The page. Its policy lets in its own style sheet, by its hash, and nothing else."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    style = (HERE / "style.css").read_text(encoding="utf-8")
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False, finalize=_shown).from_string(
        (HERE / "page.html").read_text(encoding="utf-8")
    )
    drawings = {
        section.key: [
            Markup(svg(chart, f"{section.key}{number}"))  # noqa: S704 - drawn by us, its texts escaped
            for number, chart in enumerate(section.charts)
        ]
        for section in sections
    }
    return template.render(
        title=f"stepdown report: {facts.name}",
        subtitle=_subtitle(facts),
        figures=_figures(facts),
        sections=sections,
        drawings=drawings,
        footer=footer,
        layout=_layout,
        longest_line=LONGEST_LINE,
        style=Markup(style),  # noqa: S704 - our own file
        style_hash="sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
    )


def _layout(section: Section) -> list[tuple[str, list[Table]]]:
    """The section's tables by where they stand: beside its plots, or below them."""
    beside = [table for table in section.tables if not _is_wide(table)]
    wide = [table for table in section.tables if _is_wide(table)]
    return [(place, tables) for place, tables in (("narrow", beside), ("wide", wide)) if tables]


def _is_wide(table: Table) -> bool:
    """Whether a table has too many columns, or too long words in them, to stand beside a plot."""
    columns = zip(table.columns, *table.rows, strict=True)
    characters = sum(min(max(map(len, cells)), LONGEST_LINE) for cells in columns)
    return len(table.columns) > MOST_BESIDE or characters > WIDEST_BESIDE


def _shown(value: object) -> object:
    """Names come from anybody: without the characters that turn text around. Markup of ours passes as it is."""
    return printable(value, longest=400) if type(value) is str else value


def _subtitle(facts: Facts) -> str:
    """What kind of bank it is, by whose pool."""
    manifest = facts.bank.manifest
    pool = manifest.get("pool")
    name = pool.get("version") if isinstance(pool, dict) else manifest.get("name")
    kind, of = ("run", "pool") if facts.is_run else ("release", "named")
    said = f", {of} {name}" if isinstance(name, str) else ""
    return f"A {kind} of step-level tier labels{said}. Tiers: {', '.join(facts.tiers)}."


def _figures(facts: Facts) -> list[tuple[str, str]]:
    """What stands large at the top."""
    low = sum(counts[0] for counts in facts.labels.values())
    found = [
        ("labelled steps", f"{facts.rows:,}"),
        ("instances", f"{sum(facts.instances.values()):,}"),
        ("workloads", str(len(facts.labels))),
        (f"are {facts.tiers[0]}", percent(low, facts.rows)),
    ]
    if facts.savings is not None:
        strong, label = (sum(usd.values()) for usd in (facts.savings.strong_usd, facts.savings.label_usd))
        found.append(("saved by label", percent(strong - label, strong)))
    if facts.label_costs is not None and (usd := usd_per_label(facts.label_costs)) is not None:
        found.append(("a label", f"${usd:.4f}"))
    return found
