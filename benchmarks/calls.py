"""What a call to an endpoint costs: calls per second and processor time, through the client that a build uses.

    python -m benchmarks.calls                                         all cases
    python -m benchmarks.calls --workers 64 --latency 1 [--road litellm]
    python -m benchmarks.calls --build [--road litellm]                a build of planted instances, 64 workers

One JSON line per case. The endpoint is another process on loopback, which answers at once or after `--latency` seconds.
A request is as long as a step of an agent: eight tools, thirteen messages, 9 kB. `cpu_ms_per_call` is what this process
alone takes (a build's: all of it, search, cache and ledger too), `bare_cpu_ms_per_call` what httpx's client takes for
the same body in the same number of threads, which tells how fast the machine is just now; `load` is the machine's, of
the last minute. Roads: `direct` as for `openai/...`; `litellm` as for providers with forms of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.endpoint import Endpoint, spawned
from stepdown.builder import actions
from stepdown.builder.artifacts.writing import write_artifacts
from stepdown.builder.config.loading import load_config
from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.config.pool import Model
from stepdown.builder.engine.build import Build
from stepdown.builder.models import Client
from stepdown.builder.records import Prefix
from stepdown.builder.run.folder import open_for_work
from stepdown.harnesses.planted.setup import planted_config

FAMILIES = {"direct": "openai", "litellm": "custom_openai"}
WORKERS = (1, 8, 64, 256)
LATENCIES = (0.0, 1.0)
_CALLS = 2000
"""Of a case without latency."""
_SECONDS = 6
"""Of a case with latency, if nothing else took time."""
_INSTANCES, _BUILD_WORKERS = 64, 64


@dataclass(frozen=True, slots=True)
class Taken:
    """What some calls took, of which this process's processor time."""

    calls: int
    seconds: float
    cpu_seconds: float

    @property
    def cpu_ms(self) -> float:
        return round(1000 * self.cpu_seconds / self.calls, 3)


def prefix_of_a_step() -> Prefix:
    """What an agent's step looks like, in size."""
    names = [f"tool.{number}" for number in range(8)]
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": "x" * 80}}}
    tools = [
        {"type": "function", "function": {"name": n, "description": "d" * 200, "parameters": schema}} for n in names
    ]
    prefix = Prefix.start([{"role": "system", "content": "s" * 2000}, {"role": "user", "content": "u" * 1000}], tools)
    for number in range(1, 6):
        function = {"name": names[number], "arguments": '{"path": "a"}'}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        said = {"role": "assistant", "content": "a" * 200, "tool_calls": [call]}
        prefix = prefix.extend([said, {"role": "tool", "tool_call_id": f"call_{number}", "content": "o" * 400}])
    return prefix.extend([{"role": "user", "content": "go on"}])


def taken(call: Callable[[], object], workers: int, calls: int) -> Taken:
    """Make so many calls in so many threads, shared out evenly."""
    each = max(1, calls // workers)
    threads = [threading.Thread(target=lambda: [call() for _ in range(each)]) for _ in range(workers)]
    wall, cpu = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Taken(each * workers, time.perf_counter() - wall, time.process_time() - cpu)


def bare(workers: int, calls: int) -> Taken:
    """Calls of httpx's client alone, with the body of a step, to an endpoint that answers at once."""
    rendered = actions.rendered("tools", prefix_of_a_step())
    body = {"model": "m", "messages": rendered.messages, "tools": rendered.tools}
    with spawned(0) as endpoint, httpx.Client(limits=httpx.Limits(max_connections=None)) as client:
        address = f"{endpoint.url}/chat/completions"
        client.post(address, json=body)
        return taken(lambda: client.post(address, json=body).json(), workers, calls)


def measured(road: str, workers: int, latency: float, most: int = _CALLS) -> dict[str, Any]:
    """The calls of one case, at most so many where they take no time."""
    model = Model(name="m", model=f"{FAMILIES[road]}/m", parameters={"temperature": 0, "max_tokens": 500})
    prefix = prefix_of_a_step()
    calls = workers * max(1, round(_SECONDS / latency)) if latency else most
    with spawned(latency) as endpoint:
        operation = OperationConfig.model_validate({"endpoints": {"default": {"api_base": endpoint.url}}})
        with Client([model], operation) as client:
            client.complete(model, prefix)  # imports and a first connection are no call's
            took = taken(lambda: client.complete(model, prefix), workers, calls)
    return {
        "case": "calls",
        "road": road,
        "workers": workers,
        "latency_s": latency,
        **_figures(took, endpoint),
        "bare_cpu_ms_per_call": bare(workers, most).cpu_ms,
        "load": _load(),
    }


def built(road: str, folder: Path) -> dict[str, Any]:
    """A build of planted instances whose models are asked at the endpoint."""
    config = planted_config({"instances": _INSTANCES, "steps": 5}, operation={"workers": _BUILD_WORKERS})
    for tier in config["protocol"]["pool"]["tiers"]:
        for model in tier["models"]:
            model["model"] = f"{FAMILIES[road]}/{model['name']}"
    with spawned(0) as endpoint:
        config["operation"]["endpoints"] = {"default": {"api_base": endpoint.url}}
        file = folder / "config.yaml"
        file.write_text(json.dumps(config))
        loaded = load_config(file)
        wall, cpu = time.perf_counter(), time.process_time()
        with open_for_work(folder / "run", loaded) as opened:
            work = Build(opened, threading.Event())
            work.admit()
            work.execute()
            labels = write_artifacts(opened, work.multi_step).rows
        took = Taken(work.progress.calls, time.perf_counter() - wall, time.process_time() - cpu)
    return {
        "case": "build",
        "road": road,
        "workers": _BUILD_WORKERS,
        "labels": labels,
        **_figures(took, endpoint),
        "load": _load(),
    }


def _figures(took: Taken, endpoint: Endpoint) -> dict[str, Any]:
    return {
        "calls": took.calls,
        "calls_per_s": round(took.calls / took.seconds, 1),
        "cpu_ms_per_call": took.cpu_ms,
        "endpoint_cpu_ms_per_call": round(1000 * endpoint.cpu_s / took.calls, 3),
    }


def _load() -> float:
    return round(os.getloadavg()[0], 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, help=f"one of {WORKERS}, or any other; all of them if it is not given")
    parser.add_argument("--latency", type=float, help="seconds until the endpoint answers; 0 and 1 if it is not given")
    parser.add_argument("--road", choices=FAMILIES, default="direct")
    parser.add_argument("--build", action="store_true", help="only the build")
    given = parser.parse_args()
    if not given.build:
        for latency in LATENCIES if given.latency is None else (given.latency,):
            for workers in WORKERS if given.workers is None else (given.workers,):
                print(json.dumps(measured(given.road, workers, latency)), flush=True)
    if given.build or (given.workers is None and given.latency is None):
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(built(given.road, Path(folder))), flush=True)


if __name__ == "__main__":
    main()
