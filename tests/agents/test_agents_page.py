"""docs/agents.md, followed to the letter by somebody who has read nothing else; and the same with an agent in Node."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.config.validation import validated, yaml_value
from stepdown.harnesses.agent.side_calls import SideCalls
from tests.agents.orders import PROGRAMS
from tests.conftest import ROOT, Shop, stepdown
from tests.provider import Ability, Answer, Provider, Request

PAGE = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")


def block(language: str, holding: str) -> str:
    """The one block of the page of this language that holds this."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (found,) = [one for one in blocks if holding in one]
    return str(found)


def greeter(spells_it_right: bool) -> Ability:
    """A model that writes the file and then says so."""

    def ability(request: Request) -> Answer:
        if request["messages"][-1]["role"] == "tool":
            return Answer("It is written.")
        text = "Hello, Ana!\n" if spells_it_right else "Hello\n"
        return Answer("", (("write", json.dumps({"path": "hello.txt", "text": text})),))

    return ability


ABILITIES = {"small-model": greeter(False), "strong-model": greeter(True)}


@pytest.fixture
def reader(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A folder with the page's files in it."""
    (shop.folder / "agent").mkdir()
    (shop.folder / "agent" / "agent.py").write_text(block("python", "OpenAI"))
    (shop.folder / "tasks.jsonl").write_text(block("json", '"greet"'))
    (shop.folder / "agent.yaml").write_text(block("yaml", "harness: agent"))
    monkeypatch.setenv("MY_API_KEY", "secret-of-the-provider")
    monkeypatch.chdir(shop.folder)
    return shop


def at(provider: Provider, config: Path) -> None:
    """The page's config speaks of a server on port 8000: it is this one."""
    config.write_text(config.read_text().replace("http://127.0.0.1:8000/v1", provider.url))


def test_the_page_s_agent_of_twenty_lines_is_labelled(reader: Shop) -> None:
    assert len(block("python", "OpenAI").splitlines()) <= 25
    with Provider(ABILITIES) as provider:
        at(provider, reader.folder / "agent.yaml")
        said = {}
        for command in ("doctor agent.yaml", "build agent.yaml --run runs/agent", "status runs/agent"):
            done = stepdown(*command.split())
            assert done.code == 0, done.err + done.out
            said[command.split()[0]] = done.err
    # A run of somebody else's may bring a program: it is named before it is started.
    assert "agent runs on this machine, unconfined: '{python}' '{program}/agent.py' '{prompt}'" in said["build"]
    rows = [json.loads(line) for line in Path("runs/agent/question_bank.jsonl").read_text().splitlines()]
    assert [(row["id"], row["target_tier"]) for row in rows] == [("agent/greet/1", "high"), ("agent/greet/2", "low")]
    assert "secret-of-the-provider" not in "".join(map(str, rows))


def test_an_agent_is_recorded_once_and_its_trajectories_are_imported(reader: Shop) -> None:
    with Provider(ABILITIES) as provider:
        at(provider, reader.folder / "agent.yaml")
        record = ["agent", "record", "agent.yaml", "--model", "strong", "--out", "seeds.jsonl"]
        done = stepdown(*record)
        assert done.code == 0, done.err
        assert "greet: pass, 2 steps" in done.err
        # Nothing is recorded, or paid for, twice.
        assert stepdown(*record).code == 0
        assert provider.count() == 2
        assert len(Path("seeds.jsonl").read_text().splitlines()) == 1
        config = Path("agent.yaml").read_text()
        Path("agent.yaml").write_text(config.replace("source: collect", "source: import, file: seeds.jsonl"))
        done = stepdown("build", "agent.yaml", "--run", "run")
        assert done.code == 0, done.err
    assert reader.labels() == [["high", "low"]]


def test_a_task_that_the_strong_model_fails_has_no_trajectory(reader: Shop) -> None:
    with Provider({**ABILITIES, "strong-model": greeter(False)}) as provider:
        at(provider, reader.folder / "agent.yaml")
        done = stepdown("agent", "record", "agent.yaml", "--out", "seeds.jsonl")
    assert done.code == 3
    assert "greet: fail, the grader: exit code 1" in done.err
    assert Path("seeds.jsonl").read_text() == ""


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--model", "small"], "--model: 'small' is no model of the pool's strong tier (strong)"),
        (["--workload", "2"], "--workload: the config has 1"),
    ],
)
def test_a_wrong_argument_of_record_is_told_in_a_line(reader: Shop, arguments: list[str], problem: str) -> None:
    done = stepdown("agent", "record", "agent.yaml", "--out", "seeds.jsonl", *arguments)
    assert (done.code, done.err) == (2, f"stepdown: {problem}\n")


def test_the_page_s_side_calls_are_ones() -> None:
    rule = validated(SideCalls, yaml_value(block("yaml", "side_calls"))["side_calls"])
    assert (rule.no_tools, rule.answer) == (True, "A title")


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_an_agent_in_node_that_streams_is_labelled(reader: Shop) -> None:
    """The program knows nothing of stepdown either: it reads a stream of events, and wants their usage."""
    shutil.copy(PROGRAMS / "agent.mjs", reader.folder / "agent")
    with Provider(ABILITIES) as provider:
        config = reader.folder / "agent.yaml"
        at(provider, config)
        text = config.read_text().replace("{python} {program}/agent.py", "node {program}/agent.mjs")
        config.write_text(text.replace("program: agent.py", "program: agent.mjs"))
        done = stepdown("build", "agent.yaml", "--run", "run")
        assert done.code == 0, done.err
    assert reader.labels() == [["high", "low"]]


@pytest.mark.parametrize(
    ("line", "by", "problem"),
    [
        (
            "program: agent.py",
            "program: agnet.py",
            "the option `program`: there is no 'agnet.py' in the folder 'agent'",
        ),
        ("sandbox: process", "sandbox: docker", "`image` goes with `sandbox: docker`"),
        ("sandbox: process", "sandbx: process", "did you mean `sandbox`?"),
        (", assets: agent", "", "the option `program`: 'agent.py' is looked for in `source.assets`"),
        (
            "sandbox: process",
            "sandbox: process\n        side_calls: {no_tools: true, model: tiny}",
            "the pool has no model 'tiny' to answer calls beside the steps",
        ),
    ],
)
def test_a_mistake_in_the_config_is_told_in_a_line(reader: Shop, line: str, by: str, problem: str) -> None:
    text = Path("agent.yaml").read_text()
    assert line in text
    Path("agent.yaml").write_text(text.replace(line, by))
    done = stepdown("build", "agent.yaml", "--run", "run")
    assert done.code == 2
    assert problem in done.err
    assert len(done.err.splitlines()) == 1, done.err


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"grader": []}, "tasks.jsonl:1: grader"),
        ({"grader": {"comand": "true"}}, "tasks.jsonl:1: grader.0.command"),
        ({"files": {"../x": ""}}, "tasks.jsonl:1: files: '../x' is no path of a file below the folder"),
        ({"folder": "none"}, "tasks.jsonl:1: folder: there is no 'none' in the folder 'agent'"),
        ({"grader": {"judge": {}}}, "tasks.jsonl:1: grader.0.judge: set the option `judged: true`"),
        ({"prompt": " "}, "tasks.jsonl:1: prompt: must not be blank"),
        ({"reference": [{}]}, "tasks.jsonl:1: reference.0: a step without words or calls"),
    ],
)
def test_a_mistake_in_the_tasks_is_told_in_a_line(reader: Shop, change: dict[str, Any], problem: str) -> None:
    task = json.loads(Path("tasks.jsonl").read_text()) | change
    Path("tasks.jsonl").write_text(json.dumps(task) + "\n")
    done = stepdown("build", "agent.yaml", "--run", "run")
    assert done.code == 2
    assert problem in done.err
    assert len(done.err.splitlines()) == 1, done.err
    assert not os.path.exists("run/question_bank.jsonl")
