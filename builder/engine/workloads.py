"""Workloads as a config names them: loaded, checked, and asked for their instances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stepdown.builder.common.faults import place_of, said
from stepdown.builder.config.protocol import ProtocolConfig, WorkloadConfig
from stepdown.builder.engine.seeds import SeedFile, strong_models
from stepdown.builder.errors import BadInput, StepdownError
from stepdown.builder.records import Instance
from stepdown.builder.run.ledger import JudgeVersion, RunVersions, WorkloadVersion
from stepdown.harnesses.base import Harness, NodeNeeds
from stepdown.harnesses.registry import harness_class, make_harness, own_facts
from stepdown.judges.decision import RULES_VERSION
from stepdown.judges.prompts import prompts_digest


def load_harness(workload: WorkloadConfig, field: str) -> Harness:
    """The harness that a config's entry names, with its options. Raises BadInput. Loading one runs its code."""
    try:
        return make_harness(harness_class(workload.harness, workload.folder), workload.options)
    except BadInput as error:
        raise BadInput(str(error), field=field) from None


def load_workload(protocol: ProtocolConfig, index: int, departed: Sequence[str] = ()) -> LoadedWorkload:
    """A workload of the config, ready to be worked at. Raises BadInput. Loading its harness runs its code.

    `departed` names strong models of the pool before this one, which imported seeds may still be by.
    """
    workload, place = protocol.workloads[index], f"protocol.workloads.{index}"
    harness = load_harness(workload, f"{place}.harness")
    if workload.is_own_code:
        own_facts(harness)  # what is wrong there is told before anything is paid for, and by `doctor` too
    try:
        strong_models(workload.seeds, protocol.pool)
    except BadInput as error:
        raise BadInput(str(error), field=place) from None
    if protocol.judge is None and harness.needs_judge:
        problem = f"an LLM judges the answers of {harness.name!r}: name its models in `protocol.judge.models`"
        raise BadInput(problem, field=place)
    for name in harness.side_models:
        if name not in protocol.pool.by_name:
            raise BadInput(f"the pool has no model {name!r} to answer calls beside the steps", field=f"{place}.options")
    file = workload.seeds.file
    return LoadedWorkload(workload, harness, SeedFile(file, protocol.pool, harness.name, departed) if file else None)


def select_instances(index: int, workload: LoadedWorkload) -> Iterator[Instance]:
    """The instances that a workload's source selects. Raises BadInput."""
    field = f"protocol.workloads.{index}.source"
    try:
        yield from workload.harness.instances(workload.config.source)
    except BadInput as error:
        raise BadInput(str(error), field=field) from None
    except (StepdownError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # whatever anybody's code raises, sys.exit too
        raise BadInput(f"the workload can not read it: {_place_and_words(workload, error)}", field=field) from None


def versions_of(workloads: Sequence[LoadedWorkload], protocol: ProtocolConfig) -> RunVersions:
    """By which code the run's labels are measured."""
    return RunVersions(
        workloads=tuple(
            WorkloadVersion(workload.harness.name, workload.harness.version, workload.config.seeds.source)
            for workload in workloads
        ),
        judge=JudgeVersion(prompts_digest(), RULES_VERSION) if protocol.judge else None,
    )


def node_needs_of(index: int, workload: LoadedWorkload) -> NodeNeeds:
    """What a workload's instances need of each machine of a cluster. Raises BadInput."""
    try:
        return workload.harness.node_needs(workload.config.source)
    except StepdownError:
        raise
    except (Exception, SystemExit) as error:
        problem = f"the workload can not say what it needs of a node: {_place_and_words(workload, error)}"
        raise BadInput(problem, field=f"protocol.workloads.{index}.harness") from None


def give_folder(workload: LoadedWorkload, folder: Path) -> None:
    """Tell a workload's harness of a folder of its own. Raises BadInput."""
    try:
        workload.harness.keep_in(folder)
    except StepdownError:
        raise
    except (Exception, SystemExit) as error:
        raise BadInput(f"workload {workload.config.harness!r}: {_place_and_words(workload, error)}") from None


def _place_and_words(workload: LoadedWorkload, error: BaseException) -> str:
    place = place_of(error, type(workload.harness).__module__)
    return f"{f'{place}: ' if place else ''}{said(error)}"


@dataclass(frozen=True, slots=True)
class LoadedWorkload:
    """A workload ready to be labelled: its harness, and its seeds where they are imported."""

    config: WorkloadConfig
    harness: Harness
    seeds: SeedFile | None
