"""A trial as it is written: made where it was executed, which need not be where the ledger is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepdown.builder.records import Outcome, OutcomeState, Receipt, Trial, Verdict
from stepdown.builder.run.ledger.schema import Purpose, kept_steps
from stepdown.builder.run.ledger.trajectories import AddedStep, added_steps

LONGEST_REASON = 2000
"""Characters; a reason may quote what a model wrote."""


@dataclass(frozen=True, slots=True)
class TrialEntry:
    """All that a ledger keeps of one trial."""

    instance: int
    purpose: Purpose
    base: int | None
    """The trial whose trajectory it started from."""
    trial: Trial
    verdict: Verdict
    accepted: bool
    calls: int
    """Steps of the trajectory that it came to."""
    reason: str
    grading: Mapping[str, Any] | None
    cut_off: bool
    state: OutcomeState | None
    receipt: Receipt
    steps: tuple[AddedStep, ...]


def trial_entry(
    instance: int,
    purpose: Purpose,
    trial: Trial,
    outcome: Outcome,
    receipt: Receipt,
    *,
    accepted: bool,
    base: int | None = None,
) -> TrialEntry:
    """What is kept of a trial.

    Of a seed or search trial that was accepted every step from the trial's own on is kept, of another search trial and
    of a probe the candidate's, of others none.
    """
    first = max(trial.step, 1)
    last = kept_steps(purpose, first, len(outcome.trajectory), accepted)
    return TrialEntry(
        instance=instance,
        purpose=purpose,
        base=base,
        trial=trial,
        verdict=outcome.verdict,
        accepted=accepted,
        calls=len(outcome.trajectory),
        reason=outcome.reason[:LONGEST_REASON],
        grading=outcome.grading,
        cut_off=outcome.cut_off,
        state=outcome.state,
        receipt=receipt,
        steps=added_steps(outcome.trajectory[:last], first),
    )
