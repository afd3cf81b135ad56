"""`stepdown score`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from stepdown.builder.cli import console
from stepdown.builder.cli.documents import print_document
from stepdown.builder.common.extras import require
from stepdown.builder.common.tables import Table, print_table
from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput
from stepdown.releases.files import refuse_in_a_release
from stepdown.routing.scores.tables import HEADLINE, interval, percent, tables
from stepdown.scoring.bank import Bank, open_bank
from stepdown.scoring.predictions import Predictions
from stepdown.scoring.rates import PAPER, read_rates
from stepdown.scoring.result import Score, ScorePart
from stepdown.scoring.score import ScoreSettings, score
from stepdown.scoring.tokenizers import CHARACTERS, ENCODINGS, load_tokenizer


@click.command("score")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("predictions", type=click.Path(path_type=Path), required=False)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help="Score what this policy chooses: a policy's folder, a YAML file of a model to ask, always:TIER, chance, rules,"
    " uncommon-route, nearest-in-sample or module:Class (code of yours, which runs here). Give it again for several "
    "policies on the same rows.",
)
@click.option(
    "--rates", "card", type=click.Path(path_type=Path), help="A YAML card of rates by tier; else the paper's."
)
@click.option(
    "--tokenizer",
    "tokens",
    default=CHARACTERS,
    show_default=True,
    help=f"{', '.join(ENCODINGS)}, or module:callable (code of yours, which runs here).",
)
@click.option("--split", help="Score only rows of this split: what a router was not made on.")
@click.option(
    "--resample",
    type=click.Choice(["trajectories", "groups"]),
    default="trajectories",
    show_default=True,
    help="What the bootstrap draws whole.",
)
@click.option("--resamples", type=click.IntRange(0, 100_000), default=1000, show_default=True, help="0: no intervals.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the bootstrap and the draw.")
@click.option(
    "--rows",
    "outcomes",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write what became of every row, with its group, to this JSONL file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the score as one JSON object.")
def command(
    folder: Path,
    predictions: Path | None,
    policies: tuple[str, ...],
    card: Path | None,
    tokens: str,
    split: str | None,
    resample: str,
    resamples: int,
    seed: int,
    outcomes: Path | None,
    as_json: bool,
) -> None:
    """Score PREDICTIONS, a router's tiers for the rows of the release (or run) in DIR, or score policies on them.

    PREDICTIONS is a JSONL file of {"id": ROW_ID, "tier": NAME_OR_ID}, or a CSV with these two columns. A row without a
    prediction, or with one that names no tier, fails, and so does its trajectory.

    \b
      RowPass    predicted tier >= label
      RowExact   predicted tier == label
      TrajPass   share of rows whose whole trajectory passes
      CostSave   saved against always the strong tier, prompt caching included; a
                 failing trajectory pays for its steps and is made again
      Combined   the mean of the four

    With --policy each policy chooses for every row. Several are shown in one table; what each has over the first is
    paired: the same trajectories are drawn for both.

    Intervals (95%) are those of a bootstrap over trajectories. Beside the score stand every fixed tier, chance, and
    the best fixed tier chosen on training groups only, and how much too high it would stand if chosen in hindsight.
    """
    require("release", "numpy")
    if (predictions is None) == (not policies):
        raise BadInput("name a file of predictions, or policies by --policy; not both")
    if outcomes is not None:
        if predictions is None:
            raise BadInput("goes with a file of predictions", field="--rows")
        _refuse_to_overwrite(outcomes, folder, predictions)
    bank = open_bank(folder)
    rates = read_rates([tier.name for tier in bank.tiers], card)
    settings = ScoreSettings(rates, load_tokenizer(tokens), split, resamples, resample == "groups", seed)
    settings_used = {
        "rates": str(card) if card else PAPER.name,
        "tokenizer": tokens,
        "split": split,
        "resample": resample,
        "resamples": resamples,
        "seed": seed,
    }
    if predictions is None:
        _print_policies(bank, policies, settings, settings_used if as_json else None)
        return
    found = score(bank, Predictions(predictions, bank.tiers), settings, outcomes)
    if as_json:
        print_document(_json(found, settings_used))
        return
    out = console.stdout()
    for table in _tables(found, resamples, resample):
        print_table(out, table)
    for best in found.best_fixed:
        picks = ", ".join(dict.fromkeys(fold.chosen for fold in best.folds))
        out.print(
            f"best fixed tier ({best.basis}): {picks}; Combined {percent(best.chosen['Combined'])}, chosen in "
            f"hindsight {percent(best.hindsight['Combined'])}: {best.difference:.2f} points too high",
            markup=False,
        )
    if not found.best_fixed:
        out.print("best fixed tier: too few groups to hold any out")
    out.print(f"rows without a prediction: {found.missing}; with one that names no tier: {found.broken}")
    if outcomes:
        out.print(printable(str(outcomes)), markup=False)


def _print_policies(bank: Bank, policies: Sequence[str], settings: ScoreSettings, used: dict[str, Any] | None) -> None:
    """The policies side by side; as JSON where the settings `used` are given."""
    from stepdown.builder.cli import policy_scores

    found = policy_scores.scored(bank, policies, settings)
    if used is not None:
        each = policy_scores.as_json(found, lambda one: _json(one, used))
        print_document({"settings": used, "policies": each})
        return
    out = console.stdout()
    for table in tables(found):
        print_table(out, table)


def _tables(found: Score, resamples: int, units: str) -> Iterator[Table]:
    parts = (*found.workloads, found.overall)
    names = (*HEADLINE, "Combined")
    yield Table(
        "score (percent)",
        ("workload", "rows", *HEADLINE.values(), "Combined"),
        tuple((part.name, str(part.rows), *(percent(part.metrics[name].value) for name in names)) for part in parts),
    )
    if resamples:
        yield Table(
            "95% intervals",
            ("workload", *HEADLINE.values(), "Combined"),
            tuple((part.name, *(interval(part.metrics[name]) for name in names)) for part in parts),
            note=f"{resamples} resamples of {found.overall.units} {units}",
        )
    variants = [name for name in found.overall.metrics if name.startswith("CostSave")]
    yield Table(
        "CostSave by accounting variant (percent)",
        ("workload", *(name.removeprefix("CostSave ") for name in variants)),
        tuple((part.name, *(percent(part.metrics[name].value) for name in variants)) for part in parts),
        note="E is the score's own: of what the strong tier costs, by whole trajectories. D: by single steps. C: by "
        "single steps, of rows labelled below the strong tier. A: of what these rows' labels would save, failures left "
        "out. B: of what all labels would save, by whole trajectories. -: nothing to save",
    )
    yield Table(
        "rows by label (down) and predicted tier (across)",
        ("label", *found.tiers, "none"),
        tuple((tier, *map(str, row)) for tier, row in zip(found.tiers, found.overall.confusion, strict=True)),
    )
    yield Table(
        f"errors on rows labelled below {found.tiers[-1]}",
        ("workload", *found.overall.patterns),
        tuple((part.name, *map(str, part.patterns.values())) for part in parts),
    )
    yield Table(
        f"trajectories, and rows labelled {found.tiers[-1]}",
        ("workload", "trajectories", "failed", f"{found.tiers[-1]} rows", "found"),
        tuple(
            (part.name, *map(str, (part.trajectories, part.failed_trajectories, part.strong_rows, part.strong_found)))
            for part in parts
        ),
    )
    yield Table(
        "without a router (percent)",
        ("baseline", *HEADLINE.values(), "Combined"),
        (
            *((name, *(percent(each[metric]) for metric in names)) for name, each in found.baselines.items()),
            *(
                (f"best fixed, {best.basis}{how}", *(percent(each[metric]) for metric in names))
                for best in found.best_fixed
                for how, each in (("", best.chosen), (" (hindsight)", best.hindsight))
            ),
        ),
        note="the best fixed tier is chosen on training groups and scored on the others; fixed tiers and chance on all",
    )


def _refuse_to_overwrite(outcomes: Path, folder: Path, predictions: Path) -> None:
    """Outcomes replace earlier outcomes, never what they were made from."""
    if not outcomes.parent.is_dir():
        raise BadInput("its folder is not there", file=outcomes, field="--rows")
    place = outcomes.resolve()
    if outcomes.exists() and (place == predictions.resolve() or place.is_relative_to(folder.resolve())):
        raise BadInput("is one of the files that the score is made from", file=outcomes, field="--rows")
    refuse_in_a_release(outcomes, "--rows")


def _json(found: Score, settings: dict[str, Any]) -> dict[str, Any]:
    def part(one: ScorePart) -> dict[str, Any]:
        return {**asdict(one), "patterns": one.patterns}

    return {
        "settings": settings,
        "tiers": list(found.tiers),
        "missing": found.missing,
        "broken": found.broken,
        "overall": part(found.overall),
        "workloads": [part(one) for one in found.workloads],
        "baselines": found.baselines,
        "best_fixed": [{**asdict(best), "difference": best.difference} for best in found.best_fixed],
    }
