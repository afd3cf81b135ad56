"""What `stepdown publish` makes of finished runs: a folder that the field's own tools load, equal to the rows."""

from __future__ import annotations

import json
import os
import re
import tracemalloc
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import mlcroissant
import pytest
import yaml

from benchmarks.release import write_run
from stepdown.releases.croissant import CONTEXT, RAI_KEYS
from stepdown.releases.layout import Manifest, read_manifest, read_released_rows
from stepdown.releases.publish import publish
from stepdown.releases.verify import verify
from tests import workshop
from tests.conftest import Shop, stepdown
from tests.provider import Provider
from tests.releases.sealed import SETTINGS, SealedRun
from tests.releases.test_planted_defects import copied, problems_of, say

TIERS = {"low": ["novice"], "mid": ["hand"], "mid_high": ["journeyman"], "high": ["master"]}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A run that the engine built, of the tiers that the made-up run has."""
    made = Shop(tmp_path_factory.mktemp("built"))
    with Provider({**workshop.ABILITIES, "journeyman": workshop.apprentice(2)}) as provider:
        needs = [[0, 1, 2], [1], [0, 0], [3, 0], [2], [1, 1, 0]]
        settings = workshop.config(provider.url, needs, models=TIERS, protocol={"audit": {"rate": 0.0}})
        assert made.build(settings).code == 0
    return made


@pytest.fixture(scope="module")
def merged(built: Shop, sound_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One release of that run and the made-up one, published by the command."""
    release = tmp_path_factory.mktemp("merged") / "release"
    done = stepdown("publish", str(built.run), str(sound_run), "--out", str(release), "--holdout", "0.4")
    assert done.code == 0, done.out
    return release


def bank(release: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (release / "question_bank.jsonl").read_text().splitlines()]


def test_a_release_verifies(merged: Path) -> None:
    done = stepdown("verify", str(merged))
    assert (done.code, done.out) == (0, "ok: 42 rows of 16 instances\n")
    assert json.loads(stepdown("verify", str(merged), "--json").out) == {
        "ok": True,
        "rows": 42,
        "total": 0,
        "problems": [],
    }


def test_its_rows_are_those_of_the_runs_with_group_and_split(merged: Path, built: Shop, sound_run: Path) -> None:
    made = {row["id"]: row for row in bank(merged)}
    given = [json.loads(line) for run in (built.run, sound_run) for line in (run / "question_bank.jsonl").open()]
    assert len(made) == len(given) == 42
    for row in given:
        assert made[row["id"]] == {**row, "group": made[row["id"]]["group"], "split": made[row["id"]]["split"]}
    groups = {row["id"]: row["group"] for row in map(json.loads, (sound_run / "evidence.jsonl").open())}
    assert all(made[name]["group"] == group for name, group in groups.items())


def test_groups_are_held_out_whole_and_train_comes_first(merged: Path) -> None:
    found = bank(merged)
    splits: dict[tuple[str, str], set[str]] = {}
    for row in found:
        splits.setdefault((row["benchmark"], row["group"]), set()).add(row["split"])
    assert all(len(names) == 1 for names in splits.values())
    order = [row["split"] for row in found]
    assert order == sorted(order, reverse=True)
    assert set(order) == {"train", "test"}
    manifest = read_manifest(merged)
    assert {name: split.rows for name, split in manifest.splits.items()} == {
        name: order.count(name) for name in ("train", "test")
    }


def test_a_group_stays_in_its_split_as_a_release_grows(merged: Path, sound_run: Path, tmp_path: Path) -> None:
    smaller = publish([sound_run], tmp_path / "release", replace(SETTINGS, holdout=read_manifest(merged).holdout))
    assert smaller.rows == 30
    splits = {row.group: row.split for row in read_released_rows(merged)}
    assert all(splits[row.group] == row.split for row in read_released_rows(tmp_path / "release"))


def test_hugging_faces_datasets_loads_every_row_equal(
    merged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    loaded = datasets.load_dataset(str(merged), cache_dir=str(tmp_path))
    assert list(loaded) == ["train", "test"]
    assert all(set(part["split"]) == {name} for name, part in loaded.items())
    every = datasets.concatenate_datasets(list(loaded.values()))
    assert [read_back(row) for row in every] == bank(merged)


def read_back(record: dict[str, Any]) -> dict[str, Any]:
    """A loaded record as the row that it is."""
    row = {**record, "messages": json.loads(record["messages"]), "tools": json.loads(record["tools"] or "null")}
    return {name: value for name, value in row.items() if name != "tools" or value is not None}


def test_mlcroissant_validates_it_and_loads_its_records(merged: Path) -> None:
    described = mlcroissant.Dataset(str(merged / "croissant.json"))
    assert not described.metadata.ctx.issues.errors
    records = {record["rows/id"].decode(): record for record in described.records("rows")}
    assert len(records) == 42
    for row in bank(merged):
        record = records[row["id"]]
        assert json.loads(record["rows/messages"]) == row["messages"]
        assert record["rows/target_tier"].decode() == row["target_tier"]
        assert record["rows/step_index"] == row["step_index"]


def test_the_context_is_mlcroissants_own_and_every_rai_key_is_known(merged: Path) -> None:
    from mlcroissant._src.core import constants
    from mlcroissant._src.core.rdf import make_context

    assert dict(CONTEXT) == make_context()
    data = json.loads((merged / "croissant.json").read_text())
    used = {key for key in data if key.startswith("rai:")}
    known = {
        f"rai:{str(value).rsplit('/', 1)[-1]}"
        for name, value in vars(constants).items()
        if name.startswith("ML_COMMONS_RAI_")
    }
    assert used <= known & RAI_KEYS
    assert len(used) >= 12


def test_the_card_has_what_a_reader_needs(merged: Path) -> None:
    _, head, body = (merged / "README.md").read_text().split("---\n", 2)
    parsed = yaml.safe_load(head)
    assert parsed["configs"][0]["default"] is True
    assert parsed["size_categories"] == ["n<1K"]
    assert parsed["stepdown"]["rows"] == 42
    for title in ("What a label says", "Counts", "How the labels were made", "Audit", "Left out", "Known limits"):
        assert f"\n## {title}\n" in body
    assert "Intended use" in body
    assert "Out of scope" in body
    assert "no step of these workloads was to be audited" in body
    assert "| workshop | 6 | 12 |" in body
    assert {"workshop-1", "office-1"} <= set(re.findall(r"Pool `([^`]+)`", body))


def test_sums_are_as_sha256sum_reads_them(merged: Path) -> None:
    import hashlib

    lines = (merged / "SHA256SUMS").read_text().splitlines()
    names = {str(path.relative_to(merged)) for path in merged.rglob("*") if path.is_file()} - {"SHA256SUMS"}
    assert {line.split("  ")[1] for line in lines} == names
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((merged / name).read_bytes()).hexdigest() == digest


def test_evidence_and_model_trials_stay_at_home(merged: Path) -> None:
    assert not list(merged.rglob("evidence*"))
    assert not list(merged.rglob("spend*"))


def test_the_same_runs_make_the_same_bytes(sound_run: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        publish([sound_run], tmp_path / name, SETTINGS)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert len(files) == 8
    assert all((tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes() for name in files)


def test_shards_are_of_bounded_size_and_read_in_order(sound_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_run(run, rows=9000, steps=3)
    made = publish([run], tmp_path / "release", replace(SETTINGS, shard_bytes=1 << 20))
    shards = [name for name in made.files if name.startswith("data/train")]
    assert len(shards) > 1
    assert problems_of(lambda: verify(tmp_path / "release")) == []


# What a person may decide.


def published(run: Path, tmp_path: Path, *options: str) -> tuple[Manifest | None, str]:
    done = stepdown("publish", str(run), "--out", str(tmp_path / "release"), "--date", "2026-01-01", *options)
    return (read_manifest(tmp_path / "release") if done.code == 0 else None), done.out + done.err


def test_a_name_that_is_let_through_is_recorded_with_its_rows(sound_run: Path, tmp_path: Path) -> None:
    run = copied(sound_run, tmp_path / "run")
    SealedRun(run).rows(say("I am m1-alpha."))
    assert published(run, tmp_path)[0] is None
    manifest, out = published(run, tmp_path, "--allow-name", "M1-alpha")
    assert manifest is not None
    assert manifest.allowed_names == {"m1-alpha": 2}
    assert "allowed: m1-alpha in 2 rows" in out
    assert problems_of(lambda: verify(tmp_path / "release")) == []
    assert "`m1-alpha` (2 rows)" in (tmp_path / "release" / "README.md").read_text()


def test_a_home_folder_of_a_benchmark_can_be_let_through(sound_run: Path, tmp_path: Path) -> None:
    run = copied(sound_run, tmp_path / "run")
    SealedRun(run).rows(say("ls /home/alex/files", "tool"))
    assert published(run, tmp_path)[0] is None
    manifest, _ = published(run, tmp_path, "--allow-path", "/home/alex")
    assert manifest is not None
    assert manifest.allowed_paths == ("/home/alex",)
    assert problems_of(lambda: verify(tmp_path / "release")) == []


@pytest.mark.parametrize(
    "text", ["cd /testbed", "see /root/.bashrc", "/tmp/x.py", "/home/$USER/x", "~/x", "and/or", "x/root/y"]
)
def test_paths_of_a_benchmarks_own_container_may_stand_in_messages(text: str, sound_run: Path, tmp_path: Path) -> None:
    run = copied(sound_run, tmp_path / "run")
    SealedRun(run).rows(say(text, "tool"))
    assert published(run, tmp_path)[0] is not None


def test_an_instance_can_be_left_out_whole_and_is_counted(sound_run: Path, tmp_path: Path) -> None:
    run = copied(sound_run, tmp_path / "run")
    SealedRun(run).rows(say("sk-" + "a1B2" * 6, "tool"))
    manifest, _ = published(run, tmp_path, "--without", "office/case-0")
    assert manifest is not None
    assert (manifest.rows, manifest.instances) == (27, {"office": 9})
    assert manifest.left_out == {"office": {"left out by the publisher": 1}}
    assert problems_of(lambda: verify(tmp_path / "release")) == []


def test_a_run_with_work_left_is_published_only_when_asked_and_says_so(sound_run: Path, tmp_path: Path) -> None:
    run = copied(sound_run, tmp_path / "run")
    SealedRun(run).manifest(lambda data: data.update(unfinished=2, blocked={"office": {"an outage": 1}}))
    refused, out = published(run, tmp_path)
    assert refused is None
    assert "unfinished: 2 instances are unfinished (--partial)" in out
    assert "blocked.office: 1 instances are blocked (--partial)" in out
    manifest, _ = published(run, tmp_path, "--partial")
    assert manifest is not None
    assert manifest.left_out == {"*": {"unfinished": 2}, "office": {"blocked: an outage": 1}}
    assert "**Partial**" in (tmp_path / "release" / "README.md").read_text()
    assert problems_of(lambda: verify(tmp_path / "release")) == []


def test_a_path_in_a_runs_own_options_is_shortened_to_its_name(sound_run: Path, tmp_path: Path) -> None:
    run = copied(sound_run, tmp_path / "run")

    def sourced(data: dict[str, Any]) -> None:
        from stepdown.builder.records import digest

        data["protocol"]["workloads"][0]["source"] = {"file": "/home/annabel/tasks.jsonl"}
        data["protocol_digest"] = digest(data["protocol"])

    SealedRun(run).manifest(sourced)
    manifest, _ = published(run, tmp_path)
    assert manifest is not None
    assert manifest.runs[0].protocol["workloads"][0]["source"] == {"file": "tasks.jsonl"}
    assert (manifest.runs[0].model_extra or {})["shortened"] == ["workloads.0.source.file"]
    assert problems_of(lambda: verify(tmp_path / "release")) == []


def test_a_reason_that_quotes_a_path_is_told_without_it(sound_run: Path, tmp_path: Path) -> None:
    run = copied(sound_run, tmp_path / "run")
    reasons = {"not found: /tmp/a/x.json": 1, "not found: /home/annabel/x.json": 2}
    SealedRun(run).manifest(lambda data: data.update(dropped={"office": reasons}))
    manifest, _ = published(run, tmp_path)
    assert manifest is not None
    assert manifest.left_out == {"office": {"dropped: not found: (a path)": 3}}
    assert problems_of(lambda: verify(tmp_path / "release")) == []


def test_what_does_not_finish_leaves_nothing(sound_run: Path, tmp_path: Path) -> None:
    run = copied(sound_run, tmp_path / "run")

    def one_fewer(rows: list[dict[str, Any]]) -> None:
        del rows[1]

    SealedRun(run).rows(one_fewer)
    manifest, out = published(run, tmp_path)
    assert manifest is None
    assert "not published: " in out
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_empty_folder_takes_a_release(sound_run: Path, tmp_path: Path) -> None:
    (tmp_path / "release").mkdir()
    assert published(sound_run, tmp_path)[0] is not None


def test_a_draft_that_a_crash_left_is_begun_anew(sound_run: Path, tmp_path: Path) -> None:
    left = tmp_path / ".release.draft"
    (left / "data").mkdir(parents=True)
    (left / "data" / "train-00000.part").write_text("half")
    assert published(sound_run, tmp_path)[0] is not None
    assert not left.exists()
    assert problems_of(lambda: verify(tmp_path / "release")) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["publish", "nowhere", "--out", "release"], "nowhere: no finished run is here"),
        (["publish", "RUN", "--out", "RUN"], "is there and not an empty folder"),
        (["publish", "RUN", "--out", "release", "--date", "May"], "--date: must be a day"),
        (["publish", "RUN", "--out", "release", "--without", "office/none"], "--without: office/none: no run has"),
        (["publish", "RUN", "RUN", "--out", "release"], "given before"),
        (["publish", "RUN", "--out", "FILE/x"], "Not a directory"),
        (["verify", "nowhere"], "nowhere: No such file or directory"),
        (["verify", "RUN/manifest.json"], "Not a directory"),
        (["verify", "RUN"], "evidence.jsonl: does not belong into a release"),
    ],
)
def test_a_mistake_gets_one_line_that_names_it(
    arguments: list[str], said: str, sound_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    copied(sound_run, tmp_path / "RUN")
    (tmp_path / "FILE").write_text("")
    done = stepdown(*arguments)
    assert done.code == 2
    assert said in done.out + done.err


# Memory.


def peak(act: Any) -> int:
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    small_shards = replace(
        SETTINGS, shard_bytes=1 << 17
    )  # what waits for its row group is then the same for both sizes
    peaks: dict[str, list[int]] = {"publish": [], "verify": []}
    for count in (100, 400, 1600):
        run, release = tmp_path / f"run-{count}", tmp_path / f"release-{count}"
        write_run(run, rows=count, steps=5)
        peaks["publish"].append(peak(partial(publish, [run], release, small_shards)))
        peaks["verify"].append(peak(partial(verify, release)))
    for command, (_, small, large) in peaks.items():  # the first one also imports
        assert large < 1.5 * small, (command, small, large)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--name", "two\nlines"),
        ("--name", "x" * 201),
        ("--license", ""),
        ("--version", ""),
        ("--creator", "a\x1b[31mb"),
        ("--url", "https://example.org/\n---\n"),
    ],
)
def test_words_that_no_card_can_hold_are_refused_in_one_line(
    option: str, value: str, sound_run: Path, tmp_path: Path
) -> None:
    result = stepdown("publish", str(sound_run), "--out", str(tmp_path / "release"), option, value)
    assert (result.code, result.err.count("\n")) == (2, 1), result
    assert option in result.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_whose_name_is_no_text(sound_run: Path, tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"\xff\xfe")
    result = stepdown("publish", str(sound_run), "--out", str(odd))
    assert (result.code, "--name" in result.err) == (2, True), result
    assert stepdown("publish", str(sound_run), "--out", str(odd), "--name", "odd").code == 0
    assert stepdown("verify", str(odd)).code == 0


def test_nothing_is_published_into_a_run_or_a_release(sound_run: Path, sound_release: Path) -> None:
    for folder in (sound_run, sound_release):
        before = sorted(folder.rglob("*"))
        result = stepdown("publish", str(sound_run), "--out", str(folder / "inner"))
        assert (result.code, "is inside of" in result.err) == (2, True), result
        assert sorted(folder.rglob("*")) == before
