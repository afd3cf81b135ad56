"""A real Label Studio: files are what its SDK takes, and its server takes the steps and gives the answers back.

Server and SDK weigh a gigabyte and pin numpy: they stand in an environment of their own (`make labelstudio`), and
neither the suite's environment nor CI has them.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.audit.reviewing import above_lowest, only, review, said
from tests.conftest import LABEL_STUDIO, stepdown

CHECK = """
import json, sys
from label_studio_sdk.label_interface import LabelInterface
config, file = sys.argv[1:]
interface = LabelInterface(open(config).read())
interface.validate()  # raises where it is no config
tasks = json.load(open(file))
annotations = [annotation for task in tasks for annotation in task.get("annotations", [])]
print(json.dumps({
    # Of a task's annotations the SDK's own check is broken: they are checked one by one.
    "data": [bool(interface.validate_task({"data": task["data"]})) for task in tasks],
    "annotations": [bool(interface.validate_annotation(one)) for one in annotations],
}))
"""


def checked(config: Path, tasks: Path) -> dict[str, list[bool]]:
    python = LABEL_STUDIO / "bin" / "python"
    done = subprocess.run([python, "-c", CHECK, config, tasks], capture_output=True, text=True, check=True)
    found: dict[str, list[bool]] = json.loads(done.stdout)
    return found


@pytest.mark.labelstudio
def test_the_config_and_every_task_and_annotation_are_valid(sampled: Path, tmp_path: Path) -> None:
    target = above_lowest(sampled)[0]
    review(sampled, "ann", only("further-downgradeable", target), "why:\n<b>&")
    file = tmp_path / "tasks.json"
    assert stepdown("audit", "export", str(sampled), "-o", str(file), "--format", "label-studio").code == 0
    found = checked(tmp_path / "tasks.config.xml", file)
    count = len(above_lowest(sampled))
    assert found == {"data": [True] * count, "annotations": [True] * count}
    # And the check can fail.
    tasks: list[dict[str, Any]] = json.loads(file.read_text())
    del tasks[0]["data"]["messages"]
    tasks[1]["annotations"][0]["result"][0]["value"]["choices"] = ["loose"]
    tasks[2]["annotations"][0]["result"][1]["from_name"] = "nobody"
    file.write_text(json.dumps(tasks[:4]))
    wrong = checked(tmp_path / "tasks.config.xml", file)
    assert wrong == {"data": [False, True, True, True], "annotations": [True, False, False, True]}


TOKEN = "0123456789abcdef" * 2 + "01234567"
ANSWER = """
import json, sys
from label_studio_sdk import LabelStudio
address, token, name = sys.argv[1:]
studio = LabelStudio(base_url=address, api_key=token)
project = next(one for one in studio.projects.list() if one.title == name)
tasks = sorted(studio.tasks.list(project=project.id), key=lambda task: task.id)
def result(verdict):
    return [{"from_name": "verdict", "to_name": "prefix", "type": "choices", "value": {"choices": [verdict]}}]
studio.annotations.create(id=tasks[0].id, result=result("tight"))
studio.annotations.create(id=tasks[1].id, result=result("uncertain"), was_cancelled=True)
print(json.dumps([task.data["id"] for task in tasks]))
"""
"""A reviewer at work, with the tool's own SDK."""


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[str]:
    """The address of a server of its own, with one account."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "LABEL_STUDIO_BASE_DATA_DIR": str(tmp_path / "studio"),
        "LABEL_STUDIO_USERNAME": "ann@example.org",
        "LABEL_STUDIO_PASSWORD": "only-for-this-test",
        "LABEL_STUDIO_USER_TOKEN": TOKEN,
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "COLLECT_ANALYTICS": "False",
    }
    command = [str(LABEL_STUDIO / "bin" / "label-studio"), "start", "--no-browser", "--port", str(port)]
    with (tmp_path / "studio.log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "--internal-host", "127.0.0.1"], env=os.environ | settings, stdout=log, stderr=log
        )
    try:
        yield _answering(f"http://127.0.0.1:{port}", server)
    finally:
        server.terminate()
        server.wait()


def _answering(address: str, server: subprocess.Popen[bytes]) -> str:
    """The address, once the server answers there: it makes its database first, which takes minutes."""
    deadline = time.monotonic() + 900
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if httpx.get(f"{address}/api/version").status_code == 200:
                return address
        except httpx.TransportError:
            time.sleep(1)
    raise AssertionError("Label Studio did not start: see studio.log")


@pytest.mark.labelstudio
def test_a_real_server_takes_the_steps_and_gives_answers_back(
    sampled: Path, studio: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", TOKEN)
    pushed = stepdown("audit", "push", str(sampled), studio, "--tool", "label-studio", "--name", "of a test")
    assert pushed.code == 0, pushed.err
    reviewer = [str(LABEL_STUDIO / "bin" / "python"), "-c", ANSWER, studio, TOKEN, "of a test"]
    done = subprocess.run(reviewer, capture_output=True, text=True, check=True)
    steps = [step.id for step in above_lowest(sampled)]
    assert json.loads(done.stdout) == steps
    pulled = stepdown("audit", "pull", str(sampled))
    assert (pulled.code, said(sampled)) == (0, {("ann@example.org", steps[0]): ("tight", "")}), pulled.err
    assert f"not taken: 1 answer: {steps[1]} of ann@example.org (cancelled)" in pulled.err
    assert stepdown("audit", "pull", str(sampled)).out == "0 verdicts taken, 1 stood already\n"
    again = stepdown("audit", "push", str(sampled))
    assert again.out.startswith(f"0 records pushed, {len(steps)} were there: ")
