"""The search: for every step of a passing trajectory, the cheapest tier that still lets the whole task pass.

Pure: it knows tiers, rules and outcomes, and asks `run` to execute a trial. Read it beside the protocol (paper,
section 3.2; the points where this search differs on purpose are in docs/decisions.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from builder.records import Lock, Outcome, Sample, Trajectory, Trial, Verdict

Run = Callable[[Trajectory, Trial], Outcome]
"""Executes a trial against the current trajectory."""

Hint = Callable[[int], int | None]
"""The tier (an index) to start at for a step of the seed; None where there is no hint."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The cascade of every tier below the strong one, cheapest first, and what makes a trial accepted."""

    cascades: Sequence[Sequence[str]]
    """The models to probe, by tier index, in order. The strong tier, at index `len(cascades)`, is not probed."""
    same_length: bool = False
    """An accepted trial makes exactly as many calls as the current trajectory, not just at most as many."""
    passes: int = 1
    of: int = 1
    """`passes` of `of` samples of a candidate must be accepted."""

    @property
    def strong(self) -> int:
        return len(self.cascades)


@dataclass(frozen=True, slots=True)
class Found:
    """A finished search: the mixed trajectory that passed, and each step's accepted tier and model."""

    trajectory: Trajectory
    locks: tuple[Lock, ...]


class Blocked(Exception):
    """A tier's outcome is unknown for technical reasons, so no label can be given."""

    def __init__(self, step: int, tier: int, reason: str) -> None:
        super().__init__(reason)
        self.step, self.tier, self.reason = step, tier, reason


@dataclass(frozen=True, slots=True)
class _Accepted:
    lock: Lock
    trajectory: Trajectory


def search(seed: Trajectory, strong_model: str, rules: Rules, hint: Hint, run: Run) -> Found:
    """Label every step of a verified seed. Raises Blocked where a tier's outcome stays unknown."""
    current = seed
    strong = Lock(rules.strong, strong_model)
    locks = (strong,) * len(seed)
    i = 1
    while i <= len(current):
        hinted = hint(i) if len(current) == len(seed) else None
        best = _cheapest(i, _first_tier(hinted, rules), current, rules, run)
        if best is not None:
            current = best.trajectory
            locks = (*locks[: i - 1], best.lock, *[strong] * (len(current) - i))
        i += 1
    return Found(current, locks)


def _first_tier(hinted: int | None, rules: Rules) -> int:
    """Where probing starts. A hint to keep the strong model means the tier just below it: high labels are probed."""
    return 0 if hinted is None else max(0, min(hinted, rules.strong - 1))


def _cheapest(i: int, t: int, current: Trajectory, rules: Rules, run: Run) -> _Accepted | None:
    """Climb from tier t until one passes, or push down from it until one fails."""
    best: _Accepted | None = None
    failed: set[int] = set()
    while True:
        accepted = _probe(i, t, current, rules, run)
        if accepted is not None:
            best = accepted
            if t == 0 or t - 1 in failed:
                return best
            t -= 1
        else:
            failed.add(t)
            if best is not None or t + 1 == rules.strong:
                return best
            t += 1


def _probe(i: int, t: int, current: Trajectory, rules: Rules, run: Run) -> _Accepted | None:
    """The first model of the tier's cascade that is accepted; None where all have failed."""
    unknown = ""
    for model in rules.cascades[t]:
        trial = Trial(step=i, tier=t, model=model, limit=len(current))
        accepted, technical = _draw(trial, current, rules, run)
        if accepted is not None:
            return _Accepted(Lock(t, model), accepted)
        unknown = unknown or technical
    if unknown:
        raise Blocked(i, t, unknown)
    return None


def _draw(trial: Trial, current: Trajectory, rules: Rules, run: Run) -> tuple[Trajectory | None, str]:
    """One candidate's samples, in order, until its acceptance is certain: the lowest accepted one, or why unknown."""
    accepted: list[Trajectory] = []
    unknown, reason = 0, ""
    for number in range(rules.of):
        sample = Trial(trial.step, trial.tier, trial.model, trial.limit, Sample(number=number))
        outcome = run(current, sample)
        if is_accepted(outcome, trial.limit, rules):
            accepted.append(outcome.trajectory)
        elif outcome.verdict is Verdict.TECHNICAL:
            unknown, reason = unknown + 1, reason or outcome.reason
        if len(accepted) == rules.passes:
            return accepted[0], ""
        left = rules.of - number - 1
        if len(accepted) + unknown + left < rules.passes:
            return None, ""
    return None, reason


def is_accepted(outcome: Outcome, limit: int | None, rules: Rules) -> bool:
    """Verdict pass, within the limit (`same_length`: exactly at it)."""
    calls = len(outcome.trajectory)
    if outcome.verdict is not Verdict.PASS or limit is None:
        return outcome.verdict is Verdict.PASS
    return calls == limit if rules.same_length else calls <= limit
