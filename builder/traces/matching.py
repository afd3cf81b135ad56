"""Finds the task that a trajectory did, by what it was asked first."""

from __future__ import annotations

from dataclasses import dataclass, field

from stepdown.builder.config.loading import Config
from stepdown.builder.engine.workloads import LoadedWorkload, load_harness, select_instances
from stepdown.builder.traces.calls import grown, role_of, said
from stepdown.builder.traces.chains import Trajectory
from stepdown.harnesses.checked import opened


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of a config by their first prefix, each as its benchmark and id; None where two begin alike."""

    by_opening: dict[bytes, tuple[str, str] | None] = field(default_factory=dict)
    by_last_words: dict[bytes, tuple[str, str] | None] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    """The benchmark of each id."""

    def of(self, trajectory: Trajectory) -> tuple[str, str] | None:
        """The task that a trajectory did: the one that it names, that has its opening, or its last words of a user."""
        if trajectory.task in self.ids:
            return self.ids[trajectory.task], trajectory.task
        found = self.by_opening.get(trajectory.opening)
        return found or self.by_last_words.get(trajectory.asked)


def tasks_of(config: Config) -> Tasks:
    """The tasks of a config's workloads. An episode of each is opened. Raises BadInput and Technical."""
    tasks = Tasks()
    for index, entry in enumerate(config.protocol.workloads):
        workload = LoadedWorkload(entry, load_harness(entry, f"protocol.workloads.{index}.harness"), None)
        for instance in select_instances(index, workload):
            if instance.dropped is not None:
                continue
            with opened(workload.harness, instance) as episode:
                messages = episode.prefix().messages
            opening, asked = b"", b""
            for message in messages:
                if role_of(message) != "system":
                    opening = grown(opening, said(message))
                if role_of(message) == "user":
                    asked = grown(b"", said(message))
            place = (instance.benchmark, instance.id)
            for known, key in ((tasks.by_opening, opening), (tasks.by_last_words, asked)):
                known[key] = place if known.setdefault(key, place) == place else None
            tasks.ids[instance.id] = instance.benchmark
    return tasks
