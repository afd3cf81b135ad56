"""What the review of a step came to, and whether that holds its instance back."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from stepdown.audit.verdicts import ReviewedStep


class ReviewOutcome(StrEnum):
    """The outcome of a sampled step's review. The last three hold the whole instance back."""

    LOWEST = "lowest tier"
    """The label is the lowest tier: nothing is below it, so it is tight whatever anybody says. It settles itself."""
    TIGHT = "tight"
    LOWER = "further-downgradeable"
    UNCERTAIN = "uncertain"
    DISAGREE = "reviewers disagree"
    """No verdict has more than half of the votes. A further reviewer can settle it."""
    OPEN = "not reviewed"
    """Nobody has answered, or not yet everybody whom it was assigned to."""

    @property
    def holds_back(self) -> bool:
        return self in (ReviewOutcome.UNCERTAIN, ReviewOutcome.DISAGREE, ReviewOutcome.OPEN)

    @property
    def is_settled(self) -> bool:
        """Whether the step has come to a verdict: its reviewers', or its own where the label is the lowest tier."""
        return self is ReviewOutcome.LOWEST or self.is_verdict

    @property
    def is_verdict(self) -> bool:
        """Whether reviewers came to a verdict."""
        return self in (ReviewOutcome.TIGHT, ReviewOutcome.LOWER, ReviewOutcome.UNCERTAIN)


def review_outcome(step: ReviewedStep) -> ReviewOutcome:
    """The verdict of more than half of a step's reviewers, counting those who have not answered yet.

    Two who agree settle a step; two who disagree need a third. A step with the lowest label settles itself: what was
    said of it, or is still awaited, changes nothing.
    """
    if step.step.lowest:
        return ReviewOutcome.LOWEST
    counts = Counter(said.verdict for said in step.said)
    given = sum(counts.values())
    for verdict, count in counts.items():
        if 2 * count > given + step.awaited:
            return ReviewOutcome(verdict.value)
    return ReviewOutcome.DISAGREE if given and not step.awaited else ReviewOutcome.OPEN
