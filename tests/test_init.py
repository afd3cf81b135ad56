"""`stepdown init`: a folder with a commented config that runs, and nothing of anybody's overwritten."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from stepdown.builder.cli.init import CONFIG, KINDS
from stepdown.builder.config.loading import load_config
from stepdown.builder.config.protocol import SeedsConfig, WorkloadConfig
from stepdown.builder.engine.workloads import load_workload, select_instances
from stepdown.runs import build
from tests.conftest import stepdown


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_a_config_that_loads_with_its_bundled_ones_values(kind: str, tmp_path: Path) -> None:
    done = stepdown("init", str(tmp_path / "new"), "--kind", kind, "--sample")
    assert done.code == 0, done.err
    files = done.out.split()
    assert files[:2] == [str(tmp_path / "new" / name) for name in (CONFIG, "pool.yaml")]
    assert all(Path(file).is_file() for file in files)
    config, bundled = load_config(tmp_path / "new" / CONFIG), load_config(Path(KINDS[kind].config))
    [workload], [like] = config.protocol.workloads, bundled.protocol.workloads
    assert (workload.options, workload.seeds) == (like.options, like.seeds)
    assert config.operation.workers == bundled.operation.workers
    assert done.err.splitlines()[0] == "next:"


@pytest.mark.parametrize("kind", ["qa", "agent", "harness", "bfcl"])
def test_what_needs_no_daemon_selects_its_sample_tasks(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", list(sys.path))
    stepdown("init", str(tmp_path), "--kind", kind, "--sample")
    workload = load_workload(load_config(tmp_path / CONFIG).protocol, 0)
    assert len(list(select_instances(0, workload))) >= 3
    sys.modules.pop("mine", None)


def test_comments_are_the_docstrings_of_what_checks_the_config(tmp_path: Path) -> None:
    stepdown("init", str(tmp_path), "--kind", "qa", "--sample")
    lines = (tmp_path / CONFIG).read_text().splitlines()
    said = " ".join(line.strip().removeprefix("#").strip() for line in lines if line.strip().startswith("#"))
    for field in (SeedsConfig.model_fields["source"], WorkloadConfig.model_fields["harness"]):
        assert " ".join(str(field.description).split()) in said
    assert max(map(len, lines)) <= 115
    assert yaml.safe_load("\n".join(lines))["protocol"]["workloads"][0]["source"] == {"file": "questions.jsonl"}


def test_nothing_is_overwritten_and_then_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "pool.yaml").write_text("mine")
    done = stepdown("init", str(tmp_path), "--kind", "qa", "--sample")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"stepdown: {tmp_path / 'pool.yaml'}: is there already, and nothing is overwritten")
    assert [path.name for path in tmp_path.iterdir()] == ["pool.yaml"]
    assert (tmp_path / "pool.yaml").read_text() == "mine"


def test_without_a_sample_it_says_what_to_write_first(tmp_path: Path) -> None:
    done = stepdown("init", str(tmp_path), "--kind", "qa")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["pool.yaml", "run.yaml"]
    assert "  write questions.jsonl, a line for each: " in done.err
    missing = stepdown("doctor", str(tmp_path / CONFIG))
    assert (missing.code, "questions.jsonl" in missing.err) == (2, True)


def test_the_example_workloads_test_passes(tmp_path: Path) -> None:
    stepdown("init", str(tmp_path), "--kind", "harness")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.local
def test_an_empty_folder_comes_to_labels_in_two_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert stepdown("init", "--kind", "qa", "--sample").code == 0
    questions = Path("questions.jsonl")
    questions.write_text("".join(questions.read_text().splitlines(keepends=True)[:3]))
    run = build(CONFIG, "runs/first")
    assert len(list(run.rows())) == 3
