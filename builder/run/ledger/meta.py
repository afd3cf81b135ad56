"""What a run is: its id, its config as it was frozen, the run that it relabels, and the versions it measures by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

JsonRecord = dict[str, Any]
"""A mapping as JSON holds it: text, finite numbers, lists, mappings."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a run that relabels another one has from it."""

    run: str
    """The other run's id."""
    cache: str
    """The cache that both use, relative to the run's folder, so that runs and cache may be moved together."""
    departed: tuple[str, ...]
    """Models that were strong in an earlier version and are no more; imported seeds may still be theirs."""
    folder: str | None = None
    """Where the other run lay when this one was begun, relative to this run's folder."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Origin:
        return cls(data["run"], data["cache"], tuple(data["departed"]), data.get("folder"))


@dataclass(frozen=True, slots=True)
class RunMeta:
    """What a run is, as its ledger keeps it."""

    id: str
    protocol: JsonRecord
    """As it was frozen: files by name and digest, not by where they lay."""
    operation: JsonRecord
    """As the latest process was given it."""
    origin: Origin | None = None
    """None where the run was built by itself."""


@dataclass(frozen=True, slots=True)
class WorkloadVersion:
    """By which harness a workload's trajectories are executed, and where its seeds come from."""

    benchmark: str
    version: str
    seeds: str

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> WorkloadVersion:
        """What another stepdown did not keep is empty, and so differs from what this one has."""
        return cls(str(data.get("benchmark", "")), str(data.get("version", "")), str(data.get("seeds", "")))


@dataclass(frozen=True, slots=True)
class JudgeVersion:
    """By which prompts a judge is asked (their digest), and by which rules its reports are decided on."""

    prompts: str
    rules: int

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> JudgeVersion:
        """What another stepdown did not keep is empty, and so differs from what this one has."""
        return cls(str(data.get("prompts", "")), int(data.get("rules", 0)))


@dataclass(frozen=True, slots=True)
class RunVersions:
    """The code that a run's labels are measured by: it may not change while the run goes on."""

    workloads: tuple[WorkloadVersion, ...]
    """In the config's order."""
    judge: JudgeVersion | None
    """None where the config has no judge."""

    def to_json(self) -> JsonRecord:
        return {
            "workloads": [asdict(workload) for workload in self.workloads],
            "judge": asdict(self.judge) if self.judge else None,
        }
