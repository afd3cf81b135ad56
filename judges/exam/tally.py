"""Counts what judges made of probes, and says when one has surely fallen below its bar.

The counts are looked at after every probe. So the bound is one that holds at all times together: a mixture of binomial
likelihoods (a Beta(1, 1) prior) over the likelihood at the bar is, where the rate is at the bar, ever at least
1 / `CHANCE` with a chance of at most `CHANCE` (Ville's inequality; Robbins 1970). All counts looked at share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, lgamma, log
from typing import Any, Literal

from stepdown.builder.config.protocol import JudgeBar
from stepdown.judges.calibration.measure import MeasuredShare
from stepdown.judges.exam.mutations import KINDS
from stepdown.judges.exam.probes import HONEST

Outcome = Literal["right", "wrong", "not believed"]
CHANCE = 0.01
"""The chance that a judge which is at its bar is ever said to be below."""
_LOOKED_AT = len(KINDS) + 2
"""Every kind, all kinds together, and the honest answers."""
_WORST: Mapping[str, int] = {"right": 0, "not believed": 1, "wrong": 2}


@dataclass(frozen=True, slots=True)
class Observation:
    """What one judge made of one probe."""

    judge: str
    kind: str
    probe: str
    """The digest of its case."""
    outcome: Outcome
    """`right`: it failed a wrong answer, or passed a good one. `not believed`: none of its reports could be used."""

    def to_json(self) -> dict[str, str]:
        return {"judge": self.judge, "kind": self.kind, "probe": self.probe, "outcome": self.outcome}


def observations_of(grading: Any) -> Iterator[Observation]:
    """The observations that a trial's grading holds. What is none is passed over."""
    judge = grading.get("judge") if isinstance(grading, Mapping) else None
    for found in (judge.get("probes") or ()) if isinstance(judge, Mapping) else ():
        if found["outcome"] in _WORST:
            yield Observation(found["judge"], found["kind"], found["probe"], found["outcome"])


class Tally:
    """Observations by judge. A probe that a judge met several times counts once, as the worst that came of it."""

    def __init__(self, observations: Iterable[Observation] = ()) -> None:
        self._by_judge: dict[str, dict[str, Observation]] = {}
        for observation in observations:
            self.add(observation)

    def add(self, observation: Observation) -> None:
        """Count one observation."""
        seen = self._by_judge.setdefault(observation.judge, {})
        known = seen.get(observation.probe)
        if known is None or _WORST[observation.outcome] > _WORST[known.outcome]:
            seen[observation.probe] = observation

    @property
    def judges(self) -> list[str]:
        return sorted(self._by_judge)

    def detection(self, judge: str, kind: str | None = None) -> MeasuredShare:
        """How many of the wrong answers, of all kinds or of one, a judge failed."""
        found = [one for one in self._of(judge) if one.kind != HONEST and kind in (None, one.kind)]
        return MeasuredShare(sum(one.outcome == "right" for one in found), len(found))

    def false_alarm(self, judge: str) -> MeasuredShare:
        """How many of the good answers a judge did not pass."""
        found = [one for one in self._of(judge) if one.kind == HONEST]
        return MeasuredShare(sum(one.outcome != "right" for one in found), len(found))

    def not_believed(self, judge: str) -> MeasuredShare:
        """On how many probes a judge gave no report that could be used. They count as not detected, and as alarms."""
        found = list(self._of(judge))
        return MeasuredShare(sum(one.outcome == "not believed" for one in found), len(found))

    def _of(self, judge: str) -> Iterable[Observation]:
        return self._by_judge.get(judge, {}).values()

    def below(self, judge: str, bar: JudgeBar) -> str | None:
        """In what a judge has surely fallen below its bar, in words; None where there is no such evidence."""
        shares = [("wrong answers", self.detection(judge))]
        shares += [(f"wrong answers of the kind {kind!r}", self.detection(judge, kind)) for kind in KINDS]
        for name, share in shares:
            if is_below(share.count, share.of, bar.detection):
                return f"it failed {share.count} of {share.of} {name}, and {bar.detection:g} of them is its bar"
        alarm = self.false_alarm(judge)
        if is_below(alarm.of - alarm.count, alarm.of, 1 - bar.false_alarm):
            return (
                f"it did not pass {alarm.count} of {alarm.of} good answers, and {bar.false_alarm:g} of them is its bar"
            )
        return None

    def by_kind(self, judge: str) -> dict[str, MeasuredShare]:
        """How many of the wrong answers of each kind that it met a judge failed."""
        return {kind: share for kind in KINDS if (share := self.detection(judge, kind)).of}

    def to_json(self, bar: JudgeBar, shown: Callable[[MeasuredShare], Any]) -> dict[str, Any]:
        """What each judge's probes came to, and in what it has fallen below its bar; `shown` is how a share is told."""
        return {
            judge: {
                "detection": shown(self.detection(judge)),
                "false_alarm": shown(self.false_alarm(judge)),
                "not_believed": shown(self.not_believed(judge)),
                "by_kind": {kind: shown(share) for kind, share in self.by_kind(judge).items()},
                "below_bar": self.below(judge, bar),
            }
            for judge in self.judges
        }


def is_below(count: int, of: int, bar: float) -> bool:
    """Whether `count` of `of` shows a rate below a bar, however often one has looked before.

    >>> is_below(0, 5, 0.8), is_below(0, 6, 0.8), is_below(24, 30, 0.8)
    (False, True, False)
    """
    if not of or count >= bar * of:
        return False
    mixture = lgamma(count + 1) + lgamma(of - count + 1) - lgamma(of + 2)
    at_bar = (count * log(bar) if count else 0.0) + ((of - count) * log(1 - bar) if bar < 1 else -inf)
    return mixture - at_bar >= log(_LOOKED_AT / CHANCE)
