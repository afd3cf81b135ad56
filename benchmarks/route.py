"""What a router adds to a call: `python -m benchmarks.route [--streams N] [--calls N]`.

A loopback provider streams short answers from a process of its own. They are asked for directly and through `stepdown
route serve`, which runs in another one, by so many streams at once. Prints a JSON line for each way: seconds to the
first chunk and to the last one at the median and the 99th percentile, and how many streams were lost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx

WORDS = 20


@contextmanager
def provider() -> Iterator[str]:
    """A provider in a process of its own; its address."""
    with started([sys.executable, "-m", "benchmarks.route", "--provide"]) as url:
        yield url


@contextmanager
def router(url: str, folder: Path, policy: str) -> Iterator[str]:
    """The router in a process of its own, in front of that provider; its address."""
    models = [
        {"name": tier, "id": place, "models": [{"name": f"m-{tier}", "model": f"openai/m-{tier}"}]}
        for place, tier in enumerate(("low", "high"))
    ]
    workload = {"harness": "qa", "seeds": {"source": "reference"}}
    config = {
        "protocol": {"pool": {"version": "b", "tiers": models}, "workloads": [workload]},
        "operation": {"endpoints": {"default": {"api_base": url}}},
    }
    file = folder / "run.json"
    file.write_text(json.dumps(config))
    with started([sys.executable, "-m", "stepdown", "route", "serve", policy, "--pool", str(file)]) as address:
        yield address


@contextmanager
def started(command: list[str]) -> Iterator[str]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


async def measure(url: str, model: str, streams: int, calls: int) -> dict[str, Any]:
    """Ask for so many streams, `streams` of them at once."""
    first: list[float] = []
    last: list[float] = []
    lost = 0
    gate = asyncio.Semaphore(streams)
    limits = httpx.Limits(max_connections=streams)
    async with httpx.AsyncClient(limits=limits, timeout=120, trust_env=False) as client:

        async def one(number: int) -> None:
            nonlocal lost
            body = {"model": model, "stream": True, "messages": [{"role": "user", "content": f"{number}"}]}
            async with gate:
                began, text, at = time.perf_counter(), b"", 0.0
                async with client.stream("POST", f"{url}/chat/completions", json=body) as response:
                    async for part in response.aiter_bytes():
                        at = at or time.perf_counter()
                        text += part
                if text.count(b"word") != WORDS or b"[DONE]" not in text:
                    lost += 1
                first.append(at - began)
                last.append(time.perf_counter() - began)

        began = time.perf_counter()
        await asyncio.gather(*(one(number) for number in range(calls)))
        took = time.perf_counter() - began
    return {
        "streams": streams,
        "calls": calls,
        "lost": lost,
        "calls_per_s": round(calls / took, 1),
        **_percentiles("first_chunk_ms", first),
        **_percentiles("last_chunk_ms", last),
    }


def _percentiles(name: str, seconds: list[float]) -> dict[str, float]:
    cuts = quantiles(seconds, n=100)
    return {f"{name}_p50": round(1000 * cuts[49], 2), f"{name}_p99": round(1000 * cuts[98], 2)}


def provide() -> None:
    """Serve short streams until the process is ended."""
    from aiohttp import web

    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    word = f"data: {json.dumps({**chunk, 'choices': [{'index': 0, 'delta': {'content': 'word '}}]})}\n\n".encode()

    async def complete(request: web.Request) -> web.StreamResponse:
        await request.read()
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await answer.prepare(request)
        for _ in range(WORDS):
            await answer.write(word)
        await answer.write(b"data: [DONE]\n\n")
        return answer

    async def run() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", complete)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
        await asyncio.Event().wait()

    asyncio.run(run())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 200], help="streams at once")
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--policy", default="rules", help="a policy's folder, or its name")
    parser.add_argument("--provide", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.provide:
        provide()
        return
    with tempfile.TemporaryDirectory() as folder, provider() as url, router(url, Path(folder), given.policy) as routed:
        for streams in given.streams:
            for way, address, model in (("direct", url, "m"), ("routed", routed, "auto")):
                asyncio.run(measure(address, model, min(streams, 20), 40))  # connections and imports are made first
                found = asyncio.run(measure(address, model, streams, given.calls))
                load = round(os.getloadavg()[0], 2)
                print(json.dumps({"way": way, "policy": given.policy, **found, "load": load}), flush=True)


if __name__ == "__main__":
    main()
