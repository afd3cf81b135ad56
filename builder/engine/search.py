"""The search: for every step of a passing trajectory, the cheapest tier that still lets the whole task pass.

Pure: it knows tiers, rules and outcomes, and asks `run` to execute a trial. Read it beside the protocol (paper,
section 3.2; the points where this search differs on purpose are in docs/decisions/).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from stepdown.builder.records import Lock, Outcome, Sample, Trajectory, Trial, Verdict

Run = Callable[[Trajectory, Trial], Outcome]
"""Executes a trial against the current trajectory."""

Hint = Callable[[int], int | None]
"""The tier (an index) to start at for a step of the seed; None where there is no hint."""


Each = Callable[[Callable[[str], Outcome], Sequence[str]], Iterable[Outcome]]
"""Applies a function to every model of a cascade, the outcomes in the cascade's order: `map`, or one that works on
several at once."""


@dataclass(frozen=True, slots=True)
class SearchRules:
    """The cascade of every tier below the strong one, cheapest first, and what makes a trial accepted."""

    cascades: Sequence[Sequence[str]]
    """The models to probe, by tier index, in order. The strong tier, at index `len(cascades)`, is not probed."""
    same_length: bool = False
    """An accepted trial makes exactly as many calls as the current trajectory, not just at most as many."""
    passes: int = 1
    of: int = 1
    """`passes` of `of` samples of a candidate must be accepted."""
    each: Each = map
    """How a tier's models are probed: one after another until one is accepted, or together."""

    @property
    def strong(self) -> int:
        return len(self.cascades)


@dataclass(frozen=True, slots=True)
class SearchResult:
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


def search(seed: Trajectory, strong_model: str, rules: SearchRules, hint: Hint, run: Run) -> SearchResult:
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
    return SearchResult(current, locks)


class Unforeseen(Exception):
    """What a search asks for next can not be told."""


def foreseen(
    seed: Trajectory,
    strong_model: str,
    rules: SearchRules,
    hint: Hint,
    known: Callable[[Trial], Outcome | None],
    most: int,
) -> list[tuple[Trajectory, Trial]]:
    """The trials that a search asks for next, in order, as long as none of them is accepted: not more than `most`, each
    with the current trajectory that it starts from.

    It is the search itself, gone through with the outcomes that are `known`; every other trial is taken to fail.
    `known` and `hint` may raise Unforeseen.
    """
    asked: list[tuple[Trajectory, Trial]] = []

    def run(current: Trajectory, trial: Trial) -> Outcome:
        outcome = known(trial)
        if outcome is not None:
            return outcome
        if len(asked) == most:
            raise Unforeseen
        asked.append((current, trial))
        return Outcome(Verdict.FAIL)

    with suppress(Blocked, Unforeseen):
        search(seed, strong_model, replace(rules, each=map), hint, run)
    return asked


def _first_tier(hinted: int | None, rules: SearchRules) -> int:
    """Where probing starts. A hint to keep the strong model means the tier just below it: high labels are probed."""
    return 0 if hinted is None else max(0, min(hinted, rules.strong - 1))


def _cheapest(i: int, t: int, current: Trajectory, rules: SearchRules, run: Run) -> _Accepted | None:
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


def _probe(i: int, t: int, current: Trajectory, rules: SearchRules, run: Run) -> _Accepted | None:
    """The first model of the tier's cascade that is accepted; None where all have failed."""

    def draw(model: str) -> Outcome:
        return _draw(Trial(step=i, tier=t, model=model, limit=len(current)), current, rules, run)

    unknown: Outcome | None = None
    cascade = rules.cascades[t]
    for model, outcome in zip(cascade, rules.each(draw, cascade), strict=False):
        if outcome.verdict is Verdict.PASS:
            return _Accepted(Lock(t, model), outcome.trajectory)
        if outcome.verdict is Verdict.TECHNICAL:
            unknown = unknown or outcome
    if unknown is not None:
        raise Blocked(i, t, unknown.reason)
    return None


def _draw(trial: Trial, current: Trajectory, rules: SearchRules, run: Run) -> Outcome:
    """One candidate's samples, in order, until it is certain whether enough are accepted.

    Pass with the lowest accepted sample, fail, or technical where unknown samples leave it open.
    """
    accepted: list[Outcome] = []
    unknown: list[Outcome] = []
    for number in range(rules.of):
        outcome = run(current, replace(trial, sample=Sample(number=number)))
        if is_accepted(outcome, trial.limit, rules):
            accepted.append(outcome)
        elif outcome.verdict is Verdict.TECHNICAL:
            unknown.append(outcome)
        left = rules.of - number - 1
        if len(accepted) == rules.passes:
            return accepted[0]
        if len(accepted) + len(unknown) + left < rules.passes:
            return Outcome(Verdict.FAIL)
    return unknown[0]


def is_accepted(outcome: Outcome, limit: int | None, rules: SearchRules) -> bool:
    """Verdict pass, within the limit (`same_length`: exactly at it)."""
    calls = len(outcome.trajectory)
    if outcome.verdict is not Verdict.PASS or limit is None:
        return outcome.verdict is Verdict.PASS
    return calls == limit if rules.same_length else calls <= limit
