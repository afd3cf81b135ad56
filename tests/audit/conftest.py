"""A planted run that several tests look at, and copies of it for those that change it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from stepdown.harnesses.planted.setup import planted_config, planted_seeds
from tests.conftest import stepdown

SOURCE = {"instances": 12, "steps": 6}


@pytest.fixture(scope="session")
def planted_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of twelve planted instances, six steps each. To be read only."""
    folder = tmp_path_factory.mktemp("planted")
    seeds, config = folder / "seeds.jsonl", folder / "config.yaml"
    seeds.write_text("".join(json.dumps(line) + "\n" for line in planted_seeds(SOURCE)))
    config.write_text(json.dumps(planted_config(SOURCE, {"early_verdicts": True}, seeds=seeds)))
    result = stepdown("build", str(config), "--run", str(folder / "run"))
    assert result.code == 0, result.err
    return folder / "run"


@pytest.fixture
def run(planted_run: Path, tmp_path: Path) -> Path:
    """A run of one's own."""
    shutil.copytree(planted_run, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def sampled(run: Path) -> Path:
    """A run of one's own with a third of its steps in the sample."""
    assert stepdown("audit", "sample", str(run), "--rate", "0.33").code == 0
    return run


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[Path], Path]:
    """Copies a run."""
    count = iter(range(100))

    def make(source: Path) -> Path:
        return Path(shutil.copytree(source, tmp_path / f"copy-{next(count)}"))

    return make
