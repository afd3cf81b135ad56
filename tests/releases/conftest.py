"""A finished run and the release made of it, each to be copied, spoilt and sealed again."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.release import write_run
from stepdown.releases.publish import publish
from tests.releases.sealed import SETTINGS


@pytest.fixture(scope="session")
def sound_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a run of ten instances of three steps each, with tools and tool calls."""
    run = tmp_path_factory.mktemp("sound") / "run"
    write_run(run, rows=30, steps=3)
    return run


@pytest.fixture(scope="session")
def sound_release(sound_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    release = tmp_path_factory.mktemp("sound") / "release"
    publish([sound_run], release, SETTINGS)
    return release
