"""The ledger: what was recorded is read back as it was, and what was not is absent as a whole."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepdown.builder.errors import BadInput
from stepdown.builder.records import (
    Call,
    Instance,
    Lock,
    Outcome,
    Prefix,
    Receipt,
    Response,
    Sample,
    Step,
    ToolCall,
    Trajectory,
    Trial,
    Usage,
    Verdict,
)
from stepdown.builder.run.ledger import InstanceState, Ledger, Purpose, trial_entry

TOOL = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "object", "properties": {"z": {}, "a": {}}}},
}
SEED = Trial(0, 1, "strong", None, Sample("seed"))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path)
    made.admit([Instance("bfcl", "a", {}), Instance("bfcl", "b", {}, "no passages", group="passages")])
    return made


def played(said: list[str], start: Trajectory = (), keep: int = 0) -> Trajectory:
    """A trajectory: the first `keep` steps of another, then these responses."""
    steps = list(start[:keep])
    prefix = steps[-1].prefix.respond(steps[-1].response) if steps else Prefix.start([], [TOOL])
    for text in said:
        prefix = prefix.extend([{"role": "user", "content": f"before {text}"}])
        steps.append(Step(prefix, Response(text, (ToolCall("f", "{}"),)), f"model of {text}"))
        prefix = prefix.respond(steps[-1].response)
    return tuple(steps)


def seen(trajectory: Trajectory) -> list[Any]:
    """All there is to a trajectory, its order of keys included: a model is shown them in this order."""
    return [(s.prefix.exact, repr(s.prefix.messages), repr(s.prefix.tools), s.response, s.model) for s in trajectory]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 5), st.lists(st.text("xyz", max_size=3), min_size=1, max_size=4)), max_size=5))
def test_a_chain_of_accepted_trials_reads_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, trials: list[tuple[int, list[str]]]
) -> None:
    ledger = Ledger(tmp_path_factory.mktemp("ledger"))
    ledger.admit([Instance("bfcl", "a", {})])
    current = played(["p", "q", "r"])
    last = ledger.record(trial_entry(1, Purpose.SEED, SEED, Outcome(Verdict.PASS, current), Receipt(), accepted=True))
    for step, said in trials:
        keep = min(step, len(current) - 1)
        current = played(said, current, keep)
        trial = Trial(keep + 1, 0, "cheap", 9)
        outcome = Outcome(Verdict.PASS, current)
        last = ledger.record(trial_entry(1, Purpose.SEARCH, trial, outcome, Receipt(), accepted=True, base=last))
    assert seen(ledger.trajectories.read(last)) == seen(current)


def test_of_a_trial_that_was_not_accepted_the_candidates_answer_is_kept(ledger: Ledger) -> None:
    current = played(["p", "q"])
    base = ledger.record(trial_entry(1, Purpose.SEED, SEED, Outcome(Verdict.PASS, current), Receipt(), accepted=True))
    failed = Outcome(Verdict.FAIL, played(["z", "w"], current, 1), "wrong state")
    trial_id = ledger.record(
        trial_entry(1, Purpose.SEARCH, Trial(2, 0, "cheap", 2), failed, Receipt(), accepted=False, base=base)
    )
    assert ledger.trajectories.candidate_response(trial_id, 2) == failed.trajectory[1].response
    assert ledger.trajectories.candidate_response(trial_id, 3) is None
    record = ledger.trials(1)[-1]
    assert (record.verdict, record.calls, record.reason) == (Verdict.FAIL, 3, "wrong state")


def test_every_message_is_stored_once(ledger: Ledger, tmp_path: Path) -> None:
    current = played(["p", "q", "r"])
    for _ in range(5):
        ledger.record(trial_entry(1, Purpose.SEED, SEED, Outcome(Verdict.PASS, current), Receipt(), accepted=True))
    ledger.close()
    with sqlite3.connect(tmp_path / "ledger.sqlite") as db:
        # The tools, three orders, and the responses that a later prefix shows.
        assert db.execute("SELECT count(*) FROM texts").fetchone() == (1 + 3 + 2,)


def test_a_question_that_several_trials_asked_is_counted_once_and_paid_once(ledger: Ledger) -> None:
    key, usage = "ab" * 32, Usage(10, 1, 2, 3)
    for paid in (True, False):
        receipt = Receipt([Call(key, "m", usage, paid)], ["HTTP 500"])
        ledger.record(
            trial_entry(1, Purpose.SEARCH, Trial(1, 0, "m", 1), Outcome(Verdict.FAIL), receipt, accepted=False)
        )
    (total,) = ledger.call_totals()
    assert (total.model, total.calls, total.paid, total.usage) == ("m", 1, True, usage)
    assert ledger.retried_errors() == 2


def test_what_a_gateway_reports_is_booked_with_the_call_and_once(ledger: Ledger) -> None:
    calls = [
        Call("ab" * 32, "m", Usage(10), True, reported_usd=0.25),
        Call("cd" * 32, "m", Usage(10), True, reported_usd=0.0, usage_is_estimated=True),
        Call("ef" * 32, "m", Usage(10), True),
    ]
    for _ in range(2):
        trial = Trial(1, 0, "m", 1)
        ledger.record(
            trial_entry(1, Purpose.SEARCH, trial, Outcome(Verdict.FAIL), Receipt(list(calls)), accepted=False)
        )
    (total,) = ledger.call_totals()
    assert (total.calls, total.reported_usd, total.reported_calls, total.estimated_calls) == (3, 0.25, 2, 1)


def test_a_ledger_from_before_such_reports_is_read_as_it_is_and_goes_on(ledger: Ledger, tmp_path: Path) -> None:
    older = Receipt([Call("ab" * 32, "m", Usage(10), True)])
    ledger.record(trial_entry(1, Purpose.SEARCH, Trial(1, 0, "m", 1), Outcome(Verdict.FAIL), older, accepted=False))
    ledger.close()
    with sqlite3.connect(tmp_path / "ledger.sqlite") as db:
        db.execute("DROP TABLE accounts")
    (total,) = Ledger(tmp_path, read_only=True).call_totals()
    assert (total.calls, total.reported_calls, total.estimated_calls) == (1, 0, 0)
    again = Ledger(tmp_path)
    newer = Receipt([Call("cd" * 32, "m", Usage(10), True, reported_usd=0.5)])
    again.record(trial_entry(1, Purpose.SEARCH, Trial(1, 0, "m", 1), Outcome(Verdict.FAIL), newer, accepted=False))
    (total,) = again.call_totals()
    assert (total.calls, total.reported_usd, total.reported_calls) == (2, 0.5, 1)


def test_a_failed_transaction_leaves_nothing_behind(ledger: Ledger, tmp_path: Path) -> None:
    current = played(["p"])
    bad = Receipt([Call("not hex", "m", Usage(), True)])
    with pytest.raises(ValueError, match="hexadecimal"):
        ledger.record(trial_entry(1, Purpose.SEED, SEED, Outcome(Verdict.PASS, current), bad, accepted=True))
    assert ledger.trials(1) == []
    # What the failed one had stored is stored anew by the next.
    good = ledger.record(trial_entry(1, Purpose.SEED, SEED, Outcome(Verdict.PASS, current), Receipt(), accepted=True))
    assert seen(ledger.trajectories.read(good)) == seen(current)


def test_what_is_unknown_is_tried_again_and_what_was_passed_over_is_not(ledger: Ledger) -> None:
    for step, tier in ((1, 0), (2, 0), (2, 1)):
        trial = Trial(step, tier, "m", 3)
        ledger.record(trial_entry(1, Purpose.SEARCH, trial, Outcome(Verdict.TECHNICAL), Receipt(), accepted=False))
    ledger.record(trial_entry(1, Purpose.SEARCH, Trial(2, 0, "n", 3), Outcome(Verdict.FAIL), Receipt(), accepted=False))
    ledger.block(1, "HTTP 500")
    assert ledger.counts() == {InstanceState.BLOCKED: 1, InstanceState.DROPPED: 1}
    ledger.reopen()
    assert [trial.superseded for trial in ledger.trials(1)] == [False, True, True, False]
    assert ledger.instance("bfcl", "a").state is InstanceState.OPEN


def test_states_and_locks_read_back(ledger: Ledger, tmp_path: Path) -> None:
    trial = ledger.record(
        trial_entry(1, Purpose.SEED, SEED, Outcome(Verdict.PASS, played(["p"])), Receipt(), accepted=True)
    )
    ledger.finish(1, trial, [Lock(0, "m")])
    ledger.close()
    again = Ledger(tmp_path, read_only=True)
    assert [(r.instance_id, r.state, r.locks, r.reason) for r in again.instances()] == [
        ("a", InstanceState.DONE, (Lock(0, "m"),), ""),
        ("b", InstanceState.DROPPED, (), "no passages"),
    ]
    with pytest.raises(KeyError):
        again.instance("bfcl", "c")


def test_a_ledger_of_another_schema_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    ledger.close()
    with sqlite3.connect(tmp_path / "ledger.sqlite") as db:
        db.execute("PRAGMA user_version=99")
    with pytest.raises(BadInput, match="schema 99"):
        Ledger(tmp_path)


def test_a_truncated_ledger_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    ledger.close()
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(BadInput, match=r"ledger\.sqlite"):
        list(Ledger(tmp_path).instances())
