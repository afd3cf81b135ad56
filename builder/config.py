"""The run's config: a `protocol` that is frozen for a run, and an `operation` that may change at any resume."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Container, Iterator
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from builder.errors import BadInput
from builder.pool import LOCAL, WORKLOAD, Model, Pool
from builder.records import canonical_json
from builder.validation import JsonObject, Strict, read_yaml, validated

Part = TypeVar("Part", "Seeds", "Hints")


class Acceptance(Strict):
    """How many samples of a candidate's trial must be accepted: 1 of 1, or k of n."""

    passes: int = Field(1, ge=1)
    of: int = Field(1, ge=1)

    @model_validator(mode="after")
    def _reachable(self) -> Acceptance:
        if self.passes > self.of:
            raise ValueError("`passes` can not be more than `of`")
        return self


class Rules(Strict):
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


class Seeds(Strict):
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
    def _file_where_needed(self) -> Seeds:
        if (self.file is None) == (self.source == "import"):
            raise ValueError("`file` goes with `source: import`")
        return self


class Hints(Strict):
    """Where hints come from. A hint prunes the search and never labels."""

    source: Literal["none", "file", "model"] = "none"
    file: Path | None = None
    """JSONL of `{id, tier}`, for `file`; relative to the config."""
    sha256: str | None = None
    model: Model | None = None
    """The model that is asked, for `model`; it need not be in the pool."""

    @model_validator(mode="after")
    def _one_source(self) -> Hints:
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


class Judge(Strict):
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
    def _each_once(self) -> Judge:
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


class Workload(Strict):
    """One benchmark to label."""

    harness: str = Field(min_length=1)
    """A built-in harness, or `module:Class` of your own."""
    source: JsonObject = Field(default_factory=dict)
    """Which instances; the harness says what it takes. A `file` in it is a file of tasks, relative to the config."""
    source_sha256: str | None = None
    """Digest of `source.file` as it was first read; filled in, so that a changed file is a changed protocol."""
    options: JsonObject = Field(default_factory=dict)
    """The harness's own options."""
    seeds: Seeds

    @model_validator(mode="after")
    def _digest_is_of_a_file(self) -> Workload:
        if self.source_sha256 is not None and self.tasks is None:
            raise ValueError("`source_sha256` goes with `source.file`")
        return self

    @property
    def tasks(self) -> Path | None:
        """The file of tasks that the source names, where it names one."""
        file = self.source.get("file")
        return Path(file) if isinstance(file, str) else None


class AuditRules(Strict):
    """Which steps are queued for human audit."""

    rate: float = Field(0.1, ge=0, le=1)
    """Share of the steps of each multi-step workload."""
    seed: int = 0


class Protocol(Strict):
    """All that labels depend on. Frozen for a run: a change makes another run."""

    pool: Pool
    """Inline, or the path of a pool file relative to the config."""
    workloads: tuple[Workload, ...] = Field(min_length=1)
    hints: Hints = Hints()
    rules: Rules = Rules()
    audit: AuditRules = AuditRules()
    judge: Judge | None = None
    """For workloads whose answers no program can grade."""

    @model_validator(mode="after")
    def _one_model_a_name(self) -> Protocol:
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


class Endpoint(Strict):
    """How one model is reached."""

    api_base: str | None = None
    """Address of an OpenAI-compatible server, where it is not the provider's own. It holds no credentials."""
    api_key: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Name of the environment variable that holds the key."""
    concurrency: int | None = Field(None, ge=1)
    """Calls of this model under way at once; None: as many as there are workers."""
    requests_per_minute: int | None = Field(None, ge=1)
    """Requests of this model begun in any 60 seconds, retries included; None: no limit of ours."""
    tokens_per_minute: int | None = Field(None, ge=1)
    """Tokens of this model, prompt and completion, in any 60 seconds; None: no limit of ours."""
    timeout: float = Field(120.0, gt=0, le=86_400)
    """Seconds that one call may take."""

    @field_validator("api_base")
    @classmethod
    def _bare(cls, value: str | None) -> str | None:
        if value is not None:
            parts = urlsplit(value)
            if parts.scheme not in {"http", "https"} or not parts.hostname:
                raise ValueError("must be an http or https address")
            if parts.username or parts.password or parts.query:
                raise ValueError("credentials do not belong into an address: name their variable in `api_key`")
        return value


class Retries(Strict):
    """How technical errors are retried before a trial is technical."""

    attempts: int = Field(5, ge=1)
    """Requests in all for one call."""
    first_wait: float = Field(1.0, ge=0, le=86_400)
    """Seconds before the first retry; doubled each time, with jitter."""
    longest_wait: float = Field(60.0, ge=0, le=86_400)


class Budget(Strict):
    """What a run may spend before it stops with work left. None: without limit."""

    usd: float | None = Field(None, gt=0, allow_inf_nan=False)
    """List price of what the run paid, over all resumes; exceeded by the calls in hand at most."""
    calls: int | None = Field(None, ge=1)
    """Calls that the run made, over all resumes, those of the workload's pseudo-models included."""
    wall_clock: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Seconds that one process works on the run."""


class Operation(Strict):
    """How the run is carried out. No label depends on it; it may change at any resume."""

    workers: int = Field(2, ge=1, le=1024)
    """Instances searched at once."""
    cache: Path | None = None
    """Folder of the response cache, relative to the config; None: `cache` in the run's folder. One serves many runs."""
    endpoints: dict[str, Endpoint] = Field(default_factory=dict)
    """By the pool's model name; `default` for those that are not named."""
    retries: Retries = Retries()
    budget: Budget = Budget()

    def endpoint(self, model: str) -> Endpoint:
        return self.endpoints.get(model) or self.endpoints.get("default") or Endpoint()


class Config(Strict):
    """A run's config file."""

    protocol: Protocol
    operation: Operation = Operation()

    @model_validator(mode="after")
    def _endpoints_are_of_models(self) -> Config:
        known = {"default", *self.protocol.models}
        if unknown := sorted(set(self.operation.endpoints) - known):
            raise ValueError(f"operation.endpoints: the pool has no model {unknown[0]!r}")
        return self

    @model_validator(mode="after")
    def _what_a_budget_counts_has_a_price(self) -> Config:
        if self.operation.budget.usd is not None:
            for model in self.remote_models():
                if "price" not in model.model_fields_set:
                    raise ValueError(
                        f"operation.budget.usd: model {model.name!r} has no price, so what it costs is not counted; "
                        "give it one (`price: {}` where it is free)"
                    )
        return self

    def remote_models(self) -> list[Model]:
        """The models that a provider answers for: neither local ones nor the workload's own."""
        return [model for model in self.protocol.models.values() if not model.model.startswith((LOCAL, WORKLOAD))]

    def check_keys(self, only: Container[str] | None = None) -> None:
        """Raises BadInput where a key variable that the config names is not set; `only` for models of these names."""
        for model in self.remote_models():
            if only is not None and model.name not in only:
                continue
            variable = self.operation.endpoint(model.name).api_key
            if variable and not os.environ.get(variable):
                raise BadInput(
                    f"the environment variable {variable} is not set; model {model.name!r} needs its key",
                    field=f"operation.endpoints.{model.name}.api_key",
                )


def load(path: Path) -> Config:
    """The config of a YAML file, the files it names resolved and digested.

    Raises BadInput: an unknown key, an impossible value, a missing file, a pool that is not one.
    """
    data = read_yaml(path)
    protocol = data.get("protocol")
    if isinstance(protocol, dict) and isinstance(protocol.get("pool"), str):
        pool_path = path.parent / protocol["pool"]
        pool = validated(Pool, read_yaml(pool_path), file=pool_path)
        data = {**data, "protocol": {**protocol, "pool": pool}}
    return _resolved(validated(Config, data, file=path), path)


def _resolved(config: Config, path: Path) -> Config:
    """The config with every file it names found, read once and digested."""
    protocol = config.protocol
    workloads = tuple(
        _with_files(workload, path, f"protocol.workloads.{index}") for index, workload in enumerate(protocol.workloads)
    )
    hints = _digested(protocol.hints, path, "protocol.hints")
    operation = config.operation
    if operation.cache is not None:
        try:
            cache = (path.parent / operation.cache).resolve()
        except (OSError, ValueError) as error:
            raise BadInput(str(error), file=path, field="operation.cache") from None
        operation = operation.model_copy(update={"cache": cache})
    protocol = protocol.model_copy(update={"workloads": workloads, "hints": hints})
    return Config(protocol=protocol, operation=operation)


def _with_files(workload: Workload, config: Path, field: str) -> Workload:
    """The workload with the files of its tasks and of its seeds found and digested."""
    seeds = _digested(workload.seeds, config, f"{field}.seeds")
    if workload.tasks is None:
        return workload.model_copy(update={"seeds": seeds})
    file, sha256 = _found(workload.tasks, workload.source_sha256, config, f"{field}.source")
    source = {**workload.source, "file": str(file)}
    return workload.model_copy(update={"seeds": seeds, "source": source, "source_sha256": sha256})


def _digested(part: Part, config: Path, field: str) -> Part:
    if part.file is None:
        return part
    file, sha256 = _found(part.file, part.sha256, config, field)
    return part.model_copy(update={"file": file, "sha256": sha256})


def _found(named: Path, expected: str | None, config: Path, field: str) -> tuple[Path, str]:
    """Where a file that the config names lies, and its digest. Raises BadInput: unreadable, or not as expected."""
    try:
        file = (config.parent / named).resolve()
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"{str(named)!r}: {problem}", file=config, field=f"{field}.file") from None
    if expected not in (None, sha256):
        raise BadInput(f"{named} is not the file with this digest", file=config, field=f"{field}.sha256")
    return file, sha256
