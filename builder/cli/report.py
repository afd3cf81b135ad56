"""`stepdown report`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from stepdown.builder.cli import console
from stepdown.builder.common.extras import require
from stepdown.builder.common.files import write_text
from stepdown.builder.common.tables import print_table
from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput
from stepdown.releases.files import refuse_in_a_release
from stepdown.scoring.tokenizers import CHARACTERS, ENCODINGS, load_tokenizer


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
def command(folder: Path, out: Path, tables_only: bool, as_json: bool, card: Path | None, tokens: str) -> None:
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
    if as_json:
        tables = {section.key: [asdict(table) for table in section.tables] for section in found}
        click.echo(json.dumps({"tiers": facts.tiers, "sections": tables}, indent=1))
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


def _refuse_to_overwrite(out: Path) -> None:
    """A page replaces an earlier page, never a file of a run or a release."""
    if not out.parent.is_dir():
        raise BadInput("its folder is not there", file=out, field="--out")
    if out.exists() and out.suffix not in {".html", ".htm"}:
        raise BadInput("is there already and is no .html file", file=out, field="--out")
    refuse_in_a_release(out, "--out")
