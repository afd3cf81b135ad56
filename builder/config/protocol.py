"""The run's config: a `protocol` that is frozen for a run, and an `operation` that may change at any resume."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field, PrivateAttr, model_validator

from stepdown.builder.config.pool import WORKLOAD, Model, Pool
from stepdown.builder.config.price import Price
from stepdown.builder.config.validation import JsonObject, Strict
from stepdown.builder.records import canonical_json


class Acceptance(Strict):
    """How many samples of one trial must be accepted before the candidate passes."""

    passes: int = Field(1, ge=1)
    """How many samples must be accepted."""
    of: int = Field(1, ge=1)
    """How many samples are drawn at most. No more are drawn once the outcome is certain."""

    @model_validator(mode="after")
    def _reachable(self) -> Acceptance:
        if self.passes > self.of:
            raise ValueError("`passes` can not be more than `of`")
        return self


class RulesConfig(Strict):
    """When a cheaper model's trial is accepted (sections 3.2 and 4 of the paper)."""

    cascade: int = Field(3, ge=1)
    """How many models of a tier are probed, in the pool's order, until one passes. If none does, the tier fails."""
    cascade_parallel: bool = False
    """Probe a tier's models at the same time. This is faster, and dearer, since models after the first accepted one are
    asked too. With models that answer the same question alike, labels stay the same."""
    step_rule: Literal["non_increasing", "same"] = "non_increasing"
    """How long an accepted trial may be: `non_increasing` allows at most as many calls as the current trajectory has,
    `same` exactly as many."""
    acceptance: Acceptance = Acceptance()
    """How many samples of a trial must be accepted."""
    confirm: int = Field(0, ge=0)
    """How many times each final mixed trajectory is executed afresh, every step by its locked model. The counts go into
    the evidence and change no label."""
    control: int = Field(0, ge=0)
    """How many times the strong model is asked afresh at each step that stayed strong. Where it fails too, the rest of
    the trajectory is fragile. The counts go into the evidence and change no label."""
    probe: Literal["none", "last", "all"] = Field("none", exclude_if=lambda value: value == "none")
    """At which steps every model of every tier is tried, once the labels are found: at `all`, or at the `last` of each
    trajectory. The outcomes go into `probes.jsonl`, a grid that `stepdown compare` and `stepdown report` read. They
    change no label."""


class SeedsConfig(Strict):
    """Where a workload's seeds come from."""

    source: Literal["reference", "import", "collect"]
    """`collect` runs the strong tier's models live, in the pool's order. `import` reads trajectories from `file`.
    `reference` asks the workload's pseudo-model, which knows the accepted answers."""
    file: Path | None = None
    """A JSONL file of trajectories, relative to the config. Goes with `source: import`."""
    sha256: str | None = None
    """SHA-256 digest of `file`. A run fills it in, so that a changed file is a changed protocol."""
    attempts: int = Field(1, ge=1)
    """With `source: collect`: how many tries each strong model has at a task."""

    @model_validator(mode="after")
    def _file_where_needed(self) -> SeedsConfig:
        if (self.file is None) == (self.source == "import"):
            raise ValueError("`file` goes with `source: import`")
        return self


class HintsConfig(Strict):
    """Where hints come from. A hint says at which tier probing begins. It saves calls and never decides a label."""

    source: Literal["none", "file", "model", "policy"] = "none"
    """`none` begins every step at the cheapest tier. `file` reads hints from `file`. `model` asks `model`.
    `policy` asks a router's policy what it would choose."""
    file: Path | None = None
    """A JSONL file of `{"id": ..., "tier": ...}`, relative to the config. Goes with `source: file`."""
    sha256: str | None = None
    """SHA-256 digest of `file`, or of the policy's folder. A run fills it in, so that a changed file is a changed
    protocol."""
    model: Model | None = None
    """The model that is asked. It need not be in the pool. Goes with `source: model`."""
    policy: str | None = Field(None, exclude_if=lambda value: value is None)
    """The folder of a policy, relative to the config, or `rules`, or `module:Class` of your own. It knows the pool's
    tiers by their names. Goes with `source: policy`."""
    _folder: Path | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _one_source(self) -> HintsConfig:
        if (self.file is not None) != (self.source == "file"):
            raise ValueError("`file` goes with `source: file`")
        if (self.model is not None) != (self.source == "model"):
            raise ValueError("`model` goes with `source: model`")
        if (self.policy is not None) != (self.source == "policy"):
            raise ValueError("`policy` goes with `source: policy`")
        if self.model is not None and self.model.model.startswith(WORKLOAD):
            raise ValueError("a workload's pseudo-model gives no hints")
        return self

    @property
    def may_be_own_code(self) -> bool:
        """Whether the policy may be a class of one's own, `module:Class`: it is no folder, and its name has parts."""
        return self.policy is not None and self.sha256 is None and ":" in self.policy

    def beside(self, folder: Path | None) -> HintsConfig:
        """The same, a class of one's own looked for in this folder first."""
        copy = self.model_copy()
        copy._folder = folder
        return copy

    @property
    def folder(self) -> Path | None:
        """Where a class of one's own is looked for first. It is no part of the protocol: it differs by machine."""
        return self._folder


class Thresholds(Strict):
    """The lowest ratings with which an answer can pass. A judge rates from 1 to 5."""

    faithfulness: int = Field(4, ge=1, le=5)
    """Does the answer say only what its sources say?"""
    appropriateness: int = Field(4, ge=1, le=5)
    """Does the answer fit the question?"""
    completeness: int = Field(4, ge=1, le=5)
    """Does the answer have all that was asked for?"""


class JudgeBar(Strict):
    """What a judge must keep to on probes: answers that code knows to be wrong, and answers that are good."""

    detection: float = Field(0.8, gt=0, lt=1)
    """The least share of wrong answers, of all kinds together and of each, that a judge must fail."""
    false_alarm: float = Field(0.3, gt=0, lt=1)
    """The largest share of good answers that a judge may fail to pass."""


class JudgeConfig(Strict):
    """Which models judge answers that no program can grade, and when an answer passes."""

    models: tuple[Model, ...] = Field(min_length=1)
    """The models that judge, asked in this order. They need not be in the pool."""
    samples: int = Field(1, ge=1, le=99)
    """How many reports each model is asked for."""
    rule: Literal["unanimous", "majority"] = "unanimous"
    """An answer passes if all reports pass it (`unanimous`) or more than half of them (`majority`)."""
    panel: Literal["families", "single"] = "families"
    """`families` wants judges of two families of models at least, since models of one family share their blind spots.
    `single` says that one judge, or one family, is meant to be believed alone."""
    probes: int = Field(10, ge=0)
    """Beside every so-many-th case each judge is asked about an answer that code knows to be wrong, or good. They look
    like other cases, are paid like them, and are never verdicts. 0: none."""
    bar: JudgeBar = JudgeBar()
    """Where probes show with a confidence of 99% that a judge is worse than this, the run stops with exit code 3."""
    thresholds: Thresholds = Thresholds()
    """The lowest ratings with which an answer can pass."""
    attempts: int = Field(3, ge=1, le=99)
    """How many tries a judge has at a report that can be read and whose quotes are found. After that the trial is
    technical."""

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
    """The name of an installed harness (`qa`), or `module:Class` for one of your own."""
    source: JsonObject = Field(default_factory=dict)
    """Which instances to label; each harness has its own keys. `file` is a file of tasks, `assets` a folder with what
    else they need, both relative to the config. A run keeps copies of both."""
    source_sha256: str | None = None
    """SHA-256 digest of `source.file`. A run fills it in, so that a changed file is a changed protocol."""
    options: JsonObject = Field(default_factory=dict)
    """Options of the harness; each harness has its own keys."""
    seeds: SeedsConfig
    """Where the workload's seeds come from: trajectories of a strong model that passed."""
    _folder: Path | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _digest_is_of_a_file(self) -> WorkloadConfig:
        if self.source_sha256 is not None and self.tasks is None:
            raise ValueError("`source_sha256` goes with `source.file`")
        return self

    @property
    def is_own_code(self) -> bool:
        """Whether a class is named, `module:Class`, and no installed workload."""
        return ":" in self.harness

    @property
    def assets(self) -> Path | None:
        """The folder with what its tasks need, where the source names one."""
        folder = self.source.get("assets")
        return Path(folder) if isinstance(folder, str) else None

    def beside(self, folder: Path | None) -> WorkloadConfig:
        """The same, its class of one's own looked for in this folder first."""
        copy = self.model_copy()
        copy._folder = folder
        return copy

    @property
    def folder(self) -> Path | None:
        """Where a class of one's own is looked for first. It is no part of the protocol: it differs by machine."""
        return self._folder

    @property
    def tasks(self) -> Path | None:
        """The file of tasks that the source names, where it names one."""
        file = self.source.get("file")
        return Path(file) if isinstance(file, str) else None


class AuditConfig(Strict):
    """Which steps people review. Whether a step is chosen depends on its id, the rate and the seed alone."""

    rate: float = Field(0.1, ge=0, le=1)
    """The share of the steps of each multi-step workload that is chosen, from 0 to 1."""
    seed: int = 0
    """Another number chooses other steps."""


class ProtocolConfig(Strict):
    """All that labels depend on. It is frozen for a run: with another protocol it is another run."""

    pool: Pool
    """The models of every tier: a pool, or the path of a pool file relative to the config."""
    workloads: tuple[WorkloadConfig, ...] = Field(min_length=1)
    """The benchmarks to label."""
    hints: HintsConfig = HintsConfig()
    """Where probing a step begins."""
    rules: RulesConfig = RulesConfig()
    """When a cheaper model's trial is accepted."""
    audit: AuditConfig = AuditConfig()
    """Which steps people review."""
    judge: JudgeConfig | None = None
    """The models that judge answers. Needed by workloads whose answers no program can grade."""

    @model_validator(mode="after")
    def _one_model_a_name(self) -> ProtocolConfig:
        known = dict(self.pool.by_name)
        for place, model in self._beside_the_pool():
            if known.setdefault(model.name, model) != model:
                raise ValueError(f"{place}: there is another model of the name {model.name!r}")
        return self

    def beside(self, folder: Path | None) -> ProtocolConfig:
        """The same, classes of one's own looked for in this folder first: the config's."""
        workloads = tuple(one.beside(folder) for one in self.workloads)
        return self.model_copy(update={"workloads": workloads, "hints": self.hints.beside(folder)})

    def _beside_the_pool(self) -> Iterator[tuple[str, Model]]:
        if self.hints.model is not None:
            yield "hints.model", self.hints.model
        for index, model in enumerate(self.judge.models if self.judge else ()):
            yield f"judge.models.{index}", model

    @cached_property
    def prices(self) -> dict[str, Price]:
        """List prices by the name of the model, of every model that may be called."""
        return {name: model.price for name, model in self.models.items()}

    @cached_property
    def models(self) -> dict[str, Model]:
        """Every model that may be called, by name: the pool's, the one that gives hints, and the judges."""
        return {**self.pool.by_name, **{model.name: model for _, model in self._beside_the_pool()}}
