"""The files that a config names reach nodes that do not have them, once, and nothing else does."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.cluster.parcels import code_parcel, packed, parcels_of
from stepdown.builder.cluster.worker import NodeWorker, RunSetup
from stepdown.builder.config.loading import Config, load_config
from stepdown.builder.engine.context import Job, RunContext
from stepdown.builder.engine.workloads import load_workload, versions_of
from stepdown.builder.errors import BadInput

WORKLOAD = """
from pathlib import Path
from tests.workshop import Workshop as Base

class Workshop(Base):
    name = Path(__file__).with_name("name.txt").read_text()
"""


def nothing(job: Job, context: RunContext) -> None:
    """A task that is never done."""


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test loads is loaded by no later one."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("shop_of_mine", None)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Of a run whose workload, hints and seeds are files beside it, as are a run and other things."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "node"))
    home = tmp_path / "head"
    (home / "run" / "cache").mkdir(parents=True)
    (home / "run" / "ledger.sqlite").write_text("a run")
    (home / ".secret").write_text("hidden")
    (home / "large.bin").write_bytes(b"0" * ((1 << 20) + 1))
    (home / "shop_of_mine.py").write_text(WORKLOAD)
    (home / "name.txt").write_text("shop-of-mine")
    (home / "hints.jsonl").write_text('{"id": "shop-of-mine/job-0/1", "tier": "low"}\n')
    steps = [{"content": "made 1 with skill 9", "tool_calls": []}]
    (home / "seeds.jsonl").write_text(json.dumps({"instance_id": "job-0", "model": "master", "steps": steps}) + "\n")
    made: dict[str, Any] = {
        "protocol": {
            "pool": {
                "version": "1",
                "tiers": [
                    {"name": "low", "id": 0, "models": [{"name": "novice", "model": "workload/skill-0"}]},
                    {"name": "high", "id": 1, "models": [{"name": "master", "model": "workload/skill-9"}]},
                ],
            },
            "workloads": [
                {
                    "harness": "shop_of_mine:Workshop",
                    "source": {"needs": [[0]]},
                    "seeds": {"source": "import", "file": "seeds.jsonl"},
                }
            ],
            "hints": {"source": "file", "file": "hints.jsonl"},
        }
    }
    (home / "config.yaml").write_text(json.dumps(made))
    return load_config(home / "config.yaml")


def test_a_node_works_with_what_was_packed_where_it_has_nothing(config: Config, tmp_path: Path) -> None:
    parcels = tuple(parcels_of(config))
    contents = {parcel.digest: packed(parcel) for parcel in parcels}
    fetched: list[str] = []

    def fetch(digest: str) -> bytes:
        fetched.append(digest)
        return contents[digest]

    here = versions_of([load_workload(config.protocol, 0)], config.protocol)
    del sys.modules["shop_of_mine"]  # a node's process has not loaded it
    (tmp_path / "head").rename(tmp_path / "elsewhere")
    setup = RunSetup(config, parcels, (), "run-1", nothing)
    for _ in range(2):  # the second process on the node finds what the first has unpacked
        assert NodeWorker().begin(setup, {}, fetch) == here
    assert sorted(fetched) == sorted(contents)
    names = {path.name for path in (tmp_path / "node").rglob("*") if path.is_file()}
    assert names >= {"shop_of_mine.py", "name.txt", "hints.jsonl", "seeds.jsonl"}
    assert not names & {"ledger.sqlite", ".secret", "large.bin"}


def test_a_folder_that_both_have_is_used_where_it_is(config: Config, tmp_path: Path) -> None:
    def fetch(digest: str) -> bytes:
        raise AssertionError("nothing is sent")

    NodeWorker().begin(RunSetup(config, tuple(parcels_of(config)), (), "run-1", nothing), {}, fetch)
    assert not (tmp_path / "node" / "stepdown" / "cluster" / "files").exists()


def test_a_key_of_the_node_is_kept_and_one_that_it_lacks_is_taken_over(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_BOTH", "the node's")
    monkeypatch.delenv("KEY_OF_THE_HEAD", raising=False)
    setup = RunSetup(config, tuple(parcels_of(config)), (), "run-1", nothing)
    NodeWorker().begin(setup, {"KEY_OF_BOTH": "the head's", "KEY_OF_THE_HEAD": "the head's"}, lambda digest: b"")
    assert (os.environ["KEY_OF_BOTH"], os.environ["KEY_OF_THE_HEAD"]) == ("the node's", "the head's")
    monkeypatch.delenv("KEY_OF_THE_HEAD")


def test_a_folder_of_code_that_holds_far_more_is_refused(tmp_path: Path) -> None:
    for number in range(66):
        (tmp_path / f"{number}.txt").write_bytes(b"0" * (1 << 20))
    with pytest.raises(BadInput, match="keep the code in a folder of its own"):
        code_parcel(tmp_path)
