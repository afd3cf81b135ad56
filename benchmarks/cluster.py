"""What a cluster makes of its nodes, and what the head pays for it: planted instances on several nodes of this machine.

    python -m benchmarks.cluster [--instances 1000] [--steps 5] [--workers 64] [--nodes 4] [--latency 0.5]

Prints JSON. `of_bound` compares the time taken with what no schedule can beat: all calls spread evenly over the
workers, or the longest instance alone. `head_ms_per_call` is the processor time of the command's own process by its
calls, that of Ray's threads in it included; `head_cores` is the same by the time taken. `ray_ms_per_call` is what the
processes take that Ray has on the head's node beside it. Nodes share this machine's cores. `--nodes 0` works in threads
of this process, to compare: `files_sha256`, of rows, evidence, queue and manifest, is the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.planted import Case, from_ledger
from stepdown.builder.artifacts.names import EVIDENCE, MANIFEST, QUEUE, ROWS
from stepdown.builder.artifacts.writing import write_artifacts
from stepdown.builder.cluster.choice import executor_of
from stepdown.builder.config.loading import Config
from stepdown.builder.config.operation import ClusterConfig
from stepdown.builder.engine.build import Build
from stepdown.builder.run.folder import open_for_work
from tests.cluster.nodes import Nodes, cluster

_TICKS = os.sysconf("SC_CLK_TCK")


def measured(case: Case, nodes: Nodes, folder: Path) -> dict[str, Any]:
    """Build the case's run on the nodes, and what that came to."""
    run, config = folder / "run", _on(nodes, case.config(folder))
    with open_for_work(run, config) as opened:
        work = Build(opened, threading.Event(), executor_of(config.operation))
        work.admit()
        began, began_cpu, began_ray = time.perf_counter(), time.process_time(), _seconds_of(nodes.head_processes())
        work.execute()
        took, cpu = time.perf_counter() - began, time.process_time() - began_cpu
        ray = _seconds_of(nodes.head_processes()) - began_ray
        labels = write_artifacts(opened, work.multi_step).rows
        calls = work.progress.calls
    trials, longest = from_ledger(run)
    bound = max(calls / case.workers, longest) * case.latency
    files = b"".join((run / name).read_bytes() for name in (ROWS, EVIDENCE, QUEUE, MANIFEST))
    return {
        "instances": case.instances,
        "steps": case.steps,
        "workers": case.workers,
        "latency": case.latency,
        "nodes": len(nodes.workers),
        "labels": labels,
        "trials": trials,
        "model_calls": calls,
        "calls_per_s": round(calls / took, 1),
        "took_s": round(took, 1),
        "bound_s": round(bound, 1),
        "of_bound": round(bound / took, 3),
        "head_ms_per_call": round(1000 * cpu / calls, 3),
        "head_cores": round(cpu / took, 3),
        "ray_ms_per_call": round(1000 * ray / calls, 3),
        "files_sha256": hashlib.sha256(files).hexdigest(),
    }


def _on(nodes: Nodes, config: Config) -> Config:
    executor = ClusterConfig(ray=nodes.address) if nodes.workers else None
    return config.model_copy(update={"operation": config.operation.model_copy(update={"executor": executor})})


def _seconds_of(processes: Iterable[int]) -> float:
    """Processor time that processes have taken so far."""
    taken = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        taken += int(fields[11]) + int(fields[12])
    return taken / _TICKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--latency", type=float, default=0.5, help="seconds that a call takes")
    given = parser.parse_args()
    case = Case(given.instances, given.steps, workers=given.workers, latency=given.latency)
    with tempfile.TemporaryDirectory(prefix="cluster-") as folder, cluster() as nodes:
        nodes.have(given.nodes)
        print(json.dumps(measured(case, nodes, Path(folder))), flush=True)


if __name__ == "__main__":
    main()
