"""What it takes to start the command, when little is asked of it.

    python -m benchmarks.startup [--times N]

One JSON line per command: processor seconds (user and system, of the fastest and the middle one of N runs), modules
loaded, and which heavy libraries are among them. `python` is the interpreter alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HEAVY = ("diskcache", "httpcore", "httpx", "litellm", "numpy", "pandas", "pydantic", "rich", "tenacity", "yaml")
LOADED = """
import json, sys
from stepdown.builder.cli.main import main
try:
    main({arguments!r})
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def processor_seconds(words: list[str]) -> float:
    """What one run of a program takes."""
    pid = os.posix_spawn(
        words[0], words, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    )
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(words)} failed")
    return usage.ru_utime + usage.ru_stime


def loaded_modules(arguments: Sequence[str]) -> list[str]:
    """The modules that the command has loaded when it ends."""
    code = LOADED.format(arguments=list(arguments))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stderr.splitlines()[-1])
    return found


def measure(name: str, words: list[str], times: int, modules: Sequence[str] = ()) -> None:
    seconds = [processor_seconds(words) for _ in range(times)]
    line = {
        "command": name,
        "fastest_s": round(min(seconds), 3),
        "median_s": round(statistics.median(seconds), 3),
        "modules": len(modules),
        "heavy": [library for library in HEAVY if library in modules],
    }
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=9)
    times = parser.parse_args().times
    measure("python", [sys.executable, "-c", ""], times)
    with tempfile.TemporaryDirectory() as folder:
        run = str(Path(folder) / "run")
        command = [sys.executable, "-m", "stepdown"]
        subprocess.run([*command, "build", "example", "--run", run], check=True, capture_output=True)
        for arguments in (["--help"], ["status", run], ["explain", run, "till/bill-1/2"], ["doctor"]):
            measure(arguments[0], [*command, *arguments], times, loaded_modules(arguments))


if __name__ == "__main__":
    main()
