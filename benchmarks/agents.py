"""What an episode of an agent program costs beside its calls: its start, the replay of n steps, its end and grading.

    python -m benchmarks.agents [--episodes 5] [--image NAME]

One JSON line per case. The program is the tests' clerk: Python without packages, one tool, a request a step, answered
at once. `bare_start_ms` is what the same Python takes to start and end without any of this. `cpu` is processor time of
this process and of all it started; a container's own is the daemon's and not in it. `load` is the machine's, of the
last minute.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepdown.builder.records import Instance, Prefix, Response, ToolCall, Verdict
from stepdown.harnesses.agent.harness import AgentHarness
from tests.agents import orders

STEPS = (1, 10, 30)


@dataclass
class Taken:
    """Milliseconds of each part of an episode."""

    start: list[float] = field(default_factory=list)
    step: list[float] = field(default_factory=list)
    end: list[float] = field(default_factory=list)
    grade: list[float] = field(default_factory=list)
    close: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def cpu_seconds() -> float:
    """Processor time of this process and of what it started and has ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


class Watch:
    """Milliseconds since it was last looked at."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def lap(self) -> float:
        now = time.monotonic()
        taken, self._last = now - self._last, now
        return 1000 * taken


def play(
    harness: AgentHarness, instance: Instance, steps: int, taken: Taken, recorded: Sequence[Prefix] = ()
) -> list[Prefix]:
    """One episode, each step answered at once; as a replay does it where there are recorded prefixes. What it saw."""
    before, watch, seen = cpu_seconds(), Watch(), []
    with harness.open(instance) as episode:
        seen.append(episode.prefix())
        taken.start.append(watch.lap())
        for number in range(steps):
            arguments = {"path": f"/workspace/order-{number}.txt", "text": "filled"}
            if number + 1 < len(recorded):
                episode.expect(recorded[number + 1])
            going = episode.advance(Response("", (ToolCall("write", json.dumps(arguments)),)))
            if going:
                seen.append(episode.prefix())
                taken.step.append(watch.lap())
        assert not going
        taken.end.append(watch.lap())
        assert episode.verdict().verdict is Verdict.PASS
        taken.grade.append(watch.lap())
    taken.close.append(watch.lap())
    taken.cpu.append(1000 * (cpu_seconds() - before))
    return seen


def measured(folder: Path, steps: int, episodes: int, image: str | None) -> dict[str, Any]:
    """One case."""
    (folder / "tasks.jsonl").write_text(json.dumps(orders.task("one", [0] * steps)) + "\n")
    where: dict[str, Any] = {"sandbox": "process"} if image is None else {"sandbox": "docker", "image": image}
    harness = AgentHarness(command=orders.CLERK, program="clerk.py", **where)
    (instance,) = harness.instances({"file": str(folder / "tasks.jsonl"), "assets": str(orders.PROGRAMS)})
    recorded = play(harness, instance, steps, Taken())  # the first one also imports and connects
    taken = Taken()
    for _ in range(episodes):
        play(harness, instance, steps, taken, recorded)
    middle = {f"{name}_ms": round(statistics.median(found), 1) for name, found in vars(taken).items() if found}
    return {"case": "episode", "sandbox": where["sandbox"], "steps": steps, **middle}


def bare_start(episodes: int) -> float:
    """The Python alone, with what the program imports."""
    code = "import json, random, subprocess, tempfile, threading, urllib.request, uuid"
    watch, found = Watch(), []
    for _ in range(episodes):
        subprocess.run([sys.executable, "-c", code], check=True)
        found.append(watch.lap())
    return round(statistics.median(found), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=5)
    parser.add_argument("--image", help="Also measure in containers of this image, which needs a python3.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for image in (None, *([given.image] if given.image else [])):
            for steps in STEPS:
                figures = measured(Path(folder), steps, given.episodes, image)
                figures |= {"bare_start_ms": bare_start(given.episodes), "load": round(os.getloadavg()[0], 1)}
                print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
