"""The real OpenCode behind a router: one task of three steps, made by two models, streamed, its tools intact."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.config.operation import OperationConfig
from stepdown.routing.policies.contract import Choice, View
from stepdown.routing.serve.running import serve
from tests.agents.installed import installed_opencode
from tests.routing.streaming import Request, Said, streaming
from tests.routing.test_serve import pool_of

pytestmark = pytest.mark.opencode

TEXT = 'a "quoted" line, ünïcode and a \\ backslash'


class ByTools:
    """The strong model where one tool has answered, the cheap one before and after."""

    name, version = "by-tools", "1"

    def choose(self, view: View) -> Choice:
        return Choice("high" if _answered(view.messages) == 1 else "low")


def _answered(messages: Any) -> int:
    return sum(message["role"] == "tool" for message in messages)


def _cheap(request: Request) -> Said:
    """Writes the first file, and says the last words; it can do nothing else."""
    if not request.get("tools"):
        return Said("A title")
    if _answered(request["messages"]) == 0:
        return Said("I begin.", (("write", json.dumps({"filePath": "first.txt", "content": TEXT})),))
    return Said("Both files are there now.")


def _strong(request: Request) -> Said:
    """Goes on from whatever was written first."""
    command = {"command": "cp first.txt second.txt && cat second.txt", "description": "Copies the file"}
    return Said("", (("bash", json.dumps(command)),))


def test_a_task_of_three_steps_goes_through_two_models(tmp_path: Path) -> None:
    home, workspace, log = tmp_path / "home", tmp_path / "workspace", tmp_path / "log.jsonl"
    (home / ".config" / "opencode").mkdir(parents=True)
    workspace.mkdir()
    with streaming({"small": _cheap, "big": _strong}) as provider:
        operation = OperationConfig.model_validate({"endpoints": {"default": {"api_base": provider.url}}})
        pool = pool_of(("low", ["small"]), ("high", ["big"]))
        with serve(ByTools(), pool, operation, keys=["key"], log=log) as router:
            settings = {
                "provider": {
                    "router": {
                        "npm": "@ai-sdk/openai-compatible",
                        "options": {"baseURL": f"http://{router.address}/v1", "apiKey": "key"},
                        "models": {"auto": {"name": "auto"}},
                    }
                },
                "model": "router/auto",
                "small_model": "router/auto",
                "autoupdate": False,
                "share": "disabled",
            }
            (home / ".config" / "opencode" / "opencode.json").write_text(json.dumps(settings))
            environment = {
                "HOME": str(home),
                "PATH": f"{installed_opencode()}{os.pathsep}{os.environ['PATH']}",
                **{
                    f"OPENCODE_DISABLE_{what}": "1"
                    for what in ("AUTOUPDATE", "MODELS_FETCH", "DEFAULT_PLUGINS", "SHARE")
                },
            }
            done = subprocess.run(
                ["opencode", "run", "--", "Write a file and copy it."],
                cwd=workspace, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
                check=False,
            )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Both files are there now." in done.stdout
    assert (workspace / "first.txt").read_text() == (workspace / "second.txt").read_text() == TEXT
    asked = [request for request in provider.requests if request.get("tools")]
    assert [request["model"] for request in asked] == ["small", "big", "small"]
    assert all(request["stream"] for request in asked)
    assert TEXT in json.dumps(asked[2]["messages"], ensure_ascii=False).replace("\\\\", "\\").replace('\\"', '"')
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(line["ended"] and line["status"] == 200 and line["usd"] > 0 for line in lines)
    steps = [line for line in lines if line["request"].get("tools")]
    assert [(line["tier"], line["model"]) for line in steps] == [("low", "small"), ("high", "big"), ("low", "small")]
