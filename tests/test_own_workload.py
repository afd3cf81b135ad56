"""docs/own-workload.md: its workload is labelled, keeps to the contract by its own test, and fails as the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, Shop

PAGE = (ROOT / "docs" / "own-workload.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """The page's only block in a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def pytest_in(folder: Path) -> subprocess.CompletedProcess[str]:
    """The page's test, run as a user runs it."""
    path = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_maze.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "maze.py").write_text(block("python"))
    (tmp_path / "test_maze.py").write_text(block("py"))
    return tmp_path


def test_its_own_test_passes(folder: Path) -> None:
    done = pytest_in(folder)
    assert done.returncode == 0, done.stdout


def test_what_is_wrong_is_said_as_the_page_has_it(folder: Path) -> None:
    careless = block("python").replace("return way if isinstance(way, str) else None", "return way")
    (folder / "maze.py").write_text(careless)
    done = pytest_in(folder)
    assert done.returncode == 1
    assert all(line in done.stdout for line in block("text").splitlines())


def test_the_workload_in_readme_keeps_to_the_contract_too(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    (tmp_path / "game.py").write_text(next(found for found in blocks if "class Guessing" in found))
    test = block("py").replace("from maze import Maze", "from game import Guessing")
    test = test.replace('Maze, source={"mazes": MAZES}', 'Guessing, source={"numbers": [17, 58]}')
    (tmp_path / "test_maze.py").write_text(test)
    done = pytest_in(tmp_path)
    assert done.returncode == 0, done.stdout


def test_its_labels_are_those_of_the_maze(folder: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.path", list(sys.path))
    tiers = [("low", "east"), ("high", "reference")]
    pool = [
        {"name": tier, "id": number, "models": [{"name": model, "model": f"workload/{model}"}]}
        for number, (tier, model) in enumerate(tiers)
    ]
    workload = {
        "harness": "maze:Maze",
        "source": {"mazes": [["S.#", "#..", "#.G"]]},
        "seeds": {"source": "reference"},
    }
    done = shop.build({"protocol": {"pool": {"version": "1", "tiers": pool}, "workloads": [workload]}})
    sys.modules.pop("maze", None)
    assert done.code == 0, done.err
    labels = [(row["step_index"], row["target_tier"]) for row in shop.read("question_bank.jsonl")]
    assert labels == [(1, "low"), (2, "high"), (3, "low"), (4, "high")]
