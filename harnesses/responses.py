"""What a response means for an episode before any predicate looks at it."""

from __future__ import annotations

from stepdown.builder.records import Response, Stop, Verdict

Finding = tuple[Verdict, str]
"""A verdict, and its reason where it is not pass."""


def stopped(response: Response) -> Finding | None:
    """What a response that is no answer means; None for one that is to be graded."""
    if response.stop is Stop.REFUSED:
        return Verdict.REFUSED, "the model refused"
    if response.stop is Stop.OVERFLOW:
        return Verdict.FAIL, "the prefix does not fit the model's context"
    if response.malformed:
        # Where no call is apt, an attempt at one that was taken for none would pass.
        return Verdict.FAIL, "a tool call that cannot be parsed"
    return None
