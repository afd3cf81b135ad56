"""The calibration as a plot: how much of the bad and of the good answers each score passes, over its thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from stepdown.builder.common.extras import require
from stepdown.builder.common.intervals import exact_interval
from stepdown.builder.errors import BadInput


def draw_plot(path: Path, scores: Mapping[str, Sequence[float]], good: Sequence[bool], target: float) -> None:
    """Write an SVG or PNG file.

    Raises BadInput for another ending, for a place that cannot be written, and where matplotlib is missing.
    """
    if path.suffix.lower() not in {".svg", ".png"}:
        raise BadInput("a plot is an .svg or a .png", file=path)
    require("judge", "matplotlib")
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "stepdown"  # the same picture for the same data
    figure, (over, against) = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    bad_of, good_of = sum(not fine for fine in good), sum(good)
    for name, values in scores.items():
        thresholds = sorted(set(values))
        passed = [
            [sum(v >= t for v, fine in zip(values, good, strict=True) if fine == kind) for t in thresholds]
            for kind in (False, True)
        ]
        rates = [count / bad_of for count in passed[0]]
        (line,) = over.step(thresholds, rates, where="pre", label=name)
        bounds = [exact_interval(count, bad_of) for count in passed[0]]
        low, high = [b.low for b in bounds], [b.high for b in bounds]
        over.fill_between(thresholds, low, high, step="pre", alpha=0.1, color=line.get_color())
        against.plot(rates, [count / good_of for count in passed[1]], marker=".", label=name)
    over.axhline(target, color="grey", linestyle=":", label="target")
    over.set(xlabel="threshold", ylabel=f"P(pass | bad), of {bad_of}", ylim=(0, 1.02))
    against.axvline(target, color="grey", linestyle=":")
    against.set(xlabel="P(pass | bad)", ylabel=f"P(pass | good), of {good_of}", xlim=(0, 1.02), ylim=(0, 1.02))
    over.legend()
    try:
        figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
    except OSError as error:
        raise BadInput(error.strerror or str(error), file=path) from None
    finally:
        pyplot.close(figure)
