"""Presets are data: each is a sound set of options, and whatever a config says beside it comes first."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from stepdown.builder.errors import BadInput
from stepdown.harnesses.agent.harness import AgentHarness, Options
from stepdown.harnesses.agent.presets import preset_names, preset_of

FILLED = {"prompt", "prompt_file", "workspace", "home", "base_url", "model", "key", "program", "python"}


def options(preset: str, **own: Any) -> Options:
    return Options(**{"preset": preset, "sandbox": "process", **own})


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_is_sound(name: str) -> None:
    found = options(name)
    texts = [*found.command, *found.environment.values(), *found.files.values(), *found.home_files.values()]
    assert {place for text in texts for place in re.findall(r"\{(\w+)\}", text)} <= FILLED
    assert any("{prompt" in word for word in found.command)
    for file, text in found.home_files.items():
        if file.endswith(".json"):
            assert "{key}" in json.dumps(json.loads(text))
    pinned = preset_of(name).program
    assert pinned.version in pinned.install


def test_what_a_config_says_beside_a_preset_comes_first() -> None:
    plain = options("opencode")
    own = options("opencode", command="opencode run --agent plan {prompt}", environment={"MINE": "1"}, masks=["port"])
    assert own.command[:4] == ("opencode", "run", "--agent", "plan")
    assert own.environment == {**plain.environment, "MINE": "1"}
    assert own.home_files == plain.home_files
    assert own.masks == ("port",)


def test_each_program_is_a_version_of_its_own() -> None:
    versions = {AgentHarness(preset=name, sandbox="process").version for name in preset_names()}
    versions.add(AgentHarness(sandbox="process", command=list(options("mini").command)).version)
    assert len(versions) == len(preset_names()) + 1


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        ({"preset": "opencoder"}, r"no preset 'opencoder'; there are mini, openclaw, opencode"),
        ({"preset": "mini", "masks": ["times"]}, r"masks: .*no shape 'times'; there are time, duration"),
        ({"preset": 7}, "preset: "),
        ({}, "command: "),
    ],
)
def test_a_wrong_option_is_named(own: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        AgentHarness(sandbox="process", **own)
