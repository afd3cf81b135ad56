"""How many of the answers that people call good, and of those they call bad, a judge passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from stepdown.builder.common.intervals import Interval, exact_interval


@dataclass(frozen=True, slots=True)
class MeasuredShare:
    """A share as it was measured: a count out of a total, its rate, and the exact interval of the rate."""

    count: int
    of: int

    @property
    def rate(self) -> float | None:
        return self.count / self.of if self.of else None

    @property
    def interval(self) -> Interval:
        return exact_interval(self.count, self.of)

    def __str__(self) -> str:
        if self.rate is None:
            return "0 of 0"
        low, high = self.interval
        return f"{self.count} of {self.of} = {self.rate:.3f} [{low:.3f}, {high:.3f}]"

    def to_json(self) -> dict[str, Any]:
        return {"count": self.count, "of": self.of, "rate": self.rate, "interval": list(self.interval)}


@dataclass(frozen=True, slots=True)
class PassRates:
    """How many bad and how many good answers, by people's ratings, a judge passes."""

    passed_bad: int
    bad: int
    passed_good: int
    good: int

    @property
    def pseudo_pass(self) -> MeasuredShare:
        """P(pass | bad)."""
        return MeasuredShare(self.passed_bad, self.bad)

    @property
    def recall(self) -> MeasuredShare:
        """P(pass | good)."""
        return MeasuredShare(self.passed_good, self.good)

    @property
    def bad_among_passed(self) -> MeasuredShare:
        """P(bad | pass): the share of bad answers in a dataset that believes the judge."""
        return MeasuredShare(self.passed_bad, self.passed_bad + self.passed_good)

    @property
    def gain(self) -> float:
        """P(pass | good) - P(pass | bad): 1 for a judge that agrees with people, 0 for one that tosses a coin."""
        return (self.recall.rate or 0.0) - (self.pseudo_pass.rate or 0.0)

    def to_json(self) -> dict[str, Any]:
        return {
            "pass_given_bad": self.pseudo_pass.to_json(),
            "pass_given_good": self.recall.to_json(),
            "bad_given_pass": self.bad_among_passed.to_json(),
        }


def pass_rates(passes: Iterable[bool], good: Sequence[bool]) -> PassRates:
    """The rates of a judge's verdicts; `good` is what people say of the same answers, in the same order.

    >>> pass_rates([True, True, False], [True, False, False])
    PassRates(passed_bad=1, bad=2, passed_good=1, good=1)
    """
    pairs = list(zip(passes, good, strict=True))
    return PassRates(
        passed_bad=sum(passed and not fine for passed, fine in pairs),
        bad=sum(not fine for _, fine in pairs),
        passed_good=sum(passed and fine for passed, fine in pairs),
        good=sum(fine for _, fine in pairs),
    )
