"""What drawing an audit sample costs: seconds and memory of `stepdown audit sample` on a run of many labelled steps.

    python -m benchmarks.audit [--steps 1000000] [--rate 0.1] [--minimum 0]

One JSON line. The run is made up: its ledger holds finished planted instances of ten steps each with random labels, and
nothing else of them, since a sample is drawn from the ledger's instances alone. What is measured is the command in a
process of its own, its start included.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stepdown.builder.config.loading import load_config
from stepdown.builder.records import Instance
from stepdown.builder.run.folder import open_for_work
from stepdown.builder.run.ledger.database import FILE_NAME
from stepdown.harnesses.planted.setup import planted_config

STEPS_EACH = 10
WEIGHTS = (71, 6, 5, 18)


def made_up(folder: Path, steps: int) -> None:
    """A run's folder with so many labelled steps."""
    config = folder.with_suffix(".yaml")
    source = {"instances": steps // STEPS_EACH, "steps": STEPS_EACH}
    config.write_text(json.dumps(planted_config(source, {})))
    with open_for_work(folder, load_config(config)) as run:
        run.ledger.admit(Instance("planted", f"instance-{n}", {}) for n in range(steps // STEPS_EACH))
    draw = random.Random(7)
    db = sqlite3.connect(folder / FILE_NAME)
    with db:
        db.executemany(
            "UPDATE instances SET state = 'done', locks = ? WHERE id = ?",
            (
                (json.dumps([[tier, f"{tier}-0"] for tier in draw.choices(range(4), WEIGHTS, k=STEPS_EACH)]), number)
                for (number,) in db.execute("SELECT id FROM instances").fetchall()
            ),
        )
    db.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--minimum", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"
        made_up(run, options.steps)
        command = [sys.executable, "-m", "stepdown", "audit", "sample", str(run), "--rate", str(options.rate)]
        began = time.monotonic()
        subprocess.run([*command, "--minimum", str(options.minimum)], check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        with sqlite3.connect(run / "audit.sqlite") as db:
            (sampled,) = db.execute("SELECT count(*) FROM steps").fetchone()
    print(
        json.dumps(
            {
                "steps": options.steps,
                "rate": options.rate,
                "minimum": options.minimum,
                "sampled": sampled,
                "seconds": round(seconds, 2),
                "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
                "peak_mib": round(used.ru_maxrss / 1024, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
