"""What a trial of a SWE-bench search takes, with checkpoints and without: a whole search on the tests' repository.

    python -m benchmarks.swebench [--pause S]

One JSON line per way; `waiting` is the part of the time that a trial waits for a container to start, or for a second
to end. Needs Docker, and the mirror of this machine's apt where the base image is not there yet. Models
answer from loopback at once, so this is what the containers cost. `--pause` makes every command that is executed take
so much longer: locked steps that build or test something are what checkpoints save.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
from click.testing import CliRunner

from stepdown.builder.cli.main import main as stepdown
from stepdown.builder.models.provider import load_library
from stepdown.harnesses.swebench.harness import SWEBench
from stepdown.harnesses.swebench.sandbox import Ran, Sandbox
from tests.provider import Answer, Provider, Request
from tests.swebench import abilities, repository
from tests.swebench.images import repository_image


@dataclass
class Measured:
    """What was executed so far, in this process."""

    commands: int = 0
    sandboxes: int = 0
    waited: float = 0.0
    """Seconds that trials waited for containers and for whole seconds."""
    seconds: float = field(default_factory=time.monotonic)


MEASURED = Measured()


@contextmanager
def waiting() -> Iterator[None]:
    """Counts the seconds of a trial; what is done beside trials keeps nobody waiting."""
    begun = time.monotonic()
    try:
        yield
    finally:
        if threading.current_thread().name.startswith("worker"):
            MEASURED.waited += time.monotonic() - begun


class CountedSandbox(Sandbox):
    """A sandbox that counts itself, its commands and what a trial waits for."""

    def __init__(self, *arguments: Any) -> None:
        MEASURED.sandboxes += 1
        with waiting():
            super().__init__(*arguments)

    def run(self, command: str, seconds: float) -> Ran:
        MEASURED.commands += 1
        return super().run(command, seconds)

    def close(self) -> None:
        with waiting():
            super().close()

    def _let_the_second_end(self, *of: Any) -> None:
        with waiting():
            super()._let_the_second_end(*of)


class Counted(SWEBench):
    """The harness with such sandboxes."""

    sandbox_class = CountedSandbox


def slower(ability: Any, pause: float) -> Any:
    """The ability with commands that take that much longer."""

    def answer(request: Request) -> Answer:
        given = ability(request)
        if given.tool_calls:
            ((name, arguments),) = given.tool_calls
            command = f"sleep {pause}; {json.loads(arguments)['command']}"
            return Answer(given.text, ((name, json.dumps({"command": command})),))
        return Answer(given.text.replace("_command\n", f"_command\nsleep {pause}; "))

    return answer


def measured(checkpoints: bool, pause: float, image: str, folder: Path) -> Mapping[str, Any]:
    """One search."""
    global MEASURED
    source = folder / "instances.jsonl"
    source.write_text(json.dumps(repository.instance(image)) + "\n")
    models = {name: slower(ability, pause) if pause else ability for name, ability in abilities.ABILITIES.items()}
    with Provider(models) as provider:
        config = abilities.config(provider.url, str(source), {"checkpoints": checkpoints})
        config["protocol"]["workloads"][0]["harness"] = "benchmarks.swebench:Counted"
        (folder / "config.yaml").write_text(json.dumps(config))
        MEASURED = Measured()
        result = CliRunner().invoke(stepdown, ["build", str(folder / "config.yaml"), "--run", str(folder / "run")])
        seconds = time.monotonic() - MEASURED.seconds
    if result.exit_code != 0:
        sys.exit(result.output)
    rows = [json.loads(line) for line in (folder / "run" / "evidence.jsonl").read_text().splitlines()]
    trials = sum(len(row["trials"]) for row in rows)
    return {
        "checkpoints": checkpoints,
        "steps": len(rows),
        "trials": trials,
        "seconds_per_trial": round(seconds / trials, 2),
        "waiting": round(MEASURED.waited / seconds, 3),
        "commands_per_trial": round(MEASURED.commands / trials, 2),
        "containers": MEASURED.sandboxes,
    }


def main() -> None:
    """Measure both ways and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that every command takes longer")
    pause = parser.parse_args().pause
    image = repository_image(docker.from_env(timeout=120), repository.FILES)
    load_library()  # its seconds are no trial's
    for checkpoints in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measured(checkpoints, pause, image, Path(folder))), flush=True)


if __name__ == "__main__":
    # Under its own name, so that the harness which the config names counts in the same place.
    from benchmarks.swebench import main as run

    run()
