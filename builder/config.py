"""The run's config: a `protocol` that is frozen for a run, and an `operation` that may change at any resume."""

from __future__ import annotations

import hashlib
import os
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, model_validator

from builder.errors import BadInput
from builder.pool import LOCAL, WORKLOAD, Model, Pool
from builder.records import digest
from builder.validation import Strict, read_yaml, validated

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
        return self


class Workload(Strict):
    """One benchmark to label."""

    harness: str = Field(min_length=1)
    """A built-in harness, or `module:Class` of your own."""
    source: dict[str, Any] = Field(default_factory=dict)
    """Which instances; the harness says what it takes."""
    options: dict[str, Any] = Field(default_factory=dict)
    """The harness's own options."""
    seeds: Seeds


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

    @cached_property
    def digest(self) -> str:
        return digest(self.model_dump(mode="json"))


class Endpoint(Strict):
    """How one model is reached."""

    api_base: str | None = None
    """Address of an OpenAI-compatible server, where it is not the provider's own."""
    api_key: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Name of the environment variable that holds the key."""
    concurrency: int | None = Field(None, ge=1)
    """Calls of this model under way at once; None: as many as there are workers."""
    timeout: float = Field(120.0, gt=0)
    """Seconds that one call may take."""


class Retries(Strict):
    """How technical errors are retried before a trial is technical."""

    attempts: int = Field(5, ge=1)
    """Requests in all for one call."""
    first_wait: float = Field(1.0, ge=0)
    """Seconds before the first retry; doubled each time, with jitter."""
    longest_wait: float = Field(60.0, ge=0)


class Operation(Strict):
    """How the run is carried out. No label depends on it; it may change at any resume."""

    workers: int = Field(2, ge=1, le=1024)
    """Instances searched at once."""
    cache: Path | None = None
    """Folder of the response cache, relative to the config; None: `cache` in the run's folder. One serves many runs."""
    endpoints: dict[str, Endpoint] = Field(default_factory=dict)
    """By the pool's model name; `default` for those that are not named."""
    retries: Retries = Retries()

    def endpoint(self, model: str) -> Endpoint:
        return self.endpoints.get(model) or self.endpoints.get("default") or Endpoint()


class Config(Strict):
    """A run's config file."""

    protocol: Protocol
    operation: Operation = Operation()

    @model_validator(mode="after")
    def _endpoints_are_of_models(self) -> Config:
        hint = self.protocol.hints.model
        known = {"default", *self.protocol.pool.by_name, *([hint.name] if hint else [])}
        if unknown := sorted(set(self.operation.endpoints) - known):
            raise ValueError(f"operation.endpoints: the pool has no model {unknown[0]!r}")
        return self

    def remote_models(self) -> list[Model]:
        """The models that a provider answers for: neither local ones nor the workload's own."""
        models = [model for _, model in self.protocol.pool.models()]
        models += [self.protocol.hints.model] if self.protocol.hints.model else []
        return [model for model in models if not model.model.startswith((LOCAL, WORKLOAD))]

    def check_keys(self) -> None:
        """Raises BadInput where a key variable that the config names is not set."""
        for model in self.remote_models():
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
        workload.model_copy(update={"seeds": _digested(workload.seeds, path, f"protocol.workloads.{index}.seeds")})
        for index, workload in enumerate(protocol.workloads)
    )
    hints = _digested(protocol.hints, path, "protocol.hints")
    operation = config.operation
    if operation.cache is not None:
        operation = operation.model_copy(update={"cache": (path.parent / operation.cache).resolve()})
    protocol = protocol.model_copy(update={"workloads": workloads, "hints": hints})
    return Config(protocol=protocol, operation=operation)


def _digested(part: Part, config: Path, field: str) -> Part:
    if part.file is None:
        return part
    file = (config.parent / part.file).resolve()
    try:
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise BadInput(f"{part.file}: {error.strerror}", file=config, field=f"{field}.file") from None
    if part.sha256 not in (None, sha256):
        raise BadInput(f"{part.file} is not the file with this digest", file=config, field=f"{field}.sha256")
    return part.model_copy(update={"file": file, "sha256": sha256})
