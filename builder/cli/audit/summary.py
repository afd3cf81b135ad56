"""`stepdown audit summary`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from stepdown.audit.agreement import Agreement
from stepdown.audit.corpus import count_labelled_steps
from stepdown.audit.store import AuditStore
from stepdown.audit.summary import AuditSlice, AuditSummary, ExpectedTooHigh, summarise
from stepdown.builder.cli import console
from stepdown.builder.cli.documents import print_document
from stepdown.builder.common.tables import Table, draw
from stepdown.builder.common.text import printable
from stepdown.builder.run.folder import open_for_reading


@click.command("summary")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def command(run: Path, as_json: bool) -> None:
    """Say what the audit of RUN has found so far.

    Shares are of the sampled steps that came to a verdict, with exact (Clopper-Pearson) 95% intervals. A label of the
    lowest tier can not go lower: it settles itself, as tight, and nobody is asked. `uncertain` counts as not tight.
    Shares are not weighted: after a --minimum by tier, look at each label's own.

    The second table leaves these out: it is what people have found. The third says how many of the other labels are
    likely too high: for each workload and label, the share that can go lower among its reviewed steps, times its other
    steps. The interval of a sum holds for all of its parts at once.

    Agreement is between reviewers who did not see each other's answers. Whoever was given a step because others
    disagree on it (`sample --settle`) does not count for that step.
    """
    with open_for_reading(run) as (ledger, protocol), AuditStore(run) as store:
        tiers = protocol.pool.tiers
        found = summarise(store, count_labelled_steps(ledger, tiers), tiers[0].name)
    if as_json:
        print_document(found.to_json())
        return
    out = console.wide()
    for title, slices in (
        ("audit", found.slices),
        ("labels above the lowest tier: what people were asked", found.above_lowest),
    ):
        out.print(draw(_slice_table(title, slices)))
    if waiting := found.slices[-1].sampled - found.slices[-1].settled:
        told = f"{waiting} sampled steps are not settled yet; until then labels of the lowest tier weigh too much"
        out.print(f"{told} in the first table", markup=False)
    out.print(draw(_expected_table(found.expected)))
    for line in _agreement_lines(found):
        out.print(printable(line), markup=False)


_SLICE = (
    "steps",
    "sampled",
    "%",
    "settled",
    "by themselves",
    "downgradeable",
    "uncertain",
    "disagree",
    "tight %",
    "95% interval",
)


def _slice_table(title: str, slices: Iterable[AuditSlice]) -> Table:
    rows = (
        (
            one.name,
            str(one.steps),
            str(one.sampled),
            f"{one.sampled / one.steps:.1%}" if one.steps else "-",
            str(one.settled),
            str(one.lowest),
            str(one.downgradeable),
            str(one.uncertain),
            str(one.disagree),
            f"{one.tight_share:.1%}" if one.tight_share is not None else "-",
            console.percents(*one.tight_interval) if one.settled else "-",
        )
        for one in slices
    )
    return Table(title, ("slice", *_SLICE), tuple(rows))


_EXPECTED = ("other steps", "reviewed", "downgradeable", "expected too high", "95% interval")


def _expected_table(expected: Iterable[ExpectedTooHigh]) -> Table:
    rows = (
        (
            one.workload,
            one.tier or "(sum)",
            str(one.left),
            str(one.settled),
            str(one.downgradeable),
            "not known" if one.expected is None else f"{one.expected:.1f}",
            f"{one.low:.1f}–{one.high:.1f}",
        )
        for one in expected
    )
    return Table(
        "labels that must be expected to be still too high", ("workload", "label", *_EXPECTED), tuple(rows), words=2
    )


def _agreement_lines(found: AuditSummary) -> Iterator[str]:
    for one in found.cohen:
        yield f"Cohen's kappa of {one.reviewers[0]} and {one.reviewers[1]}: {_agreement(one)}"
    if found.fleiss is not None and len(found.fleiss.reviewers) > 2:
        yield f"Fleiss' kappa of all {len(found.fleiss.reviewers)} reviewers: {_agreement(found.fleiss)}"
    if not found.cohen:
        yield "agreement: no step was reviewed by two people"


def _agreement(one: Agreement) -> str:
    """An agreement as text.

    >>> _agreement(Agreement(("ann", "bob"), 50, 35, 0.4))
    '0.400; 35 of 50 shared steps the same'
    """
    kappa = "undefined" if one.kappa is None else f"{one.kappa:.3f}"
    return f"{kappa}; {one.same} of {one.steps} shared steps the same"
