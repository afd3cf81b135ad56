"""What an agent program, and a grader after it, may take."""

from __future__ import annotations

from pydantic import Field

from stepdown.builder.config.validation import Strict


class Limits(Strict):
    """Bounds of one episode. They enter the harness's version: under other bounds a verdict may be another one."""

    steps: int = Field(100, ge=1)
    """Steps that a program may take. One that asks for more is incomplete."""
    side_calls: int = Field(100, ge=0)
    """Side calls that a program may make."""
    seconds: float = Field(300, gt=0)
    """How long a program may work by itself, between an answer and its next request or its end. The time that models
    take is not counted."""
    memory_mib: int = Field(4096, ge=64)
    """Memory of all its processes together."""
    processes: int = Field(256, ge=4)
    """Processes at once."""
    file_mib: int = Field(1024, ge=1)
    """The largest file that it may write."""
    cpus: float = Field(1.0, gt=0)
    """Processors. Only a container is held to this."""
    disk_mib: int = Field(4096, ge=1)
    """What all files of its workspace may come to, its own folders of temporary files included."""
