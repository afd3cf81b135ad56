"""What a run is: its id, its config as it was frozen, the run that it relabels, and the versions it measures by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from stepdown.builder.common.sqlite import SQLiteFile
from stepdown.builder.config.price import Price
from stepdown.builder.errors import BadInput

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

    @property
    def tiers(self) -> tuple[str, ...]:
        """The names of the pool's tiers, cheapest first."""
        return tuple(tier["name"] for tier in self.protocol["pool"]["tiers"])

    @property
    def prices(self) -> dict[str, Price]:
        """List prices by the name of the model: of the pool, of the one that gives hints, of the judges."""
        protocol = self.protocol
        models = [model for tier in protocol["pool"]["tiers"] for model in tier["models"]]
        models += filter(None, [protocol["hints"]["model"]])
        models += protocol["judge"]["models"] if protocol.get("judge") else []
        return {model["name"]: Price(**model["price"]) for model in models}


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


class MetaStore:
    """What a ledger keeps of its run, each thing under its name."""

    def __init__(self, file: SQLiteFile) -> None:
        self._file = file

    def find_run(self) -> RunMeta | None:
        """What the run is; None where no process has kept it yet."""
        protocol = self._file.meta("protocol")
        if protocol is None:
            return None
        origin = self._file.meta("origin")
        return RunMeta(
            id=str(self._file.meta("id")),
            protocol=protocol,
            operation=self._file.meta("operation"),
            origin=Origin.from_json(origin) if origin else None,
        )

    @property
    def run(self) -> RunMeta:
        """What the run is. Raises BadInput where it was never begun."""
        run = self.find_run()
        if run is None:
            raise BadInput("the run was never begun", file=self._file.path)
        return run

    def keep_run(self, run: RunMeta) -> None:
        """Keep what the run is."""
        self._set("id", run.id)
        self.keep_operation(run.operation)
        self._set("protocol", run.protocol)
        self.keep_origin(run.origin)

    def keep_operation(self, operation: JsonRecord) -> None:
        """The run goes on under another operation."""
        self._set("operation", operation)

    def keep_origin(self, origin: Origin | None) -> None:
        """The run goes on from this one."""
        self._set("origin", asdict(origin) if origin else None)

    @property
    def versions(self) -> RunVersions:
        """The versions that the run is measured by. Raises BadInput where none are kept yet."""
        workloads, judge = self._file.meta("workloads"), self._file.meta("judge")
        if workloads is None:
            raise BadInput("the run was never begun", file=self._file.path)
        return RunVersions(
            workloads=tuple(WorkloadVersion.from_json(workload) for workload in workloads),
            judge=JudgeVersion.from_json(judge) if judge else None,
        )

    def keep_versions(self, versions: RunVersions) -> None:
        """Keep the versions that the run is measured by from now on."""
        for key, value in versions.to_json().items():
            self._set(key, value)

    def own_facts(self) -> dict[str, JsonRecord]:
        """What workloads of somebody's own say of themselves, by benchmark: terms and known limits."""
        return self._file.meta("own_facts") or {}

    def keep_own_facts(self, facts: Mapping[str, JsonRecord]) -> None:
        """Keep what workloads of somebody's own say of themselves: a release may be made where their code is not."""
        self._set("own_facts", dict(facts))

    def _set(self, key: str, value: Any) -> None:
        """Keep a value, its order of keys included: a source's order may be the order of its instances."""
        if self._file.meta(key) != value:
            self._file.set_meta(key, value)
