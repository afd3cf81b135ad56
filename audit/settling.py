"""What the review of a step came to, and whether that holds its instance back."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from stepdown.audit.verdicts import AuditVerdict, ReviewedStep


class ReviewOutcome(StrEnum):
    """The outcome of a sampled step's review. The last three hold the whole instance back."""

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
    def is_verdict(self) -> bool:
        """Whether reviewers came to a verdict."""
        return self in (ReviewOutcome.TIGHT, ReviewOutcome.LOWER, ReviewOutcome.UNCERTAIN)


def review_outcome(step: ReviewedStep) -> ReviewOutcome:
    """The verdict of more than half of a step's reviewers, counting those who have not answered yet.

    Two who agree settle a step; two who disagree need a third. `further-downgradeable` on the lowest label does not
    count.
    """
    counts = Counter(
        said.verdict for said in step.said if not (step.step.lowest and said.verdict is AuditVerdict.LOWER)
    )
    given = sum(counts.values())
    for verdict, count in counts.items():
        if 2 * count > given + step.awaited:
            return ReviewOutcome(verdict.value)
    return ReviewOutcome.DISAGREE if given and not step.awaited else ReviewOutcome.OPEN
