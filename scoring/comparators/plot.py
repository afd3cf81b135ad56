"""The curves of a comparison as one picture: values by signal, and outcomes by cost where there are costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stepdown.builder.errors import BadInput
from stepdown.scoring.comparators.compare import Comparison, UnderFolds


def refuse_undrawable(path: Path) -> None:
    """Raises BadInput where no picture can be at a path: before there is one to draw."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise BadInput("must be a .png or .svg file", file=path, field="--plot")
    if not path.parent.is_dir():
        raise BadInput("there is no such folder", file=path.parent, field="--plot")


def draw(found: Comparison, path: Path) -> None:
    """Draw into a PNG or SVG file. Raises BadInput where it can not be written."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    refuse_undrawable(path)
    columns = 2 if any(under.frontier for under in found.under) else 1
    figure, axes = pyplot.subplots(
        len(found.under), columns, figsize=(5.2 * columns, 3.6 * len(found.under)), squeeze=False, layout="constrained"
    )
    for row, under in zip(axes, found.under, strict=True):
        _signal(row[0], under, found.oracle)
        if columns == 2:
            _frontier(row[1], under)
    try:
        figure.savefig(path, dpi=140)
    except OSError as error:
        raise BadInput(error.strerror or str(error), file=path, field="--plot") from None
    finally:
        pyplot.close(figure)


def _signal(axis: Any, under: UnderFolds, oracle: float) -> None:
    axis.plot(*zip(*under.signal.points, strict=True), marker="o", markersize=3, label="router by a synthetic signal")
    axis.axhline(under.signal.fixed, color="black", linewidth=1, label="honest fixed model")
    axis.axhline(oracle, color="gray", linewidth=1, linestyle=":", label="every item by its best model")
    axis.set(title=f"{under.kind} folds", xlabel="AUROC of the signal", ylabel="mean outcome")
    axis.legend(fontsize=7)


def _frontier(axis: Any, under: UnderFolds) -> None:
    axis.plot(
        [one.honest_cost for one in under.frontier], [one.honest for one in under.frontier], "s-", label="honest fixed"
    )
    axis.plot([one.budget for one in under.frontier], [one.oracle for one in under.frontier], "^:", label="oracle")
    axis.set(title=f"by cost, {under.kind} folds", xlabel="mean cost per item", ylabel="mean outcome")
    axis.legend(fontsize=7)
