"""The run's config: a `protocol` that is frozen for a run, and an `operation` that may change at any resume."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from stepdown.builder.config.pool import WORKLOAD, Model, Pool
from stepdown.builder.config.validation import JsonObject, Strict
from stepdown.builder.records import canonical_json


class Acceptance(Strict):
    """How many samples of a candidate's trial must be accepted: 1 of 1, or k of n."""

    passes: int = Field(1, ge=1)
    of: int = Field(1, ge=1)

    @model_validator(mode="after")
    def _reachable(self) -> Acceptance:
        if self.passes > self.of:
            raise ValueError("`passes` can not be more than `of`")
        return self


class RulesConfig(Strict):
    """What a candidate must do to lower a step (design: paper section 3.2 and 4)."""

    cascade: int = Field(3, ge=1)
    """Models of a tier that are probed, in the pool's order, before the tier has failed."""
    cascade_parallel: bool = False
    """Probe a tier's models together: faster and dearer, since those after the first accepted one are asked too. The
    labels of a deterministic pool stay the same."""
    step_rule: Literal["non_increasing", "same"] = "non_increasing"
    """An accepted trial takes at most as many calls as the current trajectory, or just as many."""
    acceptance: Acceptance = Acceptance()
    confirm: int = Field(0, ge=0)
    """Fresh executions of every final mixed trajectory, each step by its lock. Evidence; changes no label."""
    control: int = Field(0, ge=0)
    """Fresh draws of the strong model at every step that stayed strong: is the label high, or is what follows
    fragile? Evidence; changes no label."""


class SeedsConfig(Strict):
    """Where a workload's seeds come from."""

    source: Literal["reference", "import", "collect"]
    """`reference`: the harness's pseudo-model that knows accepted answers; `import`: from `file`; `collect`: live, by
    the strong tier's models in the pool's order."""
    file: Path | None = None
    """JSONL of trajectories, for `import`; relative to the config."""
    sha256: str | None = None
    """Digest of `file` as it was first read; filled in, so that a changed file is a changed protocol."""
    attempts: int = Field(1, ge=1)
    """Tries per strong model, for `collect`."""

    @model_validator(mode="after")
    def _file_where_needed(self) -> SeedsConfig:
        if (self.file is None) == (self.source == "import"):
            raise ValueError("`file` goes with `source: import`")
        return self


class HintsConfig(Strict):
    """Where hints come from. A hint prunes the search and never labels."""

    source: Literal["none", "file", "model"] = "none"
    file: Path | None = None
    """JSONL of `{id, tier}`, for `file`; relative to the config."""
    sha256: str | None = None
    model: Model | None = None
    """The model that is asked, for `model`; it need not be in the pool."""

    @model_validator(mode="after")
    def _one_source(self) -> HintsConfig:
        if (self.file is not None) != (self.source == "file"):
            raise ValueError("`file` goes with `source: file`")
        if (self.model is not None) != (self.source == "model"):
            raise ValueError("`model` goes with `source: model`")
        if self.model is not None and self.model.model.startswith(WORKLOAD):
            raise ValueError("a workload's pseudo-model gives no hints")
        return self


class Thresholds(Strict):
    """The least of each rating, 1 to 5, with which an answer may pass."""

    faithfulness: int = Field(4, ge=1, le=5)
    appropriateness: int = Field(4, ge=1, le=5)
    completeness: int = Field(4, ge=1, le=5)


class JudgeConfig(Strict):
    """Who judges answers that no program can grade, and by what measure."""

    models: tuple[Model, ...] = Field(min_length=1)
    """The panel, asked in this order; its members need not be in the pool."""
    samples: int = Field(1, ge=1, le=99)
    """Reports that each model is asked for."""
    rule: Literal["unanimous", "majority"] = "unanimous"
    """How many of all these reports must pass an answer: all, or more than half."""
    thresholds: Thresholds = Thresholds()
    attempts: int = Field(3, ge=1, le=99)
    """Tries for a report that can be read and believed, before it is technical."""

    @model_validator(mode="after")
    def _each_once(self) -> JudgeConfig:
        if any(model.model.startswith(WORKLOAD) for model in self.models):
            raise ValueError("a workload's pseudo-model judges nothing")
        names = [model.name for model in self.models]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two judge models have the name {twice!r}; `samples` asks one model several times")
        asked = [(model.identity, canonical_json(model.parameters)) for model in self.models]
        for place, one in enumerate(asked):
            if (first := asked.index(one)) < place:
                same = f"{names[first]!r} and {names[place]!r} are one model under two names"
                raise ValueError(f"{same}, whose reports would count twice; `samples` asks one model several times")
        return self


class WorkloadConfig(Strict):
    """One benchmark to label."""

    harness: str = Field(min_length=1)
    """A built-in harness, or `module:Class` of your own."""
    source: JsonObject = Field(default_factory=dict)
    """Which instances; the harness says what it takes. A `file` in it is a file of tasks, relative to the config."""
    source_sha256: str | None = None
    """Digest of `source.file` as it was first read; filled in, so that a changed file is a changed protocol."""
    options: JsonObject = Field(default_factory=dict)
    """The harness's own options."""
    seeds: SeedsConfig

    @model_validator(mode="after")
    def _digest_is_of_a_file(self) -> WorkloadConfig:
        if self.source_sha256 is not None and self.tasks is None:
            raise ValueError("`source_sha256` goes with `source.file`")
        return self

    @property
    def tasks(self) -> Path | None:
        """The file of tasks that the source names, where it names one."""
        file = self.source.get("file")
        return Path(file) if isinstance(file, str) else None


class AuditConfig(Strict):
    """Which steps are queued for human audit."""

    rate: float = Field(0.1, ge=0, le=1)
    """Share of the steps of each multi-step workload."""
    seed: int = 0


class ProtocolConfig(Strict):
    """All that labels depend on. Frozen for a run: a change makes another run."""

    pool: Pool
    """Inline, or the path of a pool file relative to the config."""
    workloads: tuple[WorkloadConfig, ...] = Field(min_length=1)
    hints: HintsConfig = HintsConfig()
    rules: RulesConfig = RulesConfig()
    audit: AuditConfig = AuditConfig()
    judge: JudgeConfig | None = None
    """For workloads whose answers no program can grade."""

    @model_validator(mode="after")
    def _one_model_a_name(self) -> ProtocolConfig:
        known = dict(self.pool.by_name)
        for place, model in self._beside_the_pool():
            if known.setdefault(model.name, model) != model:
                raise ValueError(f"{place}: there is another model of the name {model.name!r}")
        return self

    def _beside_the_pool(self) -> Iterator[tuple[str, Model]]:
        if self.hints.model is not None:
            yield "hints.model", self.hints.model
        for index, model in enumerate(self.judge.models if self.judge else ()):
            yield f"judge.models.{index}", model

    @cached_property
    def models(self) -> dict[str, Model]:
        """Every model that may be called, by name: the pool's, the one that gives hints, and the judges."""
        return {**self.pool.by_name, **{model.name: model for _, model in self._beside_the_pool()}}
