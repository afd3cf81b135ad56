"""Whether what a reviewer said of a step still holds in a new version of the labels."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Audited:
    """What an audit verdict is a verdict on."""

    prefix: str
    """The exact digest of the step's prefix."""
    label: str
    label_id: int
    below: frozenset[str]
    """Who was not enough: identities of the models one tier below the label; empty for the cheapest tier."""


def carries_over(old: Audited, new: Audited) -> bool:
    """Only if prefix, label and the models of the tier below are the same; else the step is to be reviewed again.

    >>> step = Audited("0f", "mid", 1, frozenset({"a", "b"}))
    >>> carries_over(step, step), carries_over(step, Audited("0f", "mid", 1, frozenset({"a"})))
    (True, False)
    """
    return old == new
