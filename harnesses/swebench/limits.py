"""What a container of ours may take of the host, be it an agent's or the grader's."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from stepdown.builder.config.validation import Strict
from stepdown.harnesses.containers.confined import MIB as MIB
from stepdown.harnesses.containers.confined import confined

INIT = ("bash", "-c", "while :; do sleep 3600 & wait $!; done")
"""PID 1: it reaps orphans (zombies count against the limit of processes) and outlives `kill -9 -1`."""


class Limits(Strict):
    """Bounds of one container. They enter the harness's version: under other bounds a verdict may be another one."""

    memory_mib: int = Field(4096, ge=64)
    """Memory, without swap."""
    cpus: float = Field(1.0, gt=0)
    processes: int = Field(256, ge=16)
    """Processes and threads at once, zombies included."""
    file_mib: int = Field(1024, ge=1)
    """The largest file a process may write."""
    disk_mib: int = Field(4096, ge=1)
    """What all of a container's files may come to beyond its image's. Storage drivers without quotas do not enforce it:
    it is looked at while commands run."""
    disk_files: int = Field(500_000, ge=100)
    """How many files and folders these may be: a disk can run out of inodes too."""
    capabilities: tuple[Literal["CHOWN", "DAC_OVERRIDE", "FOWNER"], ...] = ()
    """What root inside may do, where an image holds files of other users. All other capabilities are dropped."""

    def container_options(self) -> dict[str, Any]:
        """Keyword arguments of the Docker SDK's `containers.create` that confine a container to these bounds."""
        return confined(
            memory_mib=self.memory_mib,
            cpus=self.cpus,
            processes=self.processes,
            file_mib=self.file_mib,
            capabilities=self.capabilities,
        )
