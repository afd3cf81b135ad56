"""Labelled rows, whoever made them: read, and used to score a router."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from stepdown.audit.revisions import current_files
from stepdown.builder.artifacts import rows
from stepdown.builder.artifacts.names import ROWS
from stepdown.builder.artifacts.rows import Row
from stepdown.builder.common.extras import require
from stepdown.builder.run.reading import is_run
from stepdown.scoring import score as scoring
from stepdown.scoring.bank import open_bank
from stepdown.scoring.predictions import Predictions
from stepdown.scoring.rates import read_rates
from stepdown.scoring.result import Score
from stepdown.scoring.tokenizers import load_tokenizer


def read_rows(source: Path | str) -> Iterator[Row]:
    """The rows of a run's folder, a release's folder or a JSONL file, one in memory at a time.

    Those of a run are as its reviewers left them, where an audit was applied. Raises BadInput, naming file, line and
    field, at the first line that is no row.
    """
    for _, row in rows.read_rows(_file_of(Path(source))):
        yield row


def _file_of(source: Path) -> Path:
    if not source.is_dir():
        return source
    return (current_files(source) if is_run(source) else source) / ROWS


def score(
    source: Path | str,
    predictions: Mapping[str, str | int] | Path | str,
    split: str | None = None,
    rates: Path | str | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Score:
    """Score a router's tiers for the rows of a release or a run, as `stepdown score` does. No model is called.

    `predictions` are tiers, by name or id, by row id; or a CSV or JSONL file of them. A row without one fails. `split`
    scores only its rows; `rates` is a YAML card of prices by tier, in place of the paper's; `resamples` are the
    bootstrap's for the intervals (0: none) and `seed` is its seed. Raises BadInput.
    """
    require("release", "numpy")
    bank = open_bank(Path(source))
    card = read_rates([tier.name for tier in bank.tiers], None if rates is None else Path(rates))
    settings = scoring.ScoreSettings(card, load_tokenizer(), split, resamples, seed=seed)
    if not isinstance(predictions, Mapping):
        return scoring.score(bank, Predictions(Path(predictions), bank.tiers), settings)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "predictions.jsonl"
        lines = (json.dumps({"id": row_id, "tier": tier}) for row_id, tier in predictions.items())
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return scoring.score(bank, Predictions(file, bank.tiers), settings)
