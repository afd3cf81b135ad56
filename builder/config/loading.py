"""A run's config file: a `protocol` that is frozen for a run, and an `operation` that may change at any resume."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import model_validator

from stepdown.builder.common.bundled import config_file
from stepdown.builder.common.files import digest_of_folder
from stepdown.builder.common.secrets import SECRETS
from stepdown.builder.common.text import nearest
from stepdown.builder.common.trees import digest_of_tree
from stepdown.builder.config.families import family_of
from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.config.pool import LOCAL, WORKLOAD, Model, Pool
from stepdown.builder.config.protocol import HintsConfig, ProtocolConfig, SeedsConfig, WorkloadConfig
from stepdown.builder.config.validation import Strict, read_yaml, refuse_keys, validated
from stepdown.builder.errors import BadInput

FilePart = TypeVar("FilePart", "SeedsConfig", "HintsConfig")


class Config(Strict):
    """A run's config file."""

    protocol: ProtocolConfig
    """All that labels depend on; frozen for a run."""
    operation: OperationConfig = OperationConfig()
    """How the run is carried out; it may change at any resume."""

    @model_validator(mode="after")
    def _endpoints_are_of_models(self) -> Config:
        known = {"default", *self.protocol.models}
        if unknown := sorted(set(self.operation.endpoints) - known):
            meant = nearest(unknown[0], sorted(known))
            hint = f": did you mean {meant!r}?" if meant else ""
            raise ValueError(f"operation.endpoints: the pool has no model {unknown[0]!r}{hint}")
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


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a config is from."""

    folder: Path
    """What its paths are relative to."""
    file: Path | None
    """Its file, for messages; None where it has none."""
    has_seeds: bool = True
    """Whether its files of seeds are there: what makes them reads the config first."""


def load_config(path: Path, *, has_seeds: bool = True) -> Config:
    """The config of a YAML file, the files it names resolved and digested. A bare name that is no file's is that of a
    config that comes with stepdown. Without `has_seeds`, files of seeds are not looked for.

    Raises BadInput: an unknown key, an impossible value, a missing file, a pool that is not one.
    """
    file = config_file(path)
    return _loaded(read_yaml(file), _Place(file.parent, file, has_seeds))


def config_of(data: Mapping[str, Any], folder: Path) -> Config:
    """The config that `data` holds, as `load_config` has it of a file; paths in it are relative to `folder`."""
    refuse_keys(data)
    return _loaded(data, _Place(folder, None))


def _loaded(data: Mapping[str, Any], place: _Place) -> Config:
    protocol = data.get("protocol")
    if isinstance(protocol, dict) and isinstance(protocol.get("pool"), str):
        pool_path = place.folder / protocol["pool"]
        pool = validated(Pool, read_yaml(pool_path), file=pool_path)
        data = {**data, "protocol": {**protocol, "pool": pool}}
    config = validated(Config, data, file=place.file)
    SECRETS.know(endpoint.api_key for endpoint in config.operation.endpoints.values() if endpoint.api_key)
    _refuse_one_family_unsaid(config, place)
    return _resolved(config, place)


def _refuse_one_family_unsaid(config: Config, place: _Place) -> None:
    """Raises BadInput where judges of one family are to be believed and the config does not say that this is meant.

    Runs that were begun before a config had to say so are read without it.
    """
    judge = config.protocol.judge
    families = {family_of(model.model) for model in judge.models} if judge else set()
    if judge is None or judge.panel == "single" or len(families) > 1:
        return
    one = "one judge alone" if len(judge.models) == 1 else f"judges of one family ({families.pop()})"
    raise BadInput(
        f"{one}: name a judge of another family of models too, or write `panel: single` to believe it alone",
        file=place.file,
        field="protocol.judge.models",
    )


def _resolved(config: Config, place: _Place) -> Config:
    """The config with every file it names found, read once and digested."""
    protocol = config.protocol
    workloads = tuple(
        _with_files(workload, place, f"protocol.workloads.{index}") for index, workload in enumerate(protocol.workloads)
    )
    hints = _with_policy(_digested(protocol.hints, place, "protocol.hints"), place)
    operation = config.operation
    if operation.cache is not None:
        try:
            cache = (place.folder / operation.cache).resolve()
        except (OSError, ValueError) as error:
            raise BadInput(str(error), file=place.file, field="operation.cache") from None
        operation = operation.model_copy(update={"cache": cache})
    own_code = hints.may_be_own_code or any(workload.is_own_code for workload in workloads)
    if operation.modules is not None or own_code:
        modules = (place.folder / (operation.modules or ".")).resolve()
        operation = operation.model_copy(update={"modules": modules})
    protocol = protocol.model_copy(update={"workloads": workloads, "hints": hints}).beside(operation.modules)
    return Config(protocol=protocol, operation=operation)


def _with_files(workload: WorkloadConfig, place: _Place, field: str) -> WorkloadConfig:
    """The workload with the files of its tasks and of its seeds found and digested."""
    seeds = _digested(workload.seeds, place, f"{field}.seeds") if place.has_seeds else workload.seeds
    workload = _with_assets(workload, place, f"{field}.source")
    if workload.tasks is None:
        return workload.model_copy(update={"seeds": seeds})
    file, sha256 = _found(workload.tasks, workload.source_sha256, place, f"{field}.source")
    source = {**workload.source, "file": str(file)}
    return workload.model_copy(update={"seeds": seeds, "source": source, "source_sha256": sha256})


def _with_assets(workload: WorkloadConfig, place: _Place, field: str) -> WorkloadConfig:
    """The workload with the folder of its tasks' assets found and digested, where its source names a folder there is.

    The digest stands in the source, so that other files in the folder are another protocol.
    """
    named = workload.assets
    if named is None:
        return workload
    try:
        folder = (place.folder / named).resolve()
        if not folder.is_dir():
            return workload  # a key of the workload's own
        sha256 = digest_of_tree(folder)
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"{str(named)!r}: {problem}", file=place.file, field=f"{field}.assets") from None
    if workload.source.get("assets_sha256") not in (None, sha256):
        raise BadInput(f"{named} is not the folder with this digest", file=place.file, field=f"{field}.assets_sha256")
    source = {**workload.source, "assets": str(folder), "assets_sha256": sha256}
    return workload.model_copy(update={"source": source})


def _digested(part: FilePart, place: _Place, field: str) -> FilePart:
    if part.file is None:
        return part
    file, sha256 = _found(part.file, part.sha256, place, field)
    return part.model_copy(update={"file": file, "sha256": sha256})


def _with_policy(hints: HintsConfig, place: _Place) -> HintsConfig:
    """The hints with their policy's folder found and digested; any other policy is known by its name alone."""
    if hints.policy is None:
        return hints
    try:
        folder = (place.folder / hints.policy).resolve()
        if not folder.is_dir():
            return hints
        sha256 = digest_of_folder(folder)
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"{hints.policy!r}: {problem}", file=place.file, field="protocol.hints.policy") from None
    if hints.sha256 not in (None, sha256):
        problem = f"{hints.policy} is not the policy with this digest"
        raise BadInput(problem, file=place.file, field="protocol.hints.sha256")
    return hints.model_copy(update={"policy": str(folder), "sha256": sha256})


def _found(named: Path, expected: str | None, place: _Place, field: str) -> tuple[Path, str]:
    """Where a file that the config names lies, and its digest. Raises BadInput: unreadable, or not as expected."""
    try:
        file = (place.folder / named).resolve()
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"{str(named)!r}: {problem}", file=place.file, field=f"{field}.file") from None
    if expected not in (None, sha256):
        raise BadInput(f"{named} is not the file with this digest", file=place.file, field=f"{field}.sha256")
    return file, sha256
