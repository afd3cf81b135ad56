"""The recorder of trials: every execution is recorded before its outcome is acted upon, and is made once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stepdown.builder.config.loading import load_config
from stepdown.builder.engine.build import Build
from stepdown.builder.engine.context import Job, RunContext
from stepdown.builder.engine.progress import RunProgress
from stepdown.builder.engine.replay import Replayer
from stepdown.builder.engine.search import Blocked
from stepdown.builder.engine.session import RunSession
from stepdown.builder.engine.trials import TrialRecorder
from stepdown.builder.errors import Interrupted, RunStopped
from stepdown.builder.records import Outcome, Sample, Trial, Verdict
from stepdown.builder.run.folder import RunFolder, open_for_work
from stepdown.builder.run.ledger import Purpose, TrialRecord
from stepdown.harnesses.planted.setup import planted_config

TRIAL = Trial(1, 0, "0-0", 1, Sample("repeat", 0))
Work = Callable[[Job, RunContext], object]


class Execution:
    """An execution that comes to a verdict, and how often it was made."""

    def __init__(self, verdict: Verdict = Verdict.FAIL) -> None:
        self.verdict, self.made = verdict, 0

    def __call__(self, replayer: Replayer) -> Outcome:
        self.made += 1
        return Outcome(self.verdict, reason="as said")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunFolder]:
    """A run whose one instance is labelled."""
    file = tmp_path / "config.yaml"
    file.write_text(json.dumps(planted_config({"tiers": [[1]]})))
    with open_for_work(tmp_path / "run", load_config(file)) as opened:
        build = Build(opened, threading.Event())
        build.admit()
        build.execute()
        yield opened


def work(run: RunFolder, do: Work) -> None:
    """Do something with the run's instance, as a process that goes on with the run would."""
    [record] = run.ledger.instances()
    session, done = RunSession(run, threading.Event()), []

    def note(job: Job, context: RunContext) -> None:
        do(job, context)
        done.append(job)

    jobs = session.select_finished({(record.benchmark, record.instance_id)})
    session.work(jobs, note, lambda: False, RunProgress())
    assert len(done) == 1


def repeats(run: RunFolder) -> list[TrialRecord]:
    return [trial for trial in run.ledger.trials(1) if trial.purpose is Purpose.REPEAT]


def test_what_was_executed_is_recorded_and_not_executed_again(run: RunFolder) -> None:
    execution = Execution()
    outcomes: list[Outcome] = []
    for _ in range(2):
        work(run, lambda *job: outcomes.append(TrialRecorder(*job).execute(Purpose.REPEAT, TRIAL, execution)))
    assert execution.made == 1
    assert [(one.verdict, one.reason) for one in outcomes] == [(Verdict.FAIL, "as said")] * 2
    [recorded] = repeats(run)
    assert (recorded.trial, recorded.verdict) == (TRIAL, Verdict.FAIL)


def test_other_samples_and_other_purposes_are_other_trials(run: RunFolder) -> None:
    execution, again = Execution(), Trial(1, 0, "0-0", 1, Sample("repeat", 1))

    def do(job: Job, context: RunContext) -> None:
        trials = TrialRecorder(job, context)
        trials.execute(Purpose.REPEAT, TRIAL, execution)
        trials.execute(Purpose.REPEAT, again, execution)
        trials.execute(Purpose.CONFIRM, TRIAL, execution)

    work(run, do)
    assert execution.made == 3


def test_an_execution_that_breaks_off_is_not_recorded(run: RunFolder) -> None:
    def break_off(replayer: Replayer) -> Outcome:
        raise RunStopped("the key is rejected")

    with pytest.raises(RunStopped):
        work(run, lambda *job: TrialRecorder(*job).execute(Purpose.REPEAT, TRIAL, break_off))
    assert repeats(run) == []


def test_a_technical_outcome_is_recorded_before_it_blocks(run: RunFolder) -> None:
    def do(job: Job, context: RunContext) -> None:
        trials = TrialRecorder(job, context)
        with pytest.raises(Blocked, match="as said"):
            trials.execute_to_verdict(Purpose.REPEAT, TRIAL, Execution(Verdict.TECHNICAL))
        assert [one.verdict for one in repeats(run)] == [Verdict.TECHNICAL]

    work(run, do)


def test_once_the_run_is_to_stop_recorded_outcomes_are_still_given_and_none_is_made(run: RunFolder) -> None:
    execution, other = Execution(), Execution()

    def do(job: Job, context: RunContext) -> None:
        TrialRecorder(job, context).execute(Purpose.REPEAT, TRIAL, execution)
        context.stop.set()
        trials = TrialRecorder(job, context)
        assert trials.execute(Purpose.REPEAT, TRIAL, execution).verdict is Verdict.FAIL
        with pytest.raises(Interrupted):
            trials.execute(Purpose.CONFIRM, TRIAL, other)

    work(run, do)
    assert (execution.made, other.made) == (1, 0)


def test_a_trial_says_which_trajectory_it_started_from(run: RunFolder) -> None:
    [record] = run.ledger.instances()
    final = record.final
    assert final is not None

    def do(job: Job, context: RunContext) -> None:
        trials = TrialRecorder(job, context)
        current = trials.read_trajectory(final)
        trials.execute(Purpose.REPEAT, TRIAL, Execution(), base=current)

    work(run, do)
    assert [one.base for one in repeats(run)] == [final]
