"""Whether hostile commands come to the same verdict each time: each is an agent's first command, many times over.

    python -m benchmarks.hostile [--times 10] [--seconds 10] [NAME ...]

The commands are the files of tests/swebench/hostile, copied into the image of the tests' repository. After the command
the agent mends the repository and submits; the verdict is the harness's own, but that any patch will do. A step is also
held against a checkpoint of it, where one can be taken, and against a second play. One JSON line for each command:
verdicts with their counts, how many different observations there were, seconds. Run it idle and
beside `stress`. Needs Docker.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker

from stepdown.builder.errors import Technical
from stepdown.builder.records import Instance, Response, ToolCall, Verdict, digest
from stepdown.harnesses.swebench.gradings import PatchGrading
from stepdown.harnesses.swebench.harness import SWEBench
from stepdown.harnesses.swebench.instances import select
from tests.swebench import repository
from tests.swebench.images import repository_image

COMMANDS = {path.stem: path for path in sorted((Path(repository.__file__).parent / "hostile").glob("*.sh"))}


class AnyPatch:
    """A grader that takes any patch."""

    def grade(self, instance: Instance, patch: bytes) -> PatchGrading:
        return PatchGrading(verdict=Verdict.PASS if patch.strip() else Verdict.FAIL)

    def verify(self, instance: Instance, patch: bytes, times: int = 0) -> PatchGrading:
        return self.grade(instance, patch)


class Impatient(SWEBench):
    """The harness with less time for a command, and that grader."""

    def __init__(self, seconds: int, **options: Any) -> None:
        super().__init__(**options)
        self._config = replace(self._config, command_seconds=seconds)

    def _judge(self) -> Any:
        return AnyPatch()


def bash(command: str) -> Response:
    return Response("I go on.", (ToolCall("bash", json.dumps({"command": command})),))


AFTER = tuple(bash(command) for _, command in repository.TRAJECTORY[3:])


def once(harness: SWEBench, instance: Instance, command: Response) -> tuple[str, str]:
    """What becomes of one trajectory that begins with the command: its verdict, and a digest of what the agent saw."""
    try:
        with harness.open(instance) as episode:
            going = episode.advance(command)
            checkpoint = episode.checkpoint() if going else None
            seen = episode.prefix().canonical
            if doomed := episode.doomed():
                return f"{doomed.verdict}: {doomed.reason}", seen
        with harness.open(instance, checkpoint) as episode:
            for response in (*(() if checkpoint else (command,)), *AFTER):
                if not episode.advance(response):
                    break
            ruling = episode.doomed() or episode.verdict()
            return f"{ruling.verdict}: {ruling.reason}", digest([seen, episode.prefix().canonical])
    except Technical as error:
        return f"{type(error).__name__}: {error.reason}", ""


def measured(harness: SWEBench, instance: Instance, name: str, times: int) -> Mapping[str, Any]:
    begun = time.monotonic()
    ends = [once(harness, instance, bash(f"bash hostile/{name}.sh")) for _ in range(times)]
    return {
        "command": name,
        "verdicts": Counter(verdict for verdict, _ in ends),
        "observations": len({seen for _, seen in ends}),
        "seconds_each": round((time.monotonic() - begun) / times, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(COMMANDS)}; all where none is given")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=10, help="what one command may take")
    arguments = parser.parse_args()
    files = {f"hostile/{name}.sh": path.read_text() for name, path in COMMANDS.items()}
    image = repository_image(docker.from_env(timeout=120), repository.FILES | files)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "instances.jsonl"
        source.write_text(json.dumps(repository.instance(image)) + "\n")
        [instance] = select({"file": str(source)})
        harness = Impatient(arguments.seconds, limits={"memory_mib": 512, "disk_mib": 2048})
        harness.keep_in(Path(folder) / "kept")
        for name in arguments.names or COMMANDS:
            print(json.dumps(measured(harness, instance, name, arguments.times)), flush=True)


if __name__ == "__main__":
    main()
