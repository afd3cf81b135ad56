"""The engine on planted instances: labels, trials and calls are exactly those that the protocol defines.

The real engine runs, with its ledger, cache and release; only the models are planted. What must come out is computed
by `tests.planted_oracle`, which shares no code with it.
"""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepdown.builder.artifacts.names import EVIDENCE, MANIFEST, QUEUE, ROWS, SPEND
from stepdown.builder.artifacts.writing import write_artifacts
from stepdown.builder.config.loading import load_config
from stepdown.builder.config.pool import Model
from stepdown.builder.engine.build import Build
from stepdown.builder.engine.progress import RunProgress
from stepdown.builder.errors import BadInput, Interrupted, RunStopped
from stepdown.builder.records import Prefix, Response, Sample
from stepdown.builder.run.folder import open_for_work
from stepdown.harnesses.planted import Planted
from stepdown.harnesses.planted.setup import planted_config, planted_seeds
from tests.planted_oracle import STRONG, Answer, Tried, World, search

ROOT = Path(__file__).parent.parent
NAMES = ["low", "mid", "mid_high", "high"]
FILES = (ROWS, EVIDENCE, QUEUE, MANIFEST)

cheap = settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
tiers = st.lists(st.integers(0, 3), min_size=1, max_size=5)
plans = st.lists(tiers, min_size=1, max_size=3)
hints = st.dictionaries(st.tuples(st.integers(1, 3), st.integers(1, 5)), st.integers(0, 3), max_size=8)


class Disturbed(RunProgress):
    """Ends a build at its n-th call: as a person does, or as a crash between a response and its trial's record."""

    def __init__(self, at: int, crash: bool, stop: threading.Event) -> None:
        super().__init__()
        self.at, self.crash, self.stop = at, crash, stop

    def on_call(self, model: Model, response: Response, fresh: bool) -> None:
        super().on_call(model, response, fresh)
        if fresh and self.calls == self.at:
            self.stop.set()
            if self.crash:
                raise RunStopped("crashed")


class PlantedRun:
    """A run of the planted workload in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.run = folder, folder / "run"
        self.calls = 0
        """Calls made, over all builds."""

    def write(
        self,
        plan: Sequence[Sequence[int]] | Mapping[str, Any],
        options: Mapping[str, Any] | None = None,
        rules: Mapping[str, Any] | None = None,
        hints: Mapping[tuple[int, int], int] | None = None,
        workers: int = 1,
        cache: Path | None = None,
        reverse: bool = False,
        **operation: Any,
    ) -> Path:
        """The config's file. Seeds are given, so every call is the search's. `hints` are by (instance, step)."""
        source = dict(plan) if isinstance(plan, Mapping) else {"tiers": [list(row) for row in plan]}
        self.folder.mkdir(exist_ok=True)
        seeds = self.folder / "seeds.jsonl"
        given = planted_seeds(source)
        seeds.write_text("".join(json.dumps(line) + "\n" for line in given))
        protocol: dict[str, Any] = {"rules": dict(rules or {}), "audit": {"rate": 0.5}}
        if hints:
            lines = [{"id": f"planted/{i}/{step}", "tier": NAMES[tier]} for (i, step), tier in hints.items()]
            (self.folder / "hints.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            protocol["hints"] = {"source": "file", "file": "hints.jsonl"}
        operation |= {"workers": workers, "cache": str(cache) if cache else None}
        config = planted_config(
            source, options, protocol, operation, seeds=None if _strong_shortens(options) else seeds
        )
        if reverse:
            for tier in config["protocol"]["pool"]["tiers"][:-1]:
                tier["models"].reverse()
        path = self.folder / "config.yaml"
        path.write_text(json.dumps(config))
        return path

    def build(self, config: Path, at: int = 0, crash: bool = False) -> bool:
        """Build or go on; whether it came to its end. `at`: the call to be disturbed at."""
        stop = threading.Event()
        with open_for_work(self.run, load_config(config)) as run:
            work = Build(run, stop)
            if at:
                work.progress = Disturbed(at, crash, stop)
            work.admit()
            try:
                work.execute()
                if at:
                    work.probing.progress = Disturbed(at - work.progress.calls, crash, stop)
                work.probing.admit(again=True)
                work.probing.execute()
            except (Interrupted, RunStopped):
                return False
            finally:
                self.calls += work.progress.calls + work.probing.progress.calls
            write_artifacts(run, work.multi_step)
        return True

    def read(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.run / name).read_text().splitlines()]

    def found(self) -> dict[int, Answer]:
        """What the run came to, by instance, as the oracle puts it."""
        answers: dict[int, Answer] = {}
        for row in self.read(EVIDENCE):
            _, instance, step = row["id"].split("/")
            answer = answers.setdefault(int(instance), Answer([], []))
            answer.models.append(row["lock"]["model"])
            for trial in row["trials"]:
                fields = ("model", "sample", "limit", "verdict", "accepted", "calls")
                answer.tried.append(Tried(int(step), *(trial[name] for name in fields)))
        return answers

    def labels(self) -> list[list[int]]:
        found: dict[str, list[int]] = {}
        for row in self.read(ROWS):
            found.setdefault(row["instance_id"], []).append(row["target_tier_id"])
        return list(found.values())

    def files(self) -> dict[str, bytes]:
        return {name: (self.run / name).read_bytes() for name in FILES}


def _strong_shortens(options: Mapping[str, Any] | None) -> bool:
    return f"{STRONG}-0" in (options or {}).get("shorter", {})


@contextmanager
def planted_run() -> Iterator[PlantedRun]:
    """For property tests, in which fixtures are shared by all examples."""
    with tempfile.TemporaryDirectory() as folder:
        yield PlantedRun(Path(folder))


def of_instance(hints: Mapping[tuple[int, int], int], number: int) -> dict[int, int]:
    return {step: tier for (instance, step), tier in hints.items() if instance == number}


def agree(found: Mapping[int, Answer], expected: Mapping[int, Answer]) -> None:
    assert {n: a.models for n, a in found.items()} == {n: a.models for n, a in expected.items()}
    assert {n: a.tried for n, a in found.items()} == {n: a.tried for n, a in expected.items()}


# The planted corpus


@pytest.mark.parametrize(
    ("instances", "steps", "late", "early"),
    [(200, 10, 16.46, 6.63), (400, 10, 16.05, 6.64), (100, 30, 44.62, 14.77)],
)
def test_the_oracle_comes_to_the_figures_of_the_design(instances: int, steps: int, late: float, early: float) -> None:
    rows = [instance.task["tiers"] for instance in Planted().instances({"instances": instances, "steps": steps})]
    for verdicts, per_label in ((False, late), (True, early)):
        # A label is found from its own step alone: on monotone pools nothing else about the instance matters.
        paid = 0
        for row in rows:
            for step, need in enumerate(row, 1):
                failing = 3 * min(need, STRONG)
                passing = need < STRONG
                suffix = 1 + len(row) - step
                paid += failing * (1 if verdicts else suffix) + passing * suffix
        assert round(paid / (instances * steps), 2) == per_label
    # And the search itself pays just that.
    assert search(World(rows[0])).labels == rows[0]


@pytest.mark.parametrize(("instances", "steps", "early"), [(60, 10, False), (120, 10, True), (4, 30, False)])
def test_the_engine_pays_what_the_oracle_does_on_the_corpus(
    tmp_path: Path, instances: int, steps: int, early: bool
) -> None:
    """Its first instances, which a longer run has too."""
    source = {"instances": instances, "steps": steps}
    rows = [instance.task["tiers"] for instance in Planted().instances(source)]
    run = PlantedRun(tmp_path)
    assert run.build(run.write(source, {"early_verdicts": early}))
    expected = {number: search(World(row, early=early)) for number, row in enumerate(rows, 1)}
    agree(run.found(), expected)
    assert run.labels() == rows
    assert run.calls == sum(answer.paid for answer in expected.values())


def test_tiers_are_drawn_as_the_design_says_and_instances_one_by_one() -> None:
    draw = random.Random(7)
    expected = [[draw.choices(range(4), [71, 6, 5, 18])[0] for _ in range(9)] for _ in range(4)]
    endless = Planted().instances({"instances": 10**12, "steps": 9})
    assert [next(endless).task["tiers"] for _ in range(4)] == expected


# Labels, trials and calls


@cheap
@given(plan=plans, hints=hints, early=st.booleans(), workers=st.integers(1, 4), cascade=st.integers(1, 3))
def test_on_a_monotone_pool_labels_trials_and_calls_are_the_protocols(
    plan: list[list[int]], hints: dict[tuple[int, int], int], early: bool, workers: int, cascade: int
) -> None:
    with planted_run() as run:
        config = run.write(plan, {"early_verdicts": early}, {"cascade": cascade}, hints, workers)
        assert run.build(config)
        expected = {
            number: search(World(row, of_instance(hints, number), cascade=cascade, early=early))
            for number, row in enumerate(plan, 1)
        }
        assert run.labels() == plan
        agree(run.found(), expected)
        assert run.calls == sum(answer.paid for answer in expected.values())


@cheap
@given(
    plan=plans,
    hints=hints,
    disturbances=st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=1, max_size=4),
    workers=st.integers(1, 4),
)
def test_no_interruption_changes_a_byte_or_pays_a_call_twice(
    plan: list[list[int]],
    hints: dict[tuple[int, int], int],
    disturbances: list[tuple[int, bool]],
    workers: int,
) -> None:
    with planted_run() as run, planted_run() as undisturbed:
        for at, crash in disturbances:
            if run.build(run.write(plan, hints=hints, workers=workers), at, crash):
                break
        assert run.build(run.write(plan, hints=hints))
        assert undisturbed.build(undisturbed.write(plan, hints=hints))
        assert run.files() == undisturbed.files()
        assert run.calls == undisturbed.calls
        assert json.loads((run.run / SPEND).read_text())["calls"] == run.calls


@settings(cheap, max_examples=8)
@given(
    plan=plans,
    hints=hints,
    speculate=st.integers(1, 4),
    workers=st.integers(1, 2),
    together=st.booleans(),
    at=st.integers(0, 40),
)
def test_running_ahead_changes_no_byte_and_what_was_in_vain_is_counted(
    plan: list[list[int]], hints: dict[tuple[int, int], int], speculate: int, workers: int, together: bool, at: int
) -> None:
    rules = {"cascade_parallel": together}
    with planted_run() as ahead, planted_run() as plain:
        config = ahead.write(plan, None, rules, hints, workers, speculate=speculate)
        if not ahead.build(config, at):
            assert ahead.build(config)
        assert plain.build(plain.write(plan, None, rules, hints))
        assert ahead.files() == plain.files()
        spend, needed = (json.loads((run.run / SPEND).read_text()) for run in (ahead, plain))
        assert needed["in_vain"]["calls"] == 0
        assert spend["calls"] == needed["calls"]
        assert spend["unbooked"]["calls"] == spend["in_vain"]["calls"]
        assert ahead.calls == spend["calls"] + spend["in_vain"]["calls"]


@settings(cheap, max_examples=8)
@given(plan=plans, speculate=st.integers(1, 4), most=st.integers(1, 60))
def test_running_ahead_never_exceeds_a_budget(plan: list[list[int]], speculate: int, most: int) -> None:
    with planted_run() as run, planted_run() as plain:
        finished = run.build(run.write(plan, workers=2, speculate=speculate, budget={"calls": most}))
        assert run.calls <= most
        assert plain.build(plain.write(plan))
        assert run.build(run.write(plan, speculate=speculate))
        assert run.files() == plain.files()
        assert finished or run.calls >= plain.calls


def test_free_threads_execute_what_follows_if_the_trial_in_hand_fails(tmp_path: Path) -> None:
    """Two steps that nobody below the strong tier can make: all trials are needed, and three run at once."""
    run = PlantedRun(tmp_path)
    most, now, lock = 0, 0, threading.Lock()

    class Watched(Planted):
        def answer(self, *given: Any) -> Response | None:
            nonlocal most, now
            with lock:
                now += 1
                most = max(most, now)
            time.sleep(0.01)
            with lock:
                now -= 1
            return super().answer(*given)

    with open_for_work(run.run, load_config(run.write([[3, 3]], speculate=2))) as opened:
        work = Build(opened, threading.Event())
        for workload in work._session.workloads:
            workload.harness.__class__ = Watched
        work.admit()
        work.execute()
        write_artifacts(opened, work.multi_step)
    assert run.labels() == [[3, 3]]
    assert most == 3
    assert json.loads((run.run / SPEND).read_text())["in_vain"]["calls"] == 0


@pytest.mark.parametrize("seed", range(2))
def test_kill_9_changes_no_byte(tmp_path: Path, seed: int) -> None:
    plan = {"instances": 6, "steps": 6}
    draw = random.Random(seed)
    undisturbed, killed = PlantedRun(tmp_path / "whole"), PlantedRun(tmp_path / "killed")
    options = {"latency": 0.002}
    assert undisturbed.build(undisturbed.write(plan, options))
    config = killed.write(plan, options, workers=2)
    for moment in sorted(draw.sample(range(1, undisturbed.calls * 3 // 4), 3)):
        command = [sys.executable, "-m", "stepdown", "build", str(config), "--run", str(killed.run)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and calls_recorded(killed.run) < moment:
            time.sleep(0.002)
        process.kill()
        process.wait()
    assert killed.build(config)
    assert killed.files() == undisturbed.files()
    assert json.loads((killed.run / SPEND).read_text())["calls"] == undisturbed.calls


def calls_recorded(run: Path) -> int:
    try:
        db = sqlite3.connect(f"file:{run / 'ledger.sqlite'}?mode=ro", uri=True)
        try:
            return int(db.execute("SELECT count(*) FROM calls").fetchone()[0])
        finally:
            db.close()
    except sqlite3.Error:
        return 0


@cheap
@given(
    plan=plans,
    shorter=st.dictionaries(
        st.sampled_from(["0-0", "0-1", "1-0", "2-2", "3-0"]), st.lists(st.integers(1, 5), max_size=3, unique=True)
    ),
    effects=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)).filter(lambda p: p[0] != p[1]), max_size=3),
    hints=hints,
    early=st.booleans(),
    same=st.booleans(),
)
def test_with_shorter_continuations_and_effects_across_steps_the_search_is_the_protocols(
    plan: list[list[int]],
    shorter: dict[str, list[int]],
    effects: list[tuple[int, int]],
    hints: dict[tuple[int, int], int],
    early: bool,
    same: bool,
) -> None:
    options = {"shorter": shorter, "effects": [list(pair) for pair in effects], "early_verdicts": early}
    rules = {"step_rule": "same" if same else "non_increasing"}
    worlds = {
        number: World(row, of_instance(hints, number), early=early, same_length=same, effects=effects, shorter=shorter)
        for number, row in enumerate(plan, 1)
    }
    with planted_run() as run:
        assert run.build(run.write(plan, options, rules, hints))
        found = run.found()
        agree(found, {number: search(world) for number, world in worlds.items()})
        for number, world in worlds.items():
            # What is released is a mixed run that passes, not downgrades that each passed alone.
            assert world.played(found[number].models) == (len(world.needs), True)
            for trial in found[number].tried:
                fits = trial.calls == trial.limit if same else trial.calls <= trial.limit
                assert trial.accepted == (trial.verdict == "pass" and fits)


def test_a_pair_of_downgrades_that_fails_only_together_keeps_the_later_step_up(tmp_path: Path) -> None:
    run = PlantedRun(tmp_path)
    assert run.build(run.write([[0, 0, 0]], {"effects": [[1, 3]]}))
    assert run.labels() == [[0, 0, 3]]


@pytest.mark.parametrize(
    ("rule", "models", "limits"),
    [("non_increasing", ["0-0", "0-0"], [3, 2]), ("same", ["0-1", "0-0", "0-0"], [3, 3, 3, 3])],
)
def test_a_shorter_continuation_tightens_the_limit_or_is_not_accepted_as_the_rule_says(
    tmp_path: Path, rule: str, models: list[str], limits: list[int]
) -> None:
    """The first model makes steps 1 and 2 at once."""
    run = PlantedRun(tmp_path)
    assert run.build(run.write([[0, 0, 0]], {"shorter": {"0-0": [1]}}, {"step_rule": rule}))
    answer = run.found()[1]
    assert (answer.models, [trial.limit for trial in answer.tried]) == (models, limits)


def test_a_trial_that_would_outlast_the_current_trajectory_is_stopped_and_incomplete(tmp_path: Path) -> None:
    """The strong model makes steps 1 and 2 at once; nobody below it can, so each takes a call too many."""
    run = PlantedRun(tmp_path)
    assert run.build(run.write([[0, 0, 0]], {"shorter": {"3-0": [1]}}))
    assert run.labels() == [[3, 0]]
    assert {trial.verdict for trial in run.found()[1].tried if trial.step == 1} == {"incomplete"}


@cheap
@given(
    plan=plans,
    chance=st.dictionaries(st.sampled_from(["0-0", "0-1", "0-2", "1-0", "2-0"]), st.floats(0.1, 0.9), min_size=1),
    seed=st.integers(0, 1000),
    acceptance=st.sampled_from([(1, 1), (1, 2), (2, 2), (2, 3)]),
    early=st.booleans(),
)
def test_of_noisy_models_just_enough_samples_are_drawn(
    plan: list[list[int]], chance: dict[str, float], seed: int, acceptance: tuple[int, int], early: bool
) -> None:
    passes, of = acceptance
    options = {"noise": {"chance": chance, "seed": seed}, "early_verdicts": early}
    with planted_run() as run, planted_run() as again:
        assert run.build(run.write(plan, options, {"acceptance": {"passes": passes, "of": of}}))
        found = run.found()
        for number, row in enumerate(plan, 1):
            # Given what each sample came to, which are drawn and what follows from them is the protocol's.
            seen = {(t.step, t.model, t.sample): (t.verdict, t.calls) for t in found[number].tried}
            world = World(row, early=early)
            drawn = search(world, passes, of, drawn=lambda *key, seen=seen: seen[key])
            agree({number: found[number]}, {number: drawn})
            # A slip may raise a label and never lowers one.
            assert all(label >= need for label, need in zip(found[number].labels, row, strict=True))
        assert again.build(again.write(plan, options, {"acceptance": {"passes": passes, "of": of}}, workers=3))
        assert again.files() == run.files()


def test_samples_are_draws_of_their_own(tmp_path: Path) -> None:
    run = PlantedRun(tmp_path)
    options = {"noise": {"chance": {"0-0": 0.5}}}
    run.build(run.write({"instances": 20, "steps": 3}, options, {"acceptance": {"passes": 2, "of": 3}, "cascade": 1}))
    by_candidate: dict[tuple[int, int], set[str]] = {}
    for number, answer in run.found().items():
        for trial in answer.tried:
            if trial.model == "0-0":
                by_candidate.setdefault((number, trial.step), set()).add(trial.verdict)
    assert {"pass", "fail"} in by_candidate.values()


# Answers belong to their prefix


def assert_no_answer_is_stale(run: PlantedRun) -> None:
    """Every assistant's message is a step of the seed, or what its model says to the very messages before it."""
    harness = Planted()
    (instance,) = harness.instances({"tiers": [[0]]})
    for row in run.read(ROWS):
        messages = row["messages"]
        for place, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            name, words = message["content"].split()[0], message["content"].split()[-1]
            said = harness.answer(name, instance, Prefix.start(messages[:place]), Sample())
            assert said is not None
            of_seed = name == f"{STRONG}-0" and len(words) < 16
            assert of_seed or said.content == message["content"]


@cheap
@given(plan=plans, hints=hints)
def test_a_stale_answer_is_never_served_after_an_upstream_lock_changed(
    plan: list[list[int]], hints: dict[tuple[int, int], int]
) -> None:
    """Runs that share a cache lock other models at the same steps, so the same steps come after other prefixes."""
    with planted_run() as first, planted_run() as second, planted_run() as third:
        cache = first.folder / "shared"
        assert first.build(first.write(plan, cache=cache))
        assert second.build(second.write(plan, cache=cache, reverse=True, hints=hints))
        assert third.build(third.write(plan, cache=cache))
        for run in (first, second, third):
            assert run.labels() == plan
            assert_no_answer_is_stale(run)
        # What was paid for once is not paid again, and serves alike.
        assert third.calls == 0
        assert third.read(ROWS) == first.read(ROWS)


@pytest.mark.parametrize(
    "options", [{"volatile": True}, {"checkpoints": False}, {"volatile": True, "checkpoints": False}]
)
def test_volatile_text_and_replays_without_checkpoints_change_neither_labels_nor_calls(
    tmp_path: Path, options: dict[str, bool]
) -> None:
    plan = [[0, 3, 1, 0], [2, 0, 0, 3]]
    run = PlantedRun(tmp_path)
    assert not run.build(run.write(plan, options), at=30)
    assert run.build(run.write(plan, options))
    assert run.labels() == plan
    assert run.calls == sum(search(World(row)).paid for row in plan)


@cheap
@given(
    needs=tiers, made=st.lists(st.integers(0, 3), max_size=4), rest=st.lists(st.integers(0, 3), min_size=1, max_size=5)
)
def test_from_a_checkpoint_and_from_a_full_replay_an_episode_goes_on_alike(
    needs: list[int], made: list[int], rest: list[int]
) -> None:
    harness = Planted(early_verdicts=True, effects=[[1, 2]])
    instance = next(harness.instances({"tiers": [needs]}))
    with harness.open(instance) as whole:
        for tier in made[: len(needs) - 1]:
            whole.advance(Response(f"{tier}-0 makes 1 word"))
        taken = whole.checkpoint()
        before = whole.prefix().exact
        for _ in range(2):
            with harness.open(instance, taken) as resumed:
                assert resumed.prefix().exact == before
                outcomes = []
                for tier in rest:
                    going = resumed.advance(Response(f"{tier}-0 makes 1 word"))
                    outcomes.append((going, resumed.doomed(), resumed.verdict(), resumed.prefix().exact))
                    if not going:
                        break
        for outcome, tier in zip(outcomes, rest, strict=False):
            going = whole.advance(Response(f"{tier}-0 makes 1 word"))
            assert outcome == (going, whole.doomed(), whole.verdict(), whole.prefix().exact)


# The release


def test_a_finished_run_writes_its_files_anew_only_where_they_are_not_what_they_were(tmp_path: Path) -> None:
    run = PlantedRun(tmp_path)
    config = run.write([[0, 3], [1, 0]])
    assert run.build(config)
    whole, stamp = run.files(), (run.run / ROWS).stat().st_ino
    assert run.build(config)
    assert (run.run / ROWS).stat().st_ino == stamp
    for name in (*FILES, SPEND):
        kept = (run.run / name).read_bytes()
        for damage in (b"", kept[:-2], kept.replace(b"0", b"1", 1)):
            (run.run / name).write_bytes(damage)
            assert run.build(config)
            assert (run.run / name).read_bytes() == kept
        (run.run / name).unlink()
        assert run.build(config)
        assert run.files() == whole


# Size


def test_files_grow_with_what_was_paid_for_and_not_with_the_square_of_the_steps(tmp_path: Path) -> None:
    per_call = []
    for instances, steps in ((18, 10), (2, 30)):
        run = PlantedRun(tmp_path / str(steps))
        assert run.build(run.write({"instances": instances, "steps": steps}))
        size = sum(path.stat().st_size for path in run.run.rglob("*") if path.is_file())
        per_call.append(size / run.calls)
    assert max(per_call) < 1024
    assert per_call[1] < per_call[0] * 1.2


def test_memory_does_not_grow_with_instances(tmp_path: Path) -> None:
    peaks: list[int] = []
    for instances in (10, 10, 60):  # the first warms up what is kept for good
        run = PlantedRun(tmp_path / f"{instances}-{len(peaks)}")
        config = run.write({"instances": instances, "steps": 4}, {"early_verdicts": True})
        tracemalloc.start()
        assert run.build(config)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # What is left is a few hundred bytes per instance: its id, and where its seed lies in the file.
    assert peaks[2] - peaks[1] < 50 * 8192


# Bad input, and what is not needed


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"latency": -1}, "options.latency"),
        ({"early": True}, "options.early"),
        ({"effects": [[2, 2]]}, "options.effects"),
        ({"effects": [[0, 2]]}, "options.effects.0.0"),
        ({"shorter": {"4-0": [1]}}, "options.shorter"),
        ({"noise": {"chance": {"0-0": 1.5}}}, "options.noise.chance.0-0"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInput, match=field.replace(".", r"\.")):
        Planted(**options)


@pytest.mark.parametrize(
    ("source", "field"),
    [
        ({}, "source.instances"),
        ({"instances": 0, "steps": 3}, "source.instances"),
        ({"instances": 3, "steps": 3, "weights": [1, 2]}, "source.weights"),
        ({"instances": 3, "steps": 3, "weights": [0, 0, 0, 0]}, "source.weights"),
        ({"tiers": [[0, 4]]}, "source.tiers.0.1"),
        ({"tiers": [[]]}, "source.tiers.0"),
        ({"tiers": [[0]], "steps": 3}, "source.steps"),
    ],
)
def test_a_wrong_source_is_named_before_the_first_instance(source: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInput, match=field.replace(".", r"\.")):
        Planted().instances(source)


def test_a_run_without_a_provider_never_imports_the_provider_library(tmp_path: Path) -> None:
    run = PlantedRun(tmp_path)
    config = run.write([[0, 1]])
    script = (
        "import sys; from stepdown.builder.cli.main import main\n"
        f"try: main(['build', {str(config)!r}, '--run', {str(run.run)!r}])\n"
        "except SystemExit as end: print(end.code, 'litellm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 False"
    assert run.labels() == [[0, 1]]
