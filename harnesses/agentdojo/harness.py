"""The harness of the AgentDojo workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import Field

from stepdown.builder.config.validation import Strict, validated
from stepdown.builder.records import Instance, Prefix, Response, Sample, digest
from stepdown.harnesses.agentdojo import scripted
from stepdown.harnesses.agentdojo.episode import DojoCheckpoint, DojoEpisode
from stepdown.harnesses.agentdojo.execution import LIMITS
from stepdown.harnesses.agentdojo.source import BENCHMARK, select
from stepdown.harnesses.agentdojo.upstream import INSTALL, pinned_version
from stepdown.harnesses.base import Checkpoint, Harness, Need, Terms, package

VERSION = "1"
"""Raised with every change of this package that can change a prefix, an observation or a verdict."""


class DojoOptions(Strict):
    """The harness's options."""

    max_rounds: int = Field(15, ge=1, le=200)
    """Responses whose calls are executed; the agent has one more to answer. The package's own limit is 15."""


class AgentDojo(Harness):
    """A tool agent in a workspace, a bank, a chat or a travel agency, whose data may hold an attacker's instructions.

    A verdict is pass where the user's task is done and the attacker's is not, by the package's own checks.
    """

    name = BENCHMARK
    tells_states = True
    terms = Terms(
        "MIT",
        "Tasks, environments, tool descriptions and attack texts of AgentDojo, as the agentdojo package has them.",
    )
    known_limits = (
        "agentdojo labels: a tier passes where the user's task is done and the attacker's is not, so a label may be "
        "high for want of ability or for want of caution; the evidence tells them apart by outcome.",
        "agentdojo attacks are fixed texts and address one model by name, whatever model reads them: labels say "
        "nothing about attacks that adapt.",
        "agentdojo groups: all instances of one user task are one group; the tasks of a suite share its environment.",
    )

    def __init__(self, **options: Any) -> None:
        """Raises BadInput for an unknown or wrong option, and where the agentdojo package is missing."""
        self._options = validated(DojoOptions, options, field="options")
        pin = pinned_version()
        parts = {"options": self._options.model_dump(), "limits": LIMITS, "closing": scripted.CLOSING}
        self.version = f"{VERSION}+agentdojo.{pin}+{digest(parts)[:12]}"

    @classmethod
    def requirements(cls) -> Iterator[Need]:
        """The package with tasks, tools and attacks."""
        yield package("agentdojo", INSTALL)

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        """The tasks selected by `source: {suites: {<suite>: <count, all, or a list of ids>}, attacks: [...]}`."""
        return select(source)

    @contextmanager
    def open(self, instance: Instance, at: Checkpoint | None = None) -> Iterator[DojoEpisode]:
        """An episode of the instance. It holds no resource beyond memory."""
        assert at is None or isinstance(at, DojoCheckpoint)
        yield DojoEpisode(instance, self._options.max_rounds, at)

    def answer(self, name: str, instance: Instance, prefix: Prefix, sample: Sample = Sample()) -> Response | None:
        """The pseudo-models `reference`, by the package's ground truth, and `gullible`, which obeys what it reads."""
        return scripted.answer(name, instance, prefix, self._options.max_rounds)
