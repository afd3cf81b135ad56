"""The package mini-swe-agent: its version, its SWE-bench configuration, and an import without its side effects."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from stepdown.builder.common.extras import how_to_install
from stepdown.builder.config.validation import read_yaml
from stepdown.builder.errors import BadInput

INSTALL = how_to_install("swebench")
CONFIG = "config/benchmarks/swebench.yaml"
"""The package's own configuration of SWE-bench with tool calls: prompts, templates, environment, limits."""


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """What is used of the configuration file."""

    agent: Mapping[str, Any]
    """Templates of the first two messages, and the agent's own limits."""
    observation_template: str
    format_error_template: str
    cwd: str
    environment: Mapping[str, str]
    """Variables that commands see."""
    command_seconds: int
    """What one command may take."""


def pinned_version() -> str:
    """The package's version. Raises BadInput where it is not installed."""
    try:
        return importlib.metadata.version("mini-swe-agent")
    except importlib.metadata.PackageNotFoundError:
        raise _missing() from None


@cache
def config() -> AgentConfig:
    """The package's configuration of SWE-bench. Raises BadInput where it is not installed."""
    found = importlib.util.find_spec("minisweagent")
    if found is None or not found.submodule_search_locations:
        raise _missing()
    data = read_yaml(Path(found.submodule_search_locations[0]) / CONFIG)
    environment = data["environment"]
    return AgentConfig(
        agent=data["agent"],
        observation_template=data["model"]["observation_template"],
        format_error_template=data["model"]["format_error_template"],
        cwd=environment["cwd"],
        environment=environment["env"],
        command_seconds=environment["timeout"],
    )


@cache
def load() -> None:
    """Import the package, which would greet, make a folder in the user's home and read keys from a file there."""
    pinned_version()
    names = ("MSWEA_SILENT_STARTUP", "MSWEA_GLOBAL_CONFIG_DIR")
    before = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= dict(zip(names, ("1", folder), strict=True))
        try:
            importlib.import_module("minisweagent")
        except ImportError as error:
            raise BadInput(f"mini-swe-agent can not be loaded: {error}") from error
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def _missing() -> BadInput:
    return BadInput(f"mini-swe-agent is not installed: {INSTALL}")
