"""`stepdown compare`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepdown.builder.cli import console
from stepdown.builder.cli.documents import print_document
from stepdown.builder.common.extras import require
from stepdown.builder.common.tables import Table, print_table
from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput

if TYPE_CHECKING:
    from stepdown.scoring.comparators.compare import Comparison, UnderFolds
    from stepdown.scoring.comparators.features import SeenFeature


@click.command("compare")
@click.argument("grid", metavar="RUN|GRID", type=click.Path(path_type=Path))
@click.option("--pools", "sizes", help="Sizes of pools to choose from, with commas; else 2, 3, 5 and all models.")
@click.option("--without", multiple=True, metavar="MODEL", help="Leave this model out. Give it again for several.")
@click.option(
    "--features",
    "sight",
    type=click.Choice(["all", "text", "metadata"]),
    default="all",
    show_default=True,
    help="What routers see of an item.",
)
@click.option("--resamples", type=click.IntRange(0, 100_000), default=200, show_default=True, help="0: no intervals.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of folds, pools and resamples.")
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), help="Also draw the curves into this PNG or SVG."
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as one JSON object.")
def command(
    grid: Path,
    sizes: str | None,
    without: tuple[str, ...],
    sight: str,
    resamples: int,
    seed: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Say what fixed models and routers are worth on GRID, a table of outcomes of items by models.

    GRID is a run whose protocol has `rules: {probe: all}`: its steps are the items. Or it is a CSV, TSV, JSONL or
    Parquet file: long, with `item`, `model`, `outcome` (0 to 1, pass or fail) and perhaps `group`, `cost`, `text`; or
    wide, with `item`, perhaps `group` and `text`, and a column of outcomes for each model. An outcome that is empty or
    `technical` is a missing one: its item is left out, and the model that lacks it is named.

    Routers learn from the text, and from columns named `feature:NAME`: numbers, or categories where not all of a
    column are numbers. A run's steps have theirs: the latest text, and the figures of the prefix that a trained policy
    sees too.

    \b
      honest      the model that is best on the other folds, scored on this one
      hindsight   the model that is best on all items: a comparator that nobody could have deployed
      cost        hindsight less honest: how much too high the usual comparison is, split into
                  how often the choice moves and how far it then is

    Folds are drawn at random, and so that whole groups are held out: a router meets groups that nobody has seen.
    """
    require("release", "numpy")
    require("route", "scipy", "sklearn")
    from stepdown.scoring.comparators.compare import CompareSettings, compare
    from stepdown.scoring.comparators.features import Sight
    from stepdown.scoring.comparators.grid import read_grid
    from stepdown.scoring.comparators.of_run import read_run_grid
    from stepdown.scoring.comparators.plot import draw, refuse_undrawable

    settings = CompareSettings(_sizes(sizes), resamples, seed, Sight(sight))
    if plot is not None:
        require("release", "matplotlib")
        refuse_undrawable(plot)  # a comparison may take minutes
    outcomes = (read_run_grid if grid.is_dir() else read_grid)(grid, without)
    if too_large := [size for size in settings.sizes if size > len(outcomes.models)]:
        raise BadInput(
            f"no pool of {too_large[0]}: there are {len(outcomes.models)} models", file=grid, field="--pools"
        )
    found = compare(outcomes, settings, lambda line: click.echo(line, err=True))
    if plot is not None:
        draw(found, plot)
    if as_json:
        print_document(found)
        return
    out = console.stdout()
    for table in _tables(found):
        print_table(out, table)
    for line in _lines(found):
        out.print(printable(line, 2000), markup=False)


def _sizes(given: str | None) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part) for part in (given or "").split(",") if part.strip())
    except ValueError:
        raise click.BadParameter("must be numbers with commas between", param_hint="--pools") from None
    if any(size < 2 for size in sizes):
        raise click.BadParameter("a pool has two models or more", param_hint="--pools")
    return sizes


def _tables(found: Comparison) -> Iterator[Table]:
    yield Table(
        f"models on {found.items} items in {found.groups} groups",
        ("model", "mean outcome", *(f"AUROC, {under.kind}" for under in found.under)),
        tuple(
            (
                printable(name),
                f"{mean:.4f}",
                *("-" if (own := under.auroc[place]) is None else f"{own:.3f}" for under in found.under),
            )
            for place, (name, mean) in enumerate(zip(found.models, found.means, strict=True))
        ),
        note="AUROC: of the routers' predictions, inside folds and then averaged; -: no fold has both outcomes",
    )
    for under in found.under:
        yield _costs(under)
        yield _routers(under)
        if under.frontier:
            yield _frontier(under)


def _costs(under: UnderFolds) -> Table:
    return Table(
        f"choosing a fixed model, {under.folds} folds, {under.kind}",
        ("pool", "pools", "honest", "hindsight", "cost", "95% interval", "moves", "by", "null", "p"),
        tuple(
            (
                str(one.size),
                f"{one.pools}{' sampled' if one.sampled else ''}",
                f"{one.selection.honest:.4f}",
                f"{one.selection.hindsight:.4f}",
                f"{one.selection.cost:.4f}",
                "-" if one.low is None or one.high is None else f"{one.low:.4f}..{one.high:.4f}",
                f"{one.selection.moved:.3f}",
                f"{one.selection.distance:.4f}",
                "" if one.null is None else f"{one.null:.4f}",
                "" if one.p is None else f"{one.p:.3f}",
            )
            for one in under.costs
        ),
        note="cost = moves x by. null: the mean cost where items are dealt to the same folds by lot",
    )


def _routers(under: UnderFolds) -> Table:
    return Table(
        f"routers beside the honest fixed model, {under.kind}",
        ("shrunken", "router", "fixed", "deficit", "defers", "edge"),
        tuple(
            (
                f"{one.shrinkage:.2f}",
                f"{one.value:.4f}",
                f"{one.fixed:.4f}",
                f"{one.deficit:+.4f}",
                f"{one.deferral:.3f}",
                f"{one.edge:+.4f}",
            )
            for one in under.routers
        ),
        note="deficit = defers x -edge. Shrunken 1.00 is the fixed model itself",
    )


def _frontier(under: UnderFolds) -> Table:
    return Table(
        f"outcome by mean cost, {under.kind}",
        ("budget", "honest cost", "honest", "oracle"),
        tuple(
            (f"{one.budget:.6g}", f"{one.honest_cost:.6g}", f"{one.honest:.4f}", f"{one.oracle:.4f}")
            for one in under.frontier
        ),
        note="honest: the fixed model that is best in training within the budget; oracle: every outcome known",
    )


def _seen(found: Comparison) -> str:
    """What routers saw, in a line."""
    parts = ["TF-IDF and length of the text"] if any(one.kind == "text" for one in found.features) else []
    for kind, title in (("number", "numbers"), ("category", "categories")):
        if names := [_named(one) for one in found.features if one.kind == kind]:
            parts.append(f"{title}: {', '.join(names)}")
    return f"routers saw {'; '.join(parts) or 'nothing of an item, so they are the fixed model'}"


def _named(one: SeenFeature) -> str:
    """A feature, with how many values a category has and how many items lack it."""
    said = [f"{one.values} values"] if one.kind == "category" else []
    if one.missing:
        said.append(f"{one.missing} missing")
    return printable(one.name, 60) + (f" ({', '.join(said)})" if said else "")


def _lines(found: Comparison) -> Iterator[str]:
    yield _seen(found)
    yield f"every item by its best model: {found.oracle:.4f}"
    for under in found.under:
        even = under.signal.break_even
        said = "no AUROC up to 0.99 is enough" if even is None else f"from an AUROC of {even:.3f} on"
        yield f"a synthetic signal breaks even with the honest fixed model ({under.kind}): {said}"
    if found.flawless:
        yield f"without a single failure, so that no router can gain on it: {', '.join(found.flawless)}"
    if found.left_out:
        yield f"{found.left_out} items were left out: they lack the outcome of some model"
        for one in found.missing:
            yield f"  {one.model}: {one.items} missing, {one.technical} of them technical"
