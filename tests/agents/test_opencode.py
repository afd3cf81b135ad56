"""The real OpenCode, in the version that its preset names, is labelled: nothing of it knows of stepdown.

A run of OpenCode takes 5 s of processor time and a build 16 of them, so there are two builds: one that nothing
disturbs, and one with two workers that is killed on its way and resumed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents import pieces
from tests.agents.installed import installed_opencode
from tests.conftest import Shop, started, stepdown
from tests.provider import Provider, spawned

pytestmark = pytest.mark.opencode

TASKS = [pieces.task("easy", [0]), pieces.task("hard", [1]), pieces.task("both", [0, 1])]
LABELS = {"easy": ["low", "low"], "hard": ["high", "low"], "both": ["low", "high", "low"]}


def made(number: int, text: str) -> tuple[str, dict[str, Any]]:
    """Pieces are made with OpenCode's own tools: the first with `write`, later ones with `bash`."""
    if number == 0:
        return "write", {"filePath": "/workspace/piece-0.txt", "content": text}
    return "bash", {"command": f"printf '{text}' > piece-{number}.txt && ls", "description": "Makes a piece"}


ABILITIES = pieces.makers(made)


@pytest.fixture(scope="module", autouse=True)
def opencode() -> Iterator[None]:
    """OpenCode on the path of programs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{installed_opencode()}{os.pathsep}{os.environ['PATH']}")
        yield


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A finished run that nothing disturbed."""
    shop = Shop(tmp_path_factory.mktemp("undisturbed"))
    with Provider(ABILITIES) as provider:
        done = shop.build(config(provider.url, shop.folder))
        assert done.code == 0, done.err + done.out
        # The title that it asks for beside each first step is answered by the rule, and no model is paid for it.
        assert all(seen.body["tools"] for seen in provider.requests)
    return shop


def config(url: str, folder: Path, **operation: Any) -> dict[str, Any]:
    (folder / "tasks.jsonl").write_text("".join(json.dumps(one) + "\n" for one in TASKS))
    options = {"preset": "opencode", "sandbox": "process"}
    return pieces.config(url, "agent", {"file": "tasks.jsonl"}, options, **operation)


def test_steps_are_labelled_by_what_models_can_do(undisturbed: Shop) -> None:
    labels: dict[str, list[str]] = {}
    for row in undisturbed.read("question_bank.jsonl"):
        labels.setdefault(row["instance_id"], []).append(row["target_tier"])
    assert labels == LABELS
    assert "agent" not in undisturbed.manifest()["dropped"]


def test_later_prefixes_hold_what_the_cheaper_model_did(undisturbed: Shop) -> None:
    rows = {row["id"]: row for row in undisturbed.read("question_bank.jsonl")}
    calls = [call["function"] for message in rows["agent/both/3"]["messages"] for call in message.get("tool_calls", ())]
    assert [call["name"] for call in calls] == ["write", "bash"]
    assert json.loads(calls[0]["arguments"])["content"] == "well made by skill 0\n"
    assert "well made by skill 9" in json.loads(calls[1]["arguments"])["command"]
    # Nothing of this machine's folders is in a row.
    assert "Working directory: /workspace\n" in rows["agent/both/1"]["messages"][0]["content"]


def test_two_workers_killed_and_resumed_give_the_same_bytes(undisturbed: Shop, shop: Shop, tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    with spawned("tests.agents.test_opencode:ABILITIES", log) as url:
        config_file = shop.write(config(url, shop.folder, workers=2))
        process = started("build", str(config_file), "--run", str(shop.run))
        while process.poll() is None and (not log.exists() or len(log.read_text().splitlines()) < 9):
            time.sleep(0.05)
        process.kill()
        process.communicate()
        assert not (shop.run / "question_bank.jsonl").exists(), "it was killed too late"
        done = shop.resume()
        assert done.code == 0, done.err + done.out
    assert shop.files() == undisturbed.files()


def test_another_version_is_refused_and_the_doctor_says_what_to_install(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    other = tmp_path / "bin" / "opencode"
    other.write_text("#!/bin/sh\necho 1.18.34\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    told = "the preset is made for opencode 1.18.33, and here is 1.18.34: npm install -g opencode-ai@1.18.33"
    with Provider(ABILITIES) as provider:
        settings = config(provider.url, shop.folder)
        done = shop.build(settings)
        assert done.code == 2
        assert told in done.err
        assert provider.requests == []
        doctor = stepdown("doctor", str(shop.write(settings)))
    assert told in doctor.out
