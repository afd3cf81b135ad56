"""Probes: every model tried at labelled steps. On planted instances the grid is what the oracle says it is; labels, and
what they cost, are as they were without it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepdown.builder.artifacts.labelling import label_run
from stepdown.builder.artifacts.names import EVIDENCE, PROBES, QUEUE, ROWS
from stepdown.builder.config.loading import load_config
from stepdown.builder.errors import BadInput, Interrupted
from stepdown.builder.run.reading import open_ledger
from stepdown.reports.probes import count_probes
from tests.conftest import Shop, stepdown
from tests.planted_oracle import STRONG, World, executed, search
from tests.provider import FAULTS, Failing, Provider
from tests.test_planted import NAMES, PlantedRun, hints, of_instance, plans, planted_run
from tests.workshop import ABILITIES, apprentice, config

Start = Callable[..., Provider]
Cell = tuple[int, int, str]
"""Instance, step and model."""

few = settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow])
MODELS = [f"{tier}-{k}" for tier, size in enumerate((3, 3, 3, 2)) for k in range(size)]


def grid_of(run: Path) -> dict[Cell, int | None]:
    found: dict[Cell, int | None] = {}
    for line in map(json.loads, (run / PROBES).read_text().splitlines()):
        _, instance, step = line["item"].split("/")
        assert (line["step"], line["tier"]) == (int(step), NAMES[int(line["model"][0])])
        found[int(instance), int(step), line["model"]] = line["outcome"]
    return found


def expected(
    worlds: Mapping[int, World], last: bool = False, passes: int = 1, of: int = 1
) -> tuple[dict[Cell, int | None], int]:
    """The grid, by one trial of the oracle for each cell, and the calls that take what the search has not tried."""
    cells: dict[Cell, int | None] = {}
    calls = 0
    for instance, world in worlds.items():
        answer = search(world, passes, of)
        for step in range(len(answer.models) if last else 1, len(answer.models) + 1):
            tried = {trial.model: trial for trial in answer.tried if trial.step == step}
            limit = next(iter(tried.values())).limit
            current = [*answer.models[: step - 1], *[f"{STRONG}-0"] * (limit - step + 1)]
            for model in MODELS:
                verdict, models = executed(world, current, step, model)
                cells[instance, step, model] = int(verdict == "pass")
                if model not in tried:
                    calls += len(models) - (step - 1)
    return cells, calls


# Planted grids


@few
@given(
    plan=plans,
    found=hints,
    early=st.booleans(),
    workers=st.integers(1, 4),
    cascade=st.integers(1, 3),
    passes=st.integers(1, 2),
    more=st.integers(0, 1),
)
def test_the_grid_is_the_planted_pass_table_and_only_what_the_search_left_out_is_paid_for(
    plan: list[list[int]],
    found: dict[tuple[int, int], int],
    early: bool,
    workers: int,
    cascade: int,
    passes: int,
    more: int,
) -> None:
    with planted_run() as run:
        rules = {"cascade": cascade, "probe": "all", "acceptance": {"passes": passes, "of": passes + more}}
        assert run.build(run.write(plan, {"early_verdicts": early}, rules, found, workers))
        worlds = {
            number: World(row, of_instance(found, number), cascade=cascade, early=early)
            for number, row in enumerate(plan, 1)
        }
        cells, calls = expected(worlds, passes=passes, of=passes + more)
        assert grid_of(run.run) == cells
        for (instance, step, model), outcome in cells.items():  # on a monotone pool: the tier is enough, or not
            assert outcome == (int(model[0]) >= plan[instance - 1][step - 1])
        assert run.calls == calls + sum(search(world, passes, passes + more).paid for world in worlds.values())


@few
@given(
    plan=plans,
    effects=st.lists(
        st.tuples(st.integers(1, 4), st.integers(1, 4)).filter(lambda pair: pair[0] != pair[1]), max_size=2
    ),
    shorter=st.dictionaries(
        st.sampled_from(["0-0", "1-1", "2-0"]), st.lists(st.integers(1, 4), max_size=2), max_size=2
    ),
)
def test_a_probe_is_the_trial_that_the_search_would_have_made_there(
    plan: list[list[int]], effects: list[tuple[int, int]], shorter: dict[str, list[int]]
) -> None:
    """Also where steps depend on one another, and where models make two steps at once."""
    with planted_run() as run:
        assert run.build(run.write(plan, {"effects": effects, "shorter": shorter}, {"probe": "all"}))
        worlds = {number: World(row, effects=effects, shorter=shorter) for number, row in enumerate(plan, 1)}
        cells, calls = expected(worlds)
        assert grid_of(run.run) == cells
        assert run.calls == calls + sum(search(world).paid for world in worlds.values())


PLAN = [[0, 3, 1], [2, 2], [3], [0, 0, 0, 1]]


def test_last_probes_the_last_step_of_each_final_trajectory_alone(tmp_path: Path) -> None:
    run = PlantedRun(tmp_path)
    assert run.build(run.write(PLAN, rules={"probe": "last"}))
    cells, calls = expected({number: World(row) for number, row in enumerate(PLAN, 1)}, last=True)
    assert grid_of(run.run) == cells
    assert {step for instance, step, _ in cells if instance == 4} == {4}
    assert run.calls == calls + sum(search(World(row)).paid for row in PLAN)


@pytest.mark.parametrize("probe", ["last", "all"])
def test_labels_evidence_and_their_cost_are_as_without_probes(tmp_path: Path, probe: str) -> None:
    plain, probed = PlantedRun(tmp_path / "plain"), PlantedRun(tmp_path / "probed")
    assert plain.build(plain.write(PLAN))
    assert probed.build(probed.write(PLAN, rules={"probe": probe}))
    for name in (ROWS, EVIDENCE, QUEUE):
        assert (probed.run / name).read_bytes() == (plain.run / name).read_bytes()
    before, after = (json.loads((run.run / "manifest.json").read_text()) for run in (plain, probed))
    for grown in ("protocol", "protocol_digest", "probes", "files"):
        before.pop(grown, None), after.pop(grown)
    assert after == before
    assert paid_for_labels(probed.run) == paid_for_labels(plain.run)
    assert not (plain.run / PROBES).exists()


def paid_for_labels(run: Path) -> list[Any]:
    return [one for one in json.loads((run / "spend.json").read_text())["by_model"] if one["purpose"] != "probe"]


@few
@given(at=st.integers(1, 160), crash=st.booleans(), workers=st.integers(1, 8))
def test_however_a_run_is_disturbed_the_grid_is_the_same_bytes_and_nothing_is_paid_twice(
    at: int, crash: bool, workers: int
) -> None:
    with planted_run() as whole, planted_run() as run:
        assert whole.build(whole.write(PLAN, rules={"probe": "all"}))
        again = run.write(PLAN, rules={"probe": "all"}, workers=workers)
        while not run.build(again, at, crash):
            at = 0
        assert (run.run / PROBES).read_bytes() == (whole.run / PROBES).read_bytes()
        assert (run.run / "manifest.json").read_bytes() == (whole.run / "manifest.json").read_bytes()
        assert run.calls == whole.calls


def test_another_run_with_the_same_cache_pays_for_its_probes_alone(tmp_path: Path) -> None:
    plain, probed = PlantedRun(tmp_path / "plain"), PlantedRun(tmp_path / "probed")
    assert plain.build(plain.write(PLAN, cache=tmp_path / "cache"))
    assert probed.build(probed.write(PLAN, rules={"probe": "all"}, cache=tmp_path / "cache"))
    assert probed.calls == expected({number: World(row) for number, row in enumerate(PLAN, 1)})[1]


def test_a_finished_run_gets_its_grid_by_relabelling_and_pays_for_nothing_else(tmp_path: Path) -> None:
    plain, afresh = PlantedRun(tmp_path / "plain"), PlantedRun(tmp_path / "afresh")
    assert plain.build(plain.write(PLAN))
    config = afresh.write(PLAN, rules={"probe": "all"})
    assert afresh.build(config)
    new = tmp_path / "new"
    done = stepdown("relabel", str(plain.run), "--config", str(config), "--run", str(new))
    assert done.code == 0, done.err
    assert (new / PROBES).read_bytes() == (afresh.run / PROBES).read_bytes()
    assert {one["purpose"] for one in json.loads((new / "spend.json").read_text())["by_model"]} == {"probe"}


# Who passes by luck


def test_the_strong_model_is_drawn_afresh_since_the_answers_of_a_seed_are_known_to_pass(
    shop: Shop, provider: Start
) -> None:
    """A strong model that can do a piece only when it is first asked has a seed, and fails wherever it is probed."""
    seen: set[str] = set()

    def once(request: dict[str, Any]) -> Any:
        question = str(request["messages"])
        able = question not in seen
        seen.add(question)
        return apprentice(9 if able else 0)(request)

    one = provider({**ABILITIES, "master": once})
    assert shop.build(config(one.url, [[2]], protocol={"rules": {"probe": "all"}})).code == 0
    assert [(cell["model"], cell["outcome"]) for cell in shop.read(PROBES)] == [
        ("novice", 0),
        ("hand", 0),
        ("master", 0),
    ]
    assert shop.labels() == [["high"]]


# Technical probes


def down(calls: int) -> Failing:
    """Fails so many requests, then works."""
    return Failing(calls, FAULTS["server_500"], apprentice(1))


def probed(url: str) -> dict[str, Any]:
    return config(url, [[0], [1], [0]], protocol={"rules": {"probe": "all"}})


def test_a_technical_probe_is_a_missing_value_that_a_resume_fills(shop: Shop, provider: Start) -> None:
    # The first job's label needs no hand: its probe is the first that asks one, and three tries fail.
    one = provider({**ABILITIES, "hand": Later(1, down(3), apprentice(1))})
    done = shop.build(probed(one.url))
    assert done.code == 3, done.err
    assert shop.labels() == [["low"], ["mid"], ["low"]]
    assert "1 probes came to no verdict for technical reasons" in done.err
    (lost,) = [cell for cell in shop.read(PROBES) if cell["outcome"] is None]
    assert (lost["model"], lost["verdict"], lost["cost"]) == ("hand", "technical", None)
    assert shop.manifest()["probes"]["verdicts"] == {"fail": 1, "pass": 7, "technical": 1}
    assert "8 of 9 outcomes; 1 technical" in stepdown("status", str(shop.run)).out
    said = stepdown("compare", str(shop.run), "--resamples", "0").out
    assert "1 items were left out" in said
    assert "hand: 1 missing, 1 of them technical" in said
    assert shop.resume().code == 0
    assert [cell["outcome"] for cell in shop.read(PROBES) if cell["item"] == lost["item"]] == [1, 1, 1]


def test_technical_probes_are_left_out_for_good_where_a_person_gives_up_on_them(shop: Shop, provider: Start) -> None:
    one = provider({**ABILITIES, "hand": Later(1, down(100), apprentice(1))})
    assert shop.build(probed(one.url)).code == 3
    asked = one.count()
    assert shop.resume("--drop-blocked").code == 0
    assert one.count() == asked
    assert [cell["verdict"] for cell in shop.read(PROBES) if cell["outcome"] is None] == ["technical", "technical"]


class Later:
    """One ability for the first requests, another from then on."""

    def __init__(self, count: int, later: Any, first: Any) -> None:
        self._left, self._later, self._first = count, later, first

    def __call__(self, request: dict[str, Any]) -> Any:
        self._left -= 1
        return (self._first if self._left >= 0 else self._later)(request)


def test_a_budget_that_ends_probing_leaves_all_labels_and_a_resume_goes_on(shop: Shop, provider: Start) -> None:
    settings = probed(provider().url)
    whole = Shop(shop.folder)
    whole.run = shop.folder / "whole"
    assert whole.build(settings).code == 0
    labels = sum(one["calls"] for one in paid_for_labels(whole.run))
    assert shop.build({**settings, "operation": {**settings["operation"], "budget": {"calls": labels + 1}}}).code == 3
    assert shop.labels() == whole.labels()
    assert 0 < len(shop.read(PROBES)) < len(whole.read(PROBES))
    status = json.loads(stepdown("status", str(shop.run), "--json").out)
    assert not status["finished"]
    assert shop.resume("--config", str(shop.write(settings))).code == 0
    assert (shop.run / PROBES).read_bytes() == (whole.run / PROBES).read_bytes()


def test_labels_are_in_the_files_before_probing_begins(shop: Shop, provider: Start) -> None:
    """The hand is asked by a probe alone, at which a person stops the run."""
    stop = threading.Event()

    def stopping(request: dict[str, Any]) -> Any:
        stop.set()
        return apprentice(1)(request)

    path = shop.write(config(provider({**ABILITIES, "hand": stopping}).url, [[0, 0]], protocol=PROBED))
    with pytest.raises(Interrupted):
        label_run(shop.run, load_config(path), stop=stop)
    assert shop.labels() == [["low", "low"]]
    assert {cell["model"] for cell in shop.read(PROBES)} == {"novice"}
    assert shop.resume().code == 0
    assert len(shop.read(PROBES)) == 6


PROBED = {"rules": {"probe": "all"}}


# What is seen of them


def test_explain_and_the_ledger_show_a_probe_with_what_its_model_answered(shop: Shop, provider: Start) -> None:
    assert shop.build(config(provider().url, [[0]], protocol={"rules": {"probe": "all"}})).code == 0
    (instance,) = {cell["item"].rpartition("/")[0] for cell in shop.read(PROBES)}
    said = stepdown("explain", str(shop.run), f"{instance}/1", "--answers").out
    assert "purpose=probe tier=mid model=hand" in said
    assert "hand answered: made 1 with skill 1" in said
    with open_ledger(shop.run) as ledger:
        assert [one.cells for one in ledger.probed.of_instances(3, last=True)] == [3]


def test_a_release_of_a_probed_run_holds_nothing_of_its_grid(shop: Shop, provider: Start) -> None:
    settings = config(provider().url, [[0, 1], [2, 0]], protocol={"rules": {"probe": "all"}, "audit": {"rate": 0}})
    assert shop.build(settings).code == 0
    release = shop.folder / "release"
    done = stepdown("publish", str(shop.run), "--out", str(release), "--creator", "Example Lab")
    assert done.code == 0, done.err
    assert stepdown("verify", str(release)).code == 0
    assert not list(release.rglob(PROBES))


# Compared


def corpus(tmp_path: Path) -> Path:
    run = PlantedRun(tmp_path)
    assert run.build(run.write({"instances": 12, "steps": 3}, {"early_verdicts": True}, {"probe": "all"}))
    return run.run


def test_compare_reads_a_run_as_it_reads_its_grid_in_any_form(tmp_path: Path) -> None:
    run = corpus(tmp_path)
    from_run, from_file = (
        json.loads(stepdown("compare", str(grid), "--resamples", "0", "--json").out) for grid in (run, run / PROBES)
    )
    table = (json.loads(line) for line in (run / PROBES).read_text().splitlines())
    rows = [",".join(str(cell[name]) for name in COLUMNS) for cell in table]
    (tmp_path / "grid.csv").write_text("\n".join([",".join(COLUMNS), *rows]) + "\n")
    from_csv = json.loads(stepdown("compare", str(tmp_path / "grid.csv"), "--resamples", "0", "--json").out)
    assert (from_run["items"], from_run["groups"], from_run["models"]) == (36, 12, MODELS)
    truth = [json.loads(line)["target_tier_id"] for line in (run / ROWS).read_text().splitlines()]
    assert from_run["means"] == [sum(int(model[0]) >= need for need in truth) / 36 for model in MODELS]
    assert from_run["flawless"] == ["3-0", "3-1"]
    for name in ("items", "groups", "models", "means", "oracle", "flawless", "left_out"):
        assert from_run[name] == from_file[name] == from_csv[name]
    assert [one["frontier"] for one in from_run["under"]] == [one["frontier"] for one in from_csv["under"]]
    # The file has no texts: its routers know shares alone, and the run's more than that.
    assert from_file["under"][0]["auroc"] == from_csv["under"][0]["auroc"]


COLUMNS = ("item", "model", "outcome", "group", "cost")


def test_a_model_that_made_the_seeds_can_be_left_out_of_a_comparison(tmp_path: Path) -> None:
    run = str(corpus(tmp_path))
    found = json.loads(
        stepdown("compare", run, "--resamples", "0", "--json", "--without", "3-0", "--without", "3-1").out
    )
    assert found["models"] == MODELS[:-2]
    assert found["flawless"] == []
    # An item that nobody but those left out lacks an outcome for is not left out with them.
    lines = (tmp_path / "run" / PROBES).read_text().splitlines()
    lost = next(number for number, line in enumerate(lines) if '"model": "3-0"' in line)
    lines[lost] = json.dumps({**json.loads(lines[lost]), "outcome": None, "verdict": "technical"})
    (tmp_path / "lossy.jsonl").write_text("\n".join(lines) + "\n")
    for without, left_out in (("3-0", 0), ("3-1", 1)):
        done = stepdown("compare", str(tmp_path / "lossy.jsonl"), "--resamples", "0", "--json", "--without", without)
        assert json.loads(done.out)["left_out"] == left_out
    wrong = stepdown("compare", run, "--without", "opus")
    assert (wrong.code, len(wrong.err.strip().splitlines())) == (2, 1)
    assert "--without: no model 'opus'; there are: 0-0, " in wrong.err


def test_a_run_without_a_grid_is_told_how_to_have_one(tmp_path: Path) -> None:
    run = PlantedRun(tmp_path)
    assert run.build(run.write([[0]]))
    done = stepdown("compare", str(run.run))
    assert done.code == 2
    assert "holds no probes.jsonl: `protocol.rules.probe: all` has a build make one" in done.err


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"[]", "probes.jsonl:1: must be an object"),
        (b'{"item": "planted/9/1", "model": "0-0", "outcome": 1}', "probes.jsonl:1: item: no row"),
        (b'{"item": "planted/1/1", "model": "0-0", "outcome": 2}', "probes.jsonl:1: outcome: 2 is above 1"),
        (b'{"item": "planted/1/1", "outcome": 1}', "probes.jsonl:1: model: is missing"),
        (b'{"item": ', "probes.jsonl:1: not JSON"),
    ],
)
def test_a_broken_grid_of_a_run_is_one_line(tmp_path: Path, line: bytes, problem: str) -> None:
    run = PlantedRun(tmp_path)
    assert run.build(run.write([[0]], rules={"probe": "all"}))
    (run.run / PROBES).write_bytes(line + b"\n")
    done = stepdown("compare", str(run.run))
    assert (done.code, len(done.err.strip().splitlines())) == (2, 1), done.err
    assert problem in done.err


# Single probing


def cells_of(table: Mapping[str, Any]) -> list[list[str]]:
    return [list(row) for row in table["rows"]]


def test_the_report_says_what_single_probing_would_have_labelled(shop: Shop, provider: Start) -> None:
    """The first of each tier is the weaker one: alone it lowers less, as the oracle of the pieces' skills says."""
    able = {"novice": apprentice(0), "clerk": apprentice(1, manner=" c"), "hand": apprentice(1), "smith": apprentice(2)}
    models = {"low": ["novice", "clerk"], "mid": ["hand", "smith"], "high": ["master"]}
    one = provider({**able, "master": apprentice(9)})
    needs = [[0, 1], [2], [3, 1, 0], [1]]
    assert shop.build(config(one.url, needs, models=models, protocol={"rules": {"probe": "all"}})).code == 0
    report = json.loads(stepdown("report", str(shop.run), "--json").out)
    lowered, moved = report["sections"]["probes"]
    steps = [need for row in needs for need in row]
    lasts = [row[-1] for row in needs]
    assert cells_of(lowered) == [audit("all", steps), audit("last", lasts)]
    assert cells_of(moved) == [
        ["low", "5", "2", "3", "0"],  # skill 1: the clerk does it at low; without him the hand does, at mid
        ["mid", "1", "0", "0", "1"],  # skill 2: the smith alone
        ["high", "1", "0", "0", "1"],
    ]


def audit(which: str, needs: Sequence[int]) -> list[str]:
    """By skill: low has 0 and 1, mid has 1 and 2; its first models have 0 and 1."""
    possible, single = sum(need <= 2 for need in needs), sum(need <= 1 for need in needs)
    same = sum(need in (0, 3) for need in needs)
    share = f"{100 * single / possible:.1f}%"
    return ["workshop", which, str(len(needs)), str(possible), str(possible), "100.0%", str(single), share, str(same)]


@pytest.mark.parametrize(("field", "value"), [("outcome", 7), ("outcome", "pass"), ("tier", "none"), ("label", "none")])
def test_a_report_takes_no_probe_that_is_none(tmp_path: Path, field: str, value: object) -> None:
    probe = {"item": "w/a/1", "step": 1, "steps": 1, "label": "low", "tier": "low", "model": "a", "outcome": 1}
    path = tmp_path / "probes.jsonl"
    path.write_text(json.dumps(probe) + "\n")
    assert count_probes(path, ["low", "high"], 1).all_steps["w"].lowerable == 1
    path.write_text(json.dumps({**probe, field: value}) + "\n")
    with pytest.raises(BadInput, match=r"probes\.jsonl:1: not the probes of a step of this run"):
        count_probes(path, ["low", "high"], 1)
