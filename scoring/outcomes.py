"""Per-row outcomes, for whoever wants to analyse a score anew: each row with the units that must be kept whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from stepdown.scoring.steps import ScoredTrajectory
from stepdown.scoring.tally import Batch, Outcomes

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray


def write_outcomes(
    file: IO[str],
    found: Sequence[ScoredTrajectory],
    predicted: NDArray[int64],
    batch: Batch,
    came_to: Outcomes,
    tiers: Sequence[str],
) -> None:
    """A line for each row of some trajectories: what was predicted, and what it came to."""
    place = 0
    for one in found:
        for step in one.steps:
            tier = int(predicted[place])
            line = {
                "id": step.id,
                "benchmark": one.benchmark,
                "instance_id": one.instance_id,
                "group": one.group,
                **({"split": one.split} if one.split else {}),
                "label": tiers[step.label],
                "predicted": tiers[tier] if tier >= 0 else None,
                "passed": bool(came_to.passed[place]),
                "exact": bool(came_to.exact[place]),
                "trajectory_passed": bool(came_to.trajectory[place]),
                "prompt_tokens": step.prompt,
                "output_tokens": step.output,
                "usd_strong": float(batch.high[place]),
                "usd_label": float(batch.label[place]),
                "usd_predicted": float(came_to.cost[place]),
            }
            file.write(json.dumps(line) + "\n")
            place += 1
