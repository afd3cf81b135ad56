"""How a container that runs what a model wrote is confined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MIB = 1 << 20


def confined(
    *, memory_mib: int, cpus: float, processes: int, file_mib: int, capabilities: Sequence[str] = ()
) -> dict[str, Any]:
    """Keyword arguments of the Docker SDK's `containers.create` that confine a container to these bounds.

    No network but its own loopback, nothing of the host mounted, no log (what PID 1 prints would go to the host's
    disk), no core dumps, a fixed host name (it shows in observations).
    """
    from docker.types import LogConfig, Ulimit

    largest = file_mib * MIB
    return {
        "network_mode": "none",
        "hostname": "sandbox",
        "cap_drop": ["ALL"],
        "cap_add": list(capabilities),
        "security_opt": ["no-new-privileges"],
        "mem_limit": memory_mib * MIB,
        "memswap_limit": memory_mib * MIB,
        "nano_cpus": int(cpus * 1e9),
        "pids_limit": processes,
        "ulimits": [Ulimit(name="fsize", soft=largest, hard=largest), Ulimit(name="core", soft=0, hard=0)],
        "log_config": LogConfig(type="none"),
        # PID 1 does not listen to TERM: whoever stops it would wait ten seconds for nothing.
        "stop_signal": "SIGKILL",
        "auto_remove": False,
    }
