"""How quickly the pages of a deep run answer: many instances, and one whose answers are of megabytes.

    python -m benchmarks.view [--instances 10000] [--steps 10] [--answer-mb 2] [--requests 5]

One JSON line for each page: the milliseconds of its requests (median and worst), the processor time of one, that of the
client included, which a busy machine does not change, and the bytes that were sent. The run is written
into a ledger as a build would; every third step has a rejected trial of each of two models.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from stepdown.builder.config.loading import load_config
from stepdown.builder.records import (
    Call,
    Instance,
    Lock,
    Outcome,
    Prefix,
    Receipt,
    Response,
    Step,
    Trajectory,
    Trial,
    Usage,
    Verdict,
    digest,
)
from stepdown.builder.run.folder import open_for_work
from stepdown.builder.run.ledger import Ledger, Purpose, trial_entry
from stepdown.builder.run.reading import open_begun_ledger
from stepdown.builder.view.server import run_access, serve
from stepdown.builder.view.shown_run import ShownRun
from stepdown.harnesses.planted.setup import planted_config

STRONG, LOW = "3-0", ("0-0", "0-1")
LINE = "planed, sanded and oiled; nothing to report from the bench\n"
NEEDLE = "a needle"


def write_run(folder: Path, instances: int, steps: int, answer_bytes: int) -> None:
    """A finished run of so many instances; of the last one every answer has so many bytes."""
    file = folder.with_suffix(".json")
    file.write_text(json.dumps(planted_config({"instances": 1, "steps": 1})))
    with open_for_work(folder, load_config(file)) as opened:
        opened.ledger.admit(Instance("planted", f"task-{number}", {}) for number in range(1, instances + 1))
        for number in range(1, instances + 1):
            long = LINE * (answer_bytes // len(LINE)) if number == instances else ""
            _write_instance(opened.ledger, number, steps, long + (NEEDLE if number == instances else ""))


def _write_instance(ledger: Ledger, number: int, steps: int, said: str) -> None:
    trajectory = tuple(_steps(number, steps, STRONG, said))
    seed = _record(ledger, number, Purpose.SEED, Trial(0, 3, STRONG, None), trajectory, accepted=True)
    ledger.set_seed(number, seed)
    for step in range(1, steps + 1):
        if step % 3 == 0:
            for model in LOW:
                tried = (*trajectory[: step - 1], _step(trajectory[step - 1].prefix, model, f"{model} {step} {said}"))
                _record(ledger, number, Purpose.SEARCH, Trial(step, 0, model, steps), tried, accepted=False, base=seed)
    ledger.finish(number, seed, [Lock(3, STRONG)] * steps)


def _record(
    ledger: Ledger,
    number: int,
    purpose: Purpose,
    trial: Trial,
    trajectory: Trajectory,
    *,
    accepted: bool,
    base: int | None = None,
) -> int:
    verdict, reason = (Verdict.PASS, "") if accepted else (Verdict.FAIL, "a piece is spoilt")
    key = digest([number, trial.step, trial.model])
    receipt = Receipt([Call(key, trial.model, Usage(1000, 0, 0, 100), True)])
    outcome = Outcome(verdict, trajectory, reason)
    return ledger.record(trial_entry(number, purpose, trial, outcome, receipt, accepted=accepted, base=base))


def _steps(number: int, steps: int, model: str, said: str) -> Iterator[Step]:
    prefix = Prefix.start([{"role": "system", "content": f"Make every piece of task {number}."}])
    for step in range(1, steps + 1):
        prefix = prefix.extend([{"role": "user", "content": f"Piece {step} of task {number} is next. {LINE * 4}"}])
        made = _step(prefix, model, f"made {step} of {number}: {LINE} {said}")
        yield made
        prefix = prefix.respond(made.response)


def _step(prefix: Prefix, model: str, words: str) -> Step:
    return Step(prefix, Response(words), model)


def pages(instances: int, steps: int) -> dict[str, str]:
    """Addresses of every kind of page, by name."""
    last = f"id=planted/task-{instances}"
    trials = 1 + 2 * (steps // 3)
    first_of_last = trials * (instances - 1) + 1
    return {
        "instances": "",
        "instances, last page": f"?after={instances - 40}.0.0",
        "filter that all meet": "?verdict=fail&model=0-1",
        "filter that none meets": "?verdict=refused",
        "words that none has": "?q=nowhere+to+be+found",
        "timeline": "instance?id=planted/task-7",
        "timeline, long answers": f"instance?{last}",
        "timeline, long answers, search": f"instance?{last}&q=needle",
        "trial, long answer": f"trial?id={first_of_last + 1}",
        "two trials, long answers": f"compare?trial={first_of_last + 1}&trial={first_of_last + 2}",
        "prefix, long answers": f"prefix?trial={first_of_last}&step={steps}",
        "portion of a long answer": f"text?trial={first_of_last}&step=1&number=0&start=900000",
    }


def measured(client: httpx.Client, address: str, requests: int) -> dict[str, float]:
    """What a page takes, and its size."""
    took, size, worked = [], 0, time.process_time()
    for _ in range(requests):
        began = time.perf_counter()
        answer = client.get(address)
        took.append(1000 * (time.perf_counter() - began))
        answer.raise_for_status()
        size = len(answer.content)
    processor = 1000 * (time.process_time() - worked) / requests
    return {
        "processor_ms": round(processor, 1),
        "median_ms": round(statistics.median(took), 1),
        "worst_ms": round(max(took), 1),
        "bytes": size,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--answer-mb", type=float, default=2)
    parser.add_argument("--requests", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        write_run(run, given.instances, given.steps, int(given.answer_mb * 1_000_000))
        with open_begun_ledger(run) as ledger:
            shown = ShownRun(ledger, run)
            access = run_access(shown)
            failures: list[Exception] = []
            with serve(shown, access, failures.append) as server, httpx.Client(timeout=120) as client:
                client.get(access.link(server.port), follow_redirects=True)
                base = f"http://127.0.0.1:{server.port}{access.path}"
                for name, address in pages(given.instances, given.steps).items():
                    figures = measured(client, base + address, given.requests)
                    print(json.dumps({"page": name, **figures}), flush=True)


if __name__ == "__main__":
    main()
