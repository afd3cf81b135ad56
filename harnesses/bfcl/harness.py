"""The harness of the BFCL workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import Field

from stepdown.builder.config.validation import Strict, validated
from stepdown.builder.records import Instance, Prefix, Response, Sample, digest
from stepdown.harnesses.base import Checkpoint, Episode, Harness, Need, Terms, package
from stepdown.harnesses.bfcl import reference
from stepdown.harnesses.bfcl.bounds import LIMITS
from stepdown.harnesses.bfcl.data import BENCHMARK, MULTI_TURN, select
from stepdown.harnesses.bfcl.multi_turn import MultiTurn, MultiTurnCheckpoint
from stepdown.harnesses.bfcl.single_turn import SingleTurn, SingleTurnCheckpoint
from stepdown.harnesses.bfcl.truth import Truths
from stepdown.harnesses.bfcl.upstream import INSTALL, pinned_version, prompts

VERSION = "2"
"""Raised with every change of this package that can change a prefix, an observation or a verdict."""


class Options(Strict):
    """The harness's options."""

    max_steps_per_turn: int = Field(20, ge=1, le=200)
    """A turn with more tool-calling responses than this is force-terminated; upstream's own limit is 20."""


class BFCL(Harness):
    """The Berkeley Function-Calling Leaderboard, v4: its single-turn, relevance and multi-turn categories.

    Stateless but for a cache of what the accepted calls of recent multi-turn instances lead to.
    """

    name = BENCHMARK
    terms = Terms(
        "Apache-2.0",
        "Questions, function definitions and simulated APIs of the Berkeley Function-Calling Leaderboard, as the "
        "bfcl-eval package has them.",
    )
    known_limits = (
        "bfcl groups: single-turn tasks whose accepted calls share a function, directly or through others, are one "
        "group; multi-turn tasks with the same set of APIs are one. Two such sets may have an API in common.",
    )
    expected_labels = (239, 8, 1, 0)

    def __init__(self, **options: Any) -> None:
        """Raises BadInput for an unknown or wrong option, and where the bfcl-eval package is missing."""
        self._options = validated(Options, options, field="options")
        pin = pinned_version()
        parts = {
            "options": self._options.model_dump(),
            "limits": LIMITS,
            "prompts": [prompts().DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC, reference.CLOSING],
        }
        self.version = f"{VERSION}+bfcl-eval.{pin}+{digest(parts)[:12]}"
        self._truths = Truths()

    @classmethod
    def requirements(cls) -> Iterator[Need]:
        """The package with data and checkers."""
        yield package("bfcl-eval", INSTALL)

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        """The tasks selected by `source: {categories: {<category>: <count, all, or a list of ids>}}`."""
        return select(source)

    @contextmanager
    def open(self, instance: Instance, at: Checkpoint | None = None) -> Iterator[Episode]:
        """An episode of the instance. It holds no resource beyond memory."""
        if instance.task["category"] in MULTI_TURN:
            assert at is None or isinstance(at, MultiTurnCheckpoint)
            yield MultiTurn(instance, self._truths.of(instance), self._options.max_steps_per_turn, at)
        else:
            assert at is None or isinstance(at, SingleTurnCheckpoint)
            yield SingleTurn(instance, at)

    def answer(self, name: str, instance: Instance, prefix: Prefix, sample: Sample = Sample()) -> Response | None:
        """The pseudo-model `reference`, which knows the accepted answers; None for a name or instance without any."""
        if name != "reference" or instance.task["accepted"] is None:
            return None
        if instance.task["category"] in MULTI_TURN:
            return reference.next_call(self._truths.of(instance), prefix, self._options.max_steps_per_turn)
        return reference.all_calls(instance.task)
