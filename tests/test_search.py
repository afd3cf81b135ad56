"""The search takes exactly the trials that the protocol prescribes, and labels what they prove."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepdown.builder.engine.search import Blocked, SearchRules, Unforeseen, foreseen, search
from stepdown.builder.records import Lock, Outcome, Prefix, Response, Step, Trajectory, Trial, Verdict

PREFIX = Prefix.start([])
THREE_TIERS = SearchRules(cascades=[["low-a", "low-b"], ["mid-a", "mid-b"]])


def trajectory(length: int, model: str = "strong") -> Trajectory:
    return tuple(Step(PREFIX, Response(), model) for _ in range(length))


class Trials:
    """Executes trials by a rule and keeps what was asked for, as `step:model`."""

    def __init__(self, outcome: Callable[[Trajectory, Trial], Outcome | Verdict | bool]) -> None:
        self._outcome = outcome
        self.asked: list[str] = []
        self.trials: list[Trial] = []

    def __call__(self, current: Trajectory, trial: Trial) -> Outcome:
        self.trials.append(trial)
        self.asked.append(f"{trial.step}:{trial.model}")
        outcome = self._outcome(current, trial)
        if isinstance(outcome, Outcome):
            return outcome
        verdict = outcome if isinstance(outcome, Verdict) else Verdict.PASS if outcome else Verdict.FAIL
        candidate = Step(PREFIX, Response(), trial.model)
        return Outcome(verdict, (*current[: trial.step - 1], candidate, *trajectory(len(current) - trial.step)))


def passing(*names: str) -> Trials:
    """Trials that pass iff `step:model` is among the names."""
    return Trials(lambda current, trial: f"{trial.step}:{trial.model}" in names)


def no_hint(step: int) -> int | None:
    return None


def test_a_step_climbs_from_the_cheapest_tier_through_every_model_of_each_cascade() -> None:
    trials = passing("1:mid-b")
    found = search(trajectory(1), "strong", THREE_TIERS, no_hint, trials)
    assert trials.asked == ["1:low-a", "1:low-b", "1:mid-a", "1:mid-b"]
    assert found.locks == (Lock(1, "mid-b"),)


def foreseen_of(trials: Trials, executed: int, most: int, hint: Callable[[int], int | None] = no_hint) -> list[str]:
    """What is foreseen of a search over two steps once so many of its trials have been executed."""
    known: dict[Trial, Outcome] = {}

    def run(current: Trajectory, trial: Trial) -> Outcome:
        if len(known) == executed:
            raise Unforeseen
        known[trial] = trials(current, trial)
        return known[trial]

    seed = trajectory(2)
    with suppress(Unforeseen):
        search(seed, "strong", THREE_TIERS, no_hint, run)
    ahead = foreseen(seed, "strong", THREE_TIERS, hint, known.get, most)
    return [f"{trial.step}:{trial.model}" for _, trial in ahead]


def test_what_follows_is_foreseen_as_long_as_nothing_is_accepted() -> None:
    assert foreseen_of(passing(), 1, 4) == ["1:low-b", "1:mid-a", "1:mid-b", "2:low-a"]
    assert foreseen_of(passing("1:low-b"), 2, 3) == ["2:low-a", "2:low-b", "2:mid-a"]
    assert foreseen_of(passing(), 6, 9) == ["2:mid-a", "2:mid-b"]
    assert foreseen_of(passing(), 8, 9) == []


def test_nothing_is_foreseen_beyond_a_hint_that_nobody_has_asked_for_or_a_tier_that_is_unknown() -> None:
    def hint(step: int) -> int | None:
        if step == 2:
            raise Unforeseen
        return None

    assert foreseen_of(passing(), 1, 9, hint) == ["1:low-b", "1:mid-a", "1:mid-b"]
    assert foreseen_of(Trials(lambda current, trial: Verdict.TECHNICAL), 1, 9) == ["1:low-b"]


@given(st.sets(st.sampled_from([f"{i}:{m}" for i in (1, 2) for m in ("low-a", "low-b", "mid-a", "mid-b")])))
def test_the_first_trial_that_is_foreseen_is_the_one_that_is_asked_for_next(accepted: set[str]) -> None:
    whole = passing(*accepted)
    search(trajectory(2), "strong", THREE_TIERS, no_hint, whole)
    for executed, name in enumerate(whole.asked):
        assert foreseen_of(passing(*accepted), executed, 1) == [name]
    assert foreseen_of(passing(*accepted), len(whole.asked), 1) == []


def test_a_tier_passes_with_the_first_accepted_model_and_the_others_are_not_asked() -> None:
    trials = passing("1:low-a", "1:low-b")
    assert search(trajectory(1), "strong", THREE_TIERS, no_hint, trials).locks == (Lock(0, "low-a"),)
    assert trials.asked == ["1:low-a"]


def test_a_step_that_no_cheaper_tier_can_make_stays_strong_and_the_strong_tier_is_not_probed() -> None:
    trials = passing()
    assert search(trajectory(1), "strong", THREE_TIERS, no_hint, trials).locks == (Lock(2, "strong"),)
    assert all(trial.tier < 2 for trial in trials.trials)


def test_a_hint_starts_higher_and_a_pass_is_pushed_down() -> None:
    trials = passing("1:mid-a")
    assert search(trajectory(1), "strong", THREE_TIERS, lambda i: 1, trials).locks == (Lock(1, "mid-a"),)
    assert trials.asked == ["1:mid-a", "1:low-a", "1:low-b"]


def test_a_push_down_ends_at_the_cheapest_tier() -> None:
    trials = passing("1:mid-a", "1:low-b")
    assert search(trajectory(1), "strong", THREE_TIERS, lambda i: 1, trials).locks == (Lock(0, "low-b"),)
    assert trials.asked == ["1:mid-a", "1:low-a", "1:low-b"]


def test_a_climb_that_passes_is_not_pushed_down_into_a_tier_that_failed() -> None:
    trials = passing("1:mid-a")
    search(trajectory(1), "strong", THREE_TIERS, no_hint, trials)
    assert trials.asked == ["1:low-a", "1:low-b", "1:mid-a"]


def test_a_hint_to_keep_the_strong_model_probes_the_tier_just_below_it() -> None:
    trials = passing()
    assert search(trajectory(1), "strong", THREE_TIERS, lambda i: 2, trials).locks == (Lock(2, "strong"),)
    assert trials.asked == ["1:mid-a", "1:mid-b"]


def test_later_steps_are_tried_on_the_trajectory_that_earlier_locks_really_made() -> None:
    seen: list[list[str]] = []

    def outcome(current: Trajectory, trial: Trial) -> bool:
        seen.append([step.model for step in current])
        return trial.model == "low-a"

    search(trajectory(2), "strong", THREE_TIERS, no_hint, Trials(outcome))
    assert seen == [["strong", "strong"], ["low-a", "strong"]]


def test_a_shorter_passing_trajectory_replaces_the_current_one_and_tightens_the_limit() -> None:
    def outcome(current: Trajectory, trial: Trial) -> Outcome:
        shorter = (*current[: trial.step - 1], *trajectory(2, trial.model))
        return Outcome(Verdict.PASS, shorter[:2])

    trials = Trials(outcome)
    found = search(trajectory(4), "strong", THREE_TIERS, no_hint, trials)
    assert [trial.limit for trial in trials.trials] == [4, 2]
    assert len(found.trajectory) == len(found.locks) == 2


def test_hints_of_the_seed_are_void_once_the_trajectory_has_another_length() -> None:
    asked_for: list[int] = []

    def hint(step: int) -> int | None:
        asked_for.append(step)
        return 1

    def outcome(current: Trajectory, trial: Trial) -> Outcome:
        return Outcome(Verdict.PASS, (*current[: trial.step - 1], *trajectory(max(1, len(current) - trial.step))))

    search(trajectory(4), "strong", THREE_TIERS, hint, Trials(outcome))
    assert asked_for == [1]


@pytest.mark.parametrize(("same_length", "tier"), [(False, 0), (True, 2)])
def test_under_the_same_rule_a_shorter_trajectory_is_not_accepted(same_length: bool, tier: int) -> None:
    rules = SearchRules(THREE_TIERS.cascades, same_length=same_length)
    trials = Trials(lambda current, trial: Outcome(Verdict.PASS, current[: max(1, trial.step)]))
    assert search(trajectory(2), "strong", rules, no_hint, trials).locks[0].tier == tier


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.INCOMPLETE, Verdict.REFUSED])
def test_only_a_pass_is_accepted(verdict: Verdict) -> None:
    trials = Trials(lambda current, trial: verdict)
    assert search(trajectory(1), "strong", THREE_TIERS, no_hint, trials).locks == (Lock(2, "strong"),)


def test_an_unknown_candidate_is_passed_over_where_another_of_its_tier_passes() -> None:
    trials = Trials(lambda current, trial: Verdict.TECHNICAL if trial.model == "low-a" else True)
    assert search(trajectory(1), "strong", THREE_TIERS, no_hint, trials).locks == (Lock(0, "low-b"),)


def test_a_tier_that_stays_unknown_blocks_the_instance_and_no_higher_tier_is_tried() -> None:
    trials = Trials(lambda current, trial: Verdict.TECHNICAL if trial.model == "low-a" else False)
    with pytest.raises(Blocked) as blocked:
        search(trajectory(1), "strong", THREE_TIERS, no_hint, trials)
    assert (blocked.value.step, blocked.value.tier) == (1, 0)
    assert trials.asked == ["1:low-a", "1:low-b"]


def drawn(*verdicts: Verdict) -> Trials:
    """One candidate whose samples come to the verdicts in order."""
    return Trials(lambda current, trial: verdicts[trial.sample.number])


P, F, T = Verdict.PASS, Verdict.FAIL, Verdict.TECHNICAL


@pytest.mark.parametrize(
    ("verdicts", "drawn_samples", "tier"),
    [
        ((P, P, P), 2, 0),
        ((F, P, P), 3, 0),
        ((F, F, P), 2, 1),
        ((P, F, F), 3, 1),
        ((T, P, P), 3, 0),
    ],
)
def test_k_of_n_stops_as_soon_as_it_is_certain(verdicts: tuple[Verdict, ...], drawn_samples: int, tier: int) -> None:
    trials = drawn(*verdicts)
    rules = SearchRules([["only"]], passes=2, of=3)
    assert search(trajectory(1), "strong", rules, no_hint, trials).locks[0].tier == tier
    assert [trial.sample.number for trial in trials.trials] == list(range(drawn_samples))


def test_k_of_n_is_unknown_where_technical_samples_leave_it_open() -> None:
    with pytest.raises(Blocked):
        search(trajectory(1), "strong", SearchRules([["only"]], passes=2, of=3), no_hint, drawn(T, P, F))


@settings(deadline=None)
@given(
    truth=st.lists(st.integers(0, 3), min_size=1, max_size=8),
    hints=st.lists(st.none() | st.integers(0, 3), min_size=8, max_size=8),
    cascade=st.integers(1, 3),
)
def test_on_a_monotone_pool_labels_are_the_true_tiers_whatever_the_hints(
    truth: list[int], hints: list[int | None], cascade: int
) -> None:
    rules = SearchRules([[f"{tier}-{n}" for n in range(cascade)] for tier in range(3)])
    trials = Trials(lambda current, trial: trial.tier >= truth[trial.step - 1])
    found = search(trajectory(len(truth)), "strong", rules, lambda i: hints[i - 1], trials)
    assert [lock.tier for lock in found.locks] == truth
    assert len(set(trials.asked)) == len(trials.asked)
    for step, true in enumerate(truth, 1):
        tried = {trial.tier for trial in trials.trials if trial.step == step}
        # What proves a label: its own tier passed, and the tier below it failed.
        assert true == 3 or true in tried
        assert true == 0 or true - 1 in tried
