"""Commands that only look at something load none of the libraries that work needs."""

from __future__ import annotations

from pathlib import Path

import pytest

import stepdown
from benchmarks.startup import HEAVY, loaded_modules


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(stepdown.build("example", tmp_path_factory.mktemp("startup") / "run").folder)


def heavy(*arguments: str) -> set[str]:
    return set(HEAVY) & set(loaded_modules(arguments))


def test_help_loads_no_library() -> None:
    assert heavy("--help") == set()


def test_where_a_run_stands_is_said_without_libraries(run: str) -> None:
    assert heavy("status", run) == set()


def test_a_label_is_explained_without_libraries(run: str) -> None:
    assert heavy("explain", run, "till/bill-1/2") == set()


def test_what_works_loads_what_it_needs_and_no_provider_library(tmp_path: Path) -> None:
    assert heavy("build", "example", "--run", str(tmp_path / "run")) >= {"pydantic", "yaml"}
    assert not heavy("resume", str(tmp_path / "run")) & {"diskcache", "httpcore", "httpx", "litellm"}
