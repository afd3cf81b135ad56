"""What the engine costs and how fast it is, on planted instances: calls per label, labels per second, memory, files.

    python -m benchmarks.planted                                        all cases
    python -m benchmarks.planted --instances 200 --steps 10 [--early-verdicts] [--workers W] [--latency S]

One JSON line per case. Seeds are given. `resume_s` is the whole command on the finished run. `cpu_us_per_call` is the
processor time of the build by its calls, which tells more than seconds on a machine with other work.
`bare_cache_labels_per_s` is what the response cache alone sustains at this number of calls: entries like the run's,
each looked up, then stored, by one thread. With latency, `of_bound` compares the time taken with what no schedule can
beat: all calls spread evenly over the workers, or the longest instance alone.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stepdown.builder.artifacts.writing import write_artifacts
from stepdown.builder.cache.question import Question
from stepdown.builder.cache.responses import Cache
from stepdown.builder.cache.store import DiskStore
from stepdown.builder.config.loading import Config, load_config
from stepdown.builder.config.pool import Model
from stepdown.builder.engine.build import Build
from stepdown.builder.records import Sample
from stepdown.builder.run.folder import open_for_work
from stepdown.harnesses.planted import Planted
from stepdown.harnesses.planted.setup import planted_config, planted_seeds

MIB = 1 << 20
MOST_BARE_ENTRIES = 150_000
"""Entries that the bare cache is measured with, where a run makes more calls: each further one is a little slower."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run to measure."""

    instances: int
    steps: int
    early_verdicts: bool = False
    workers: int = 1
    latency: float = 0.0

    def arguments(self) -> Iterator[str]:
        """The command line that names this case."""
        for name, value in asdict(self).items():
            option = f"--{name.replace('_', '-')}"
            if value is True:
                yield option
            elif value is not False:
                yield from (option, str(value))

    def config(self, folder: Path) -> Config:
        """The run's config. It and the seeds, which are given, are written into a folder."""
        options = {"early_verdicts": self.early_verdicts, "latency": self.latency}
        source = {"instances": self.instances, "steps": self.steps}
        seeds, file = folder / "seeds.jsonl", folder / "config.yaml"
        seeds.write_text("".join(json.dumps(line) + "\n" for line in planted_seeds(source)))
        file.write_text(json.dumps(planted_config(source, options, operation={"workers": self.workers}, seeds=seeds)))
        return load_config(file)


CASES = (
    # The planted corpus of the design.
    *(Case(*size, early_verdicts=early) for size in ((200, 10), (400, 10), (100, 30)) for early in (False, True)),
    # Ten times the instances: memory stays, time and files grow with what is paid for.
    Case(2000, 10),
    # Steps, at one number of labels.
    *(Case(600 // steps, steps) for steps in (5, 10, 20, 40)),
    # Workers: of a harness that computes, then of models that make one wait.
    *(Case(100, 10, workers=workers) for workers in (1, 2, 8)),
    *(Case(100, 5, workers=workers, latency=0.02) for workers in (1, 8, 64)),
    Case(1000, 5, workers=64, latency=0.5),
)


def measured(case: Case, folder: Path) -> dict[str, Any]:
    """Build the case's run in a folder, and what that came to."""
    run, config = folder / "run", case.config(folder)
    _forget_peak()
    began, began_cpu = time.perf_counter(), time.process_time()
    with open_for_work(run, config) as opened:
        work = Build(opened, threading.Event())
        work.admit()
        work.execute()
        labels = write_artifacts(opened, work.multi_step).rows
        made = work.progress.calls
    took, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    peak = _peak_bytes()
    bare = _bare_cache_calls_per_s(folder / "bare", min(made, MOST_BARE_ENTRIES))
    trials, longest = from_ledger(run)
    figures = {
        **asdict(case),
        "labels": labels,
        "trials": trials,
        "model_calls": made,
        "calls_per_label": round(made / labels, 2),
        "labels_per_s": round(labels / took, 1),
        "cpu_us_per_call": round(1e6 * cpu / made, 1),
        "peak_mib": round(peak / MIB, 1),
        "files_mib": round(sum(f.stat().st_size for f in run.rglob("*") if f.is_file()) / MIB, 1),
        "resume_s": round(_resume_seconds(run), 2),
        "bare_cache_labels_per_s": round(bare * labels / made, 1),
    }
    if case.latency:
        bound = max(made / case.workers, longest) * case.latency
        figures |= {"took_s": round(took, 2), "bound_s": round(bound, 2), "of_bound": round(bound / took, 3)}
    return figures


def _forget_peak() -> None:
    """Begin to measure the process's highest resident size anew."""
    Path("/proc/self/clear_refs").write_text("5")


def _peak_bytes() -> int:
    """The process's highest resident size. Not getrusage's, which a process inherits from the one that began it."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def from_ledger(run: Path) -> tuple[int, int]:
    """Search trials, and the calls of the instance with most of them."""
    db = sqlite3.connect(run / "ledger.sqlite")
    try:
        (trials,) = db.execute("SELECT count(*) FROM trials WHERE purpose = 'search'").fetchone()
        (longest,) = db.execute("SELECT max(n) FROM (SELECT count(*) n FROM calls GROUP BY instance)").fetchone()
    finally:
        db.close()
    return trials, longest


def _resume_seconds(run: Path) -> float:
    """How long the command takes on the finished run, from its start to its end."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "stepdown", "resume", str(run)], check=True, capture_output=True)
    return time.perf_counter() - began


def _bare_cache_calls_per_s(folder: Path, entries: int) -> float:
    """Look-up and store of questions like those of a run, by the response cache alone."""
    cache = Cache(DiskStore(folder), run="0" * 32)
    harness = Planted()
    instance = next(harness.instances({"instances": 1, "steps": 10}))
    model = Model(name="0-0", model="workload/0-0")
    with harness.open(instance) as episode:
        prefix = episode.prefix()
    response = harness.answer("0-0", instance, prefix, Sample())
    assert response is not None
    began = time.perf_counter()
    for step in range(entries):
        question = Question(harness.name, harness.version, instance.id, step, model, prefix, Sample())
        if cache.get(question) is None:
            cache.put(question, response)
    took = time.perf_counter() - began
    cache.close()
    return entries / took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--early-verdicts", action="store_true")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds that a call takes")
    given = parser.parse_args()
    if given.instances is not None:
        with tempfile.TemporaryDirectory(prefix="planted-") as folder:
            print(json.dumps(measured(Case(**vars(given)), Path(folder))), flush=True)
        return
    if len(sys.argv) > 1:
        parser.error("a case needs --instances; without any argument all cases are run")
    for number, case in enumerate(CASES, 1):
        print(f"{number}/{len(CASES)}: {case}", file=sys.stderr, flush=True)
        # A process each, so that one case's memory is not another's.
        subprocess.run([sys.executable, "-m", "benchmarks.planted", *case.arguments()], check=True)


if __name__ == "__main__":
    main()
