"""A program in a container without network: only its episode's address is there, and nothing of it is left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.records import Instance, Response, ToolCall, Verdict
from stepdown.harnesses.agent.harness import AgentHarness
from stepdown.harnesses.containers.labels import OWNER, owner
from tests.agents import orders
from tests.conftest import Shop
from tests.provider import Provider
from tests.swebench.images import base_image

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def docker() -> Iterator[Any]:
    """The daemon's client."""
    import docker as sdk

    client = sdk.from_env()
    yield client
    client.close()


@pytest.fixture(scope="module")
def image() -> str:
    return base_image()


def left_behind(docker: Any) -> list[str]:
    """Containers of this process that are still there."""
    return [
        each["Names"][0]
        for each in docker.api.containers(all=True, filters={"label": OWNER})
        if each["Labels"][OWNER] == owner()
    ]


def made(folder: Path, image: str, program: str, grader: Any, **options: Any) -> tuple[AgentHarness, Instance]:
    """A harness for one program of a few lines, and its task."""
    (folder / "agent.py").write_text(program)
    task = {"id": "one", "prompt": "go", "files": {"a.txt": "here\n"}, "grader": grader}
    (folder / "tasks.jsonl").write_text(json.dumps(task) + "\n")
    options = {"command": "python3 {program}/agent.py", "program": "agent.py", "sandbox": "docker", **options}
    harness = AgentHarness(image=image, **options)
    (instance,) = harness.instances({"file": str(folder / "tasks.jsonl"), "assets": str(folder)})
    return harness, instance


ASK = """
import json, os, urllib.request
def ask(text):
    body = json.dumps({"model": os.environ["OPENAI_MODEL"], "messages": [{"role": "user", "content": text}]})
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body.encode(),
        {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    return json.load(urllib.request.urlopen(request, timeout=60))["choices"][0]["message"]["content"]
"""


def test_an_agent_in_a_container_is_labelled(shop: Shop, docker: Any, image: str) -> None:
    with Provider(orders.ABILITIES) as provider:
        options = {"sandbox": "docker", "image": image}
        done = shop.build(orders.config(provider.url, shop.folder, [orders.task("one", [0, 2])], options))
        assert done.code == 0, done.err
    assert shop.labels() == [["low", "high"]]
    assert shop.read("question_bank.jsonl")[0]["messages"][0]["content"] == "You fill orders in /workspace."
    assert left_behind(docker) == []


def test_nothing_but_the_episodes_address_can_be_reached(tmp_path: Path, image: str) -> None:
    with Provider({}) as elsewhere:
        port = elsewhere.url.rpartition(":")[2].removesuffix("/v1")
        program = f"""{ASK}
import socket
def reach(host, port):
    try:
        socket.create_connection((host, port), 2).close()
        return "reached"
    except OSError:
        return "nothing"
ask(" ".join([reach("127.0.0.1", {port}), reach("172.17.0.1", {port}), reach("10.0.0.1", 80), open("a.txt").read()]))
"""
        harness, instance = made(tmp_path, image, program, {"command": "true"})
        with harness.open(instance) as episode:
            assert episode.prefix().messages[-1]["content"] == "nothing nothing nothing here\n"


def test_graders_see_the_workspace_in_a_container_of_their_own(tmp_path: Path, docker: Any, image: str) -> None:
    """What a program did to its own container does not help it."""
    program = f"""{ASK}
import os, subprocess
open("done.txt", "w").write(ask("x"))
os.symlink("/etc/passwd", "link.txt")
os.replace("/usr/bin/grep", "/usr/bin/grep-away")
open("/usr/bin/grep", "w").write("#!/bin/sh\\nexit 0\\n")
os.chmod("/usr/bin/grep", 0o755)
subprocess.Popen(["sleep", "999"], start_new_session=True)
"""
    (tmp_path / "look.py").write_text(
        "def look(workspace, transcript):\n"
        "    names = sorted(path.name for path in workspace.iterdir())\n"
        "    return names == ['a.txt', 'done.txt'] and transcript[-1]['content'] == 'wrong'\n"
    )
    command = {"command": "test -L link.txt && grep -q -f {grader}/words done.txt", "files": {"words": "right"}}
    harness, instance = made(tmp_path, image, program, [{"python": "look:look"}, command])
    with harness.open(instance) as episode:
        episode.prefix()
        assert not episode.advance(Response("wrong"))
        assert episode.verdict().verdict is Verdict.FAIL
        assert episode.verdict().reason.startswith("the grader: exit code 1")
    assert left_behind(docker) == []


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("import time\ntime.sleep(999)", "it neither asked nor ended within 3 s"),
        ("import os\nos.kill(1, 15)\nos.kill(-1, 9)", ""),
        ("open('big', 'wb').write(bytes(60 << 20))\nimport time\ntime.sleep(30)", "its files took more than 50 MiB"),
        ("while True: print('flood ' * 999)", "it neither asked nor ended within 3 s"),
        ("while True: __import__('os').fork()", ""),
    ],
)
def test_a_hostile_program_comes_to_a_verdict(tmp_path: Path, docker: Any, image: str, does: str, reason: str) -> None:
    limits = {"seconds": 3, "processes": 32, "memory_mib": 256, "disk_mib": 50}
    harness, instance = made(tmp_path, image, f"{ASK}\nask('x')\n{does}", {"command": "false"}, limits=limits)
    with harness.open(instance) as episode:
        episode.prefix()
        assert not episode.advance(Response("", (ToolCall("f", "{}"),)))
        ruling = episode.verdict()
    assert ruling.verdict in (Verdict.INCOMPLETE, Verdict.FAIL)
    assert ruling.verdict is Verdict.INCOMPLETE or not reason
    assert reason in ruling.reason
    assert left_behind(docker) == []
