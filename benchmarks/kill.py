"""Kills runs at random moments, resumes them, and compares them with one that nothing disturbed.

    python -m benchmarks.kill [--times 200] [--seed 0]

Each run is killed (SIGKILL) until so many kills have been made, about five a run, then finished. One JSON line at the
end: `kills, runs, differing_files, lost_calls`, the last being calls that a run paid and does not know of. Exit code 1
where a byte differs or a call is lost. It stops by itself.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stepdown.builder.artifacts.names import EVIDENCE, MANIFEST, QUEUE, ROWS, SPEND
from stepdown.harnesses.planted.setup import planted_config

WORKERS = 4
SOURCE = {"instances": 12, "steps": 6, "seed": 7, "weights": [71, 6, 5, 18]}
KILLS_A_RUN = 5
COMPARED = (ROWS, EVIDENCE, QUEUE, MANIFEST)


def finish(config: Path, run: Path) -> None:
    subprocess.run(command(config, run), check=True, capture_output=True)


def command(config: Path, run: Path) -> list[str]:
    return [sys.executable, "-m", "stepdown", "build", str(config), "--run", str(run)]


def kill_once(config: Path, run: Path, seconds: float) -> bool:
    """Start the build and kill it after so long; whether it was still at work."""
    process = subprocess.Popen(command(config, run), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    return False


def spent(run: Path) -> int:
    """Calls that a finished run says it paid."""
    return int(json.loads((run / SPEND).read_text())["calls"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=200, help="kills in all")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    kills = runs = differing = lost = 0
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        config = home / "config.yaml"
        operation = {"workers": WORKERS}
        config.write_text(json.dumps(planted_config(SOURCE, {"latency": 0.004}, operation=operation)))
        started = time.monotonic()
        finish(config, home / "whole")
        length = time.monotonic() - started
        whole = {name: (home / "whole" / name).read_bytes() for name in COMPARED}
        while kills < arguments.times:
            run = home / f"run-{runs}"
            for _ in range(KILLS_A_RUN):
                kills += kill_once(config, run, draw.uniform(0.1, length))
            finish(config, run)
            runs += 1
            differing += sum((run / name).read_bytes() != data for name, data in whole.items())
            lost += spent(home / "whole") - spent(run)
            print(f"{kills}/{arguments.times} kills, {differing} files differ", file=sys.stderr)
    print(json.dumps({"kills": kills, "runs": runs, "differing_files": differing, "lost_calls": lost}))
    sys.exit(1 if differing or lost else 0)


if __name__ == "__main__":
    main()
