"""What a policy would have hinted on the steps of a run: by label and hint, the shares that an estimate goes by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from stepdown.builder.artifacts.names import ROWS
from stepdown.builder.artifacts.rows import read_rows
from stepdown.builder.engine.hints import PolicyHints
from stepdown.builder.estimate.arithmetic import Hints
from stepdown.routing.policies.contract import View


def hinted_in_run(hints: PolicyHints, folder: Path, tiers: Sequence[str]) -> Mapping[str, Hints]:
    """By benchmark, how often a policy hints each tier where a step's label is each tier. Raises BadInput.

    A step without a hint begins at the cheapest tier, as one that the run has no label of does in the estimate.
    """
    counts: dict[str, list[list[int]]] = defaultdict(lambda: [[0] * len(tiers) for _ in tiers])
    for _, row in read_rows(folder / ROWS):
        if row.target_tier in tiers:
            instance = f"{row.benchmark}/{row.instance_id}"
            view = View(row.messages, row.tools or (), row.step_index, tuple(tiers), instance=instance)
            counts[row.benchmark][tiers.index(row.target_tier)][hints.hint(view) or 0] += 1
    return {benchmark: [_shares(row) for row in found] for benchmark, found in counts.items()}


def _shares(counts: Sequence[int]) -> list[float]:
    total = sum(counts)
    return [count / total for count in counts] if total else [1.0] + [0.0] * (len(counts) - 1)
