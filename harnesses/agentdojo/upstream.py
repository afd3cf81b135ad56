"""The agentdojo package: its suites, attacks and texts. It is imported where it is first used, which takes seconds."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

from stepdown.builder.common.extras import how_to_install
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Tool

PACKAGE = "agentdojo"
INSTALL = how_to_install("agentdojo")
NEWEST = "v1.2.2"
BY_HAND = frozenset({"manual"})
"""Attacks that ask a person for their text."""

Suite = Any
UserTask = Any
InjectionTask = Any
Environment = Any


def pinned_version() -> str:
    """The package's version and that of pydantic, whose words a model reads where its arguments are wrong.

    Raises BadInput where the package is not installed.
    """
    if importlib.util.find_spec(PACKAGE) is None:
        raise BadInput(f"agentdojo needs the package agentdojo: {INSTALL}")
    return f"{version(PACKAGE)}+pydantic.{version('pydantic')}"


def suites(benchmark: str) -> Mapping[str, Suite]:
    """The suites of a version of the benchmark, by name. Raises BadInput for a version that is not there."""
    from agentdojo.task_suite.load_suites import _SUITES, get_suites

    if benchmark not in _SUITES:
        raise BadInput(f"no such version; there are {', '.join(_SUITES)}", field="source.version")
    found: Mapping[str, Suite] = get_suites(benchmark)
    return found


def attacks() -> Mapping[str, Any]:
    """The package's attacks that need no person, by name."""
    import agentdojo.attacks  # registers them
    from agentdojo.attacks.attack_registry import ATTACKS

    assert agentdojo.attacks
    return {name: made for name, made in ATTACKS.items() if name not in BY_HAND}


def targets() -> Mapping[str, str]:
    """What attacks call a model, by the names of models that the package knows."""
    from agentdojo.models import MODEL_NAMES

    return dict(MODEL_NAMES)


@lru_cache(maxsize=64)
def _loaded(benchmark: str, suite: str, injections: tuple[tuple[str, str], ...]) -> Environment:
    return suites(benchmark)[suite].load_and_inject_default_environment(dict(injections))


def environment(benchmark: str, suite: str, injections: Mapping[str, str]) -> Environment:
    """A fresh environment of a suite that holds an attack's texts."""
    return _loaded(benchmark, suite, tuple(sorted(injections.items()))).model_copy(deep=True)


class _Remembering:
    """A suite for attacks, which load one environment for each user task: it is read once."""

    def __init__(self, benchmark: str, suite: Suite) -> None:
        self._benchmark, self._suite = benchmark, suite

    def __getattr__(self, name: str) -> Any:
        return getattr(self._suite, name)

    def load_and_inject_default_environment(self, injections: Mapping[str, str]) -> Environment:
        return environment(self._benchmark, self._suite.name, injections)


def attack(name: str, benchmark: str, suite: Suite, target: str) -> Any:
    """An attack on a suite, which addresses the model of a name in its texts, whatever model reads them."""
    return attacks()[name](_Remembering(benchmark, suite), SimpleNamespace(name=target))


@lru_cache(maxsize=64)
def tools(benchmark: str, suite: str) -> tuple[Tool, ...]:
    """A suite's tools as chat APIs take them, with the package's own schemas. Shared: never change one."""
    return tuple(
        {
            "type": "function",
            "function": {
                "name": function.name,
                "description": function.description,
                "parameters": function.parameters.model_json_schema(),
            },
        }
        for function in suites(benchmark)[suite].tools
    )


@lru_cache(maxsize=1)
def system_message() -> str:
    """The package's default instruction to an agent."""
    from agentdojo.agent_pipeline.agent_pipeline import load_system_message

    text: str = load_system_message(None)
    return text
