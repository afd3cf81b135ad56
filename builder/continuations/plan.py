"""The plan of continuations: which prefixes, under which variants of their messages, by which models, how often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import regex
from pydantic import AfterValidator, Field, field_validator, model_validator

from stepdown.builder.common.text import nearest, printable
from stepdown.builder.config.loading import Config, load_config
from stepdown.builder.config.validation import Strict, line_of, read_yaml, validated
from stepdown.builder.errors import BadInput

LONGEST_NAME = 200


def _shown_as_it_is(name: str) -> str:
    if not 0 < len(name) <= LONGEST_NAME or name != printable(name) or name != name.strip():
        raise ValueError(f"a name has 1 to {LONGEST_NAME} printable characters, and no space at its ends")
    return name


Name = Annotated[str, AfterValidator(_shown_as_it_is)]


class CheckpointEntry(Strict):
    """A prefix to go on from: the one before a step of a trajectory that a run holds."""

    run: Path
    """The folder of the run that holds the trajectory, relative to the plan."""
    benchmark: str = Field(min_length=1)
    """The workload, as ids of rows have it. The plan's config must have it too."""
    instance: str = Field(min_length=1)
    """The task's id."""
    step: int = Field(ge=1)
    """The step that is made anew, from 1: the steps before it are replayed as they were recorded."""
    trajectory: Literal["seed", "locked"] = "seed"
    """`seed`, which the strong model made, or `locked`, the final one of a finished instance, each step by its lock."""
    name: Name | None = None
    """What tables and files call it. Not set: `benchmark/instance/step`, after `locked/` where it is of that."""
    stage: Name | None = None
    """How far the task has come: `prepared` where policy and records were read, `committed` where the draft was made,
    or another word of yours. Checkpoints of one parent and condition that differ in their stage are compared."""
    condition: Name | None = None
    """What kind of task of its parent it is, as `mixed risk` or `benign`. Compared as stages are."""
    parent: Name | None = None
    """What is drawn whole when intervals are made: a task with all that was made of it. Not set: the group that the
    run has for the instance."""
    text: str | None = Field(None, min_length=1)
    """The text that contexts keep or replace, where it is another one at each checkpoint."""


class Replacement(Strict):
    """A text in whose place a neutral one of equal length stands. Length is counted in characters (Unicode code
    points), not in tokens. With neither `text` nor `pattern` it is the checkpoint's own `text`."""

    text: str | None = Field(None, min_length=1)
    """The text, exactly."""
    pattern: str | None = Field(None, min_length=1)
    """A regular expression that finds it in the messages of the checkpoint: what its first group matches, or all of
    the match where it has no group. What is found then is replaced wherever it stands, later too."""
    by: str | None = None
    """The neutral text: cut off, or repeated with a space between, until it is as long. Not set: a filler that comes
    with stepdown."""

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        try:
            regex.compile(value or "")
        except (regex.error, RecursionError) as error:
            raise ValueError(f"not a regular expression: {error}") from None
        return value

    @field_validator("by")
    @classmethod
    def _says_something(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("an empty text is no neutral text: a message would be empty, which providers refuse")
        return value

    @model_validator(mode="after")
    def _one_way(self) -> Replacement:
        if self.text is not None and self.pattern is not None:
            raise ValueError("`text` or `pattern`, not both")
        return self


class ContextEntry(Strict):
    """What a model is shown of a checkpoint's messages, and of all later ones."""

    name: Name
    replace: tuple[Replacement, ...] = ()
    """Texts that neutral ones stand in place of. Empty: everything is kept."""


class FeedbackEntry(Strict):
    """What is appended to a checkpoint's messages: one message of the user."""

    name: Name
    text: str = ""
    """What it says, before the plan's `instruction`. Where neither says anything no message is appended."""


class ContinuationLimits(Strict):
    """Where an execution ends at the latest."""

    decisions: int = Field(16, ge=1, le=1000)
    """Calls of the model from the checkpoint on."""
    tool_calls: int = Field(64, ge=0)
    """Tool calls from the checkpoint on. An answer that would exceed them is not acted upon."""
    tokens: int = Field(4096, ge=1)
    """Tokens of one answer: `max_tokens` of the model, where its own parameters do not say less."""
    tool_result: int | None = Field(None, ge=1)
    """Characters of a tool's result that a model is shown; the rest is cut off. Not set: all of it. What the workload
    itself goes by is never cut."""


class Plan(Strict):
    """A plan: every checkpoint is continued in every context, with every feedback, by every model, in every draw."""

    config: Path
    """The config, relative to the plan: its pool has the models, its workloads the tasks, its `operation` says how work
    is carried out and what it may cost. A bare name is that of a config that comes with stepdown."""
    checkpoints: tuple[CheckpointEntry, ...] = Field(min_length=1)
    """The prefixes to go on from. All are frozen before the first model is asked."""
    contexts: tuple[ContextEntry, ...] = Field((ContextEntry(name="kept"),), min_length=1)
    """What is kept and what is replaced of their messages."""
    feedback: tuple[FeedbackEntry, ...] = Field((FeedbackEntry(name="none"),), min_length=1)
    """What is appended to them."""
    instruction: str = ""
    """A last instruction that every feedback ends with."""
    models: tuple[str, ...] | None = Field(None, min_length=1)
    """The models that go on, by their names in the pool, in the order in which tables compare them. Not set: all."""
    draws: int = Field(1, ge=1, le=1000)
    """How often each is executed, each time anew."""
    limits: ContinuationLimits = ContinuationLimits()
    """Where an execution ends at the latest."""

    @field_validator("checkpoints", "contexts", "feedback", "models")
    @classmethod
    def _names_are_distinct(cls, value: Sequence[Any] | None) -> Sequence[Any] | None:
        names = [one if isinstance(one, str) else one.name for one in value or ()]
        if twice := next((name for name in names if name is not None and names.count(name) > 1), None):
            raise ValueError(f"{twice!r} is named twice")
        return value


@dataclass(frozen=True, slots=True)
class LoadedPlan:
    """A plan with its config, as `load_plan` gives it."""

    file: Path
    plan: Plan
    config: Config

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models that go on, in the plan's order."""
        return self.plan.models or tuple(self.config.protocol.pool.by_name)

    def wrong(self, problem: str, *field: str | int) -> BadInput:
        """What is wrong with a field of the plan: an error that names file, line and field."""
        path = [str(part) for part in field]
        return BadInput(problem, file=self.file, line=line_of(self.file, path), field=".".join(path))


def load_plan(file: Path) -> LoadedPlan:
    """The plan of a YAML file, with its config. Raises BadInput: an unknown key, an impossible value, a bad config."""
    plan = validated(Plan, read_yaml(file), file=file)
    loaded = LoadedPlan(file, plan, load_config(_config_file(file, plan)))
    pool = loaded.config.protocol.pool
    for place, name in enumerate(plan.models or ()):
        if name not in pool.by_name:
            meant = nearest(name, pool.by_name)
            hint = f": did you mean {meant!r}?" if meant else ""
            raise loaded.wrong(f"the pool of {plan.config} has no model {name!r}{hint}", "models", place)
    return loaded


def _config_file(file: Path, plan: Plan) -> Path:
    """The config beside the plan; where there is none of the name, it may be one that comes with stepdown."""
    beside = file.parent / plan.config
    try:
        return beside if beside.exists() or plan.config.suffix else plan.config
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise BadInput(problem, file=file, line=line_of(file, ["config"]), field="config") from None
