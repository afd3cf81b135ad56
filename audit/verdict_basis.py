"""What an audit verdict was based on, and whether the verdict still holds in a new version of the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepdown.builder.config.pool import Tier
from stepdown.builder.records import digest


@dataclass(frozen=True, slots=True)
class VerdictBasis:
    """What an audit verdict depends on."""

    prefix_digest: str
    """The exact digest of the step's prefix."""
    label: str
    label_id: int
    below: str
    """Digest of the models one tier below the label, from `models_below`."""


def carries_over(old: VerdictBasis, new: VerdictBasis) -> bool:
    """Whether a verdict carries over: prefix, label and the models one tier below must be the same.

    Else the step has to be reviewed again.

    >>> step = VerdictBasis("0f", "mid", 1, "ab")
    >>> carries_over(step, step), carries_over(step, VerdictBasis("0f", "mid", 1, "a"))
    (True, False)
    """
    return old == new


def models_below(tiers: Sequence[Tier], tier: int) -> str:
    """Digest of the models one tier below `tier` (an index), whatever their order; empty for the cheapest tier."""
    if tier == 0:
        return ""
    return digest(sorted(digest([model.identity, model.parameters]) for model in tiers[tier - 1].models))
