"""`stepdown report`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepdown.builder.cli import console
from stepdown.builder.cli.documents import print_document
from stepdown.builder.common.extras import require
from stepdown.builder.common.files import write_text
from stepdown.builder.common.tables import print_table
from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput
from stepdown.releases.files import refuse_in_a_release
from stepdown.scoring.tokenizers import CHARACTERS, ENCODINGS, load_tokenizer

if TYPE_CHECKING:
    from stepdown.reports.section import Section
    from stepdown.scoring.bank import Bank

_RESAMPLES = 1000
"""Of the intervals of policies."""


@click.command("report")
@click.argument("folder", metavar="RUN|DIR", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("report.html"),
    show_default=True,
    help="Where the page is written.",
)
@click.option("--tables-only", is_flag=True, help="Print the tables and write no page.")
@click.option("--json", "as_json", is_flag=True, help="Print the tables as one JSON object and write no page.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help="Show also what this policy would have chosen: as `stepdown score` names policies. Give it again for several.",
)
@click.option("--split", help="With --policy: only rows of this split, which a router was not made on.")
@click.option(
    "--rates",
    "card",
    type=click.Path(path_type=Path),
    help="A YAML card of rates by tier, in place of the pool's own prices or the paper's.",
)
@click.option(
    "--tokenizer",
    "tokens",
    default=CHARACTERS,
    show_default=True,
    help=f"{', '.join(ENCODINGS)}, or module:callable (code of yours, which runs here).",
)
def command(
    folder: Path,
    out: Path,
    tables_only: bool,
    as_json: bool,
    policies: tuple[str, ...],
    split: str | None,
    card: Path | None,
    tokens: str,
) -> None:
    """Show what the run in RUN or the release in DIR holds: tables here, and with plots on one HTML page.

    Labels by workload, step position and step role; what routing by label would save with prompt caching; of a run also
    which models the locks fell to, what the cascade found that its first model alone would not, what the build cost,
    and what judge and audit changed. A run is priced by its own pool and by the usage that it recorded; a release, or a
    run whose strong model has no price, by the paper's rates. Every table says so. The page is one file: it asks for
    nothing else and runs no script.
    """
    if not tables_only and not as_json:
        _refuse_to_overwrite(out)
    require("release", "numpy", *(() if tables_only or as_json else ("jinja2", "matplotlib")))
    from stepdown.reports.gather import gather
    from stepdown.reports.page import page
    from stepdown.reports.sections import sections

    facts = gather(folder, load_tokenizer(tokens), card)
    if not facts.rows:
        raise BadInput("there are no labelled rows to report on", file=facts.bank.rows)
    found = sections(facts)
    if policies:
        found += (_policies(facts.bank, policies, split, card, tokens),)
    elif split is not None:
        raise BadInput("goes with --policy", field="--split")
    if as_json:
        tables = {section.key: [asdict(table) for table in section.tables] for section in found}
        print_document({"tiers": facts.tiers, "sections": tables})
        return
    terminal = console.stdout()
    for section in found:
        for table in section.tables:
            print_table(terminal, table)
        if not section.tables:
            terminal.print(printable(f"{section.title}: {section.lead}"), markup=False)
    if tables_only:
        return
    footer = (
        f"{facts.rates} Texts are counted by {tokens}; all prompt tokens are cache traffic (TwinRouterBench, static "
        "scoring)."
    ).strip()
    write_text(out, page(facts, found, footer))
    terminal.print(printable(str(out)), markup=False)


def _policies(bank: Bank, policies: Sequence[str], split: str | None, card: Path | None, tokens: str) -> Section:
    """The section of policies, scored as `stepdown score` does with the same rates and tokenizer."""
    from stepdown.builder.cli import policy_scores
    from stepdown.routing.scores.section import policies_section
    from stepdown.scoring.rates import read_rates
    from stepdown.scoring.score import ScoreSettings

    rates = read_rates([tier.name for tier in bank.tiers], card)
    settings = ScoreSettings(rates, load_tokenizer(tokens), split, _RESAMPLES)
    return policies_section(policy_scores.scored(bank, policies, settings), split)


def _refuse_to_overwrite(out: Path) -> None:
    """A page replaces an earlier page, never a file of a run or a release."""
    if not out.parent.is_dir():
        raise BadInput("its folder is not there", file=out, field="--out")
    if out.exists() and out.suffix not in {".html", ".htm"}:
        raise BadInput("is there already and is no .html file", file=out, field="--out")
    refuse_in_a_release(out, "--out")
