"""How fast a release is published and verified, and in how much memory, at a thousand rows and at a million.

    python -m benchmarks.release [--rows 1000 1000000] [--steps 10]

One JSON line per size and command: rows per second, the same per second of processor time (for a machine that has other
work, too), and the process's peak memory. Each command has a process of its own, over a made-up run of `rows` rows,
`steps` to an instance, whose files are written first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from benchmarks.planted import MIB
from stepdown.builder.config.pool import Pool
from stepdown.builder.records import digest

TIERS = ("low", "mid", "mid_high", "high")
FORMS = {
    "type": "function",
    "function": {
        "name": "file_form",
        "description": "Files a form of a case.",
        "parameters": {"type": "object", "properties": {"case": {"type": "integer"}, "form": {"type": "integer"}}},
    },
}
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "publish": ("publish", "RUN", "--out", "RELEASE"),
    "verify": ("verify", "RELEASE"),
}
"""What is measured, in this order."""


def write_run(folder: Path, rows: int, steps: int) -> None:
    """The files that a finished run of a made-up workload would leave."""
    folder.mkdir()
    drawn, labels = random.Random(7), Counter[str]()
    with (folder / "question_bank.jsonl").open("wb") as bank, (folder / "evidence.jsonl").open("wb") as proofs:
        files = _Hashed(bank), _Hashed(proofs)
        for number in range(max(1, rows // steps)):
            for row, proof in _instance(number, steps, drawn):
                labels[row["target_tier"]] += 1
                files[0].write(row)
                files[1].write(proof)
    (folder / "audit_queue.jsonl").write_bytes(b"")
    manifest = _manifest(labels, max(1, rows // steps))
    manifest["files"] = {
        "question_bank.jsonl": files[0].said(),
        "evidence.jsonl": files[1].said(),
        "audit_queue.jsonl": {"sha256": hashlib.sha256().hexdigest(), "lines": 0, "bytes": 0},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))


class _Hashed:
    """JSON lines written and counted."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._sha256, self._lines, self._bytes = file, hashlib.sha256(), 0, 0

    def write(self, record: Mapping[str, Any]) -> None:
        data = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        self._file.write(data)
        self._sha256.update(data)
        self._lines += 1
        self._bytes += len(data)

    def said(self) -> dict[str, Any]:
        return {"sha256": self._sha256.hexdigest(), "lines": self._lines, "bytes": self._bytes}


def _instance(number: int, steps: int, drawn: random.Random) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You work in a made-up office and use its tools one call at a time."},
        {
            "role": "user",
            "content": f"Task {number}: file the {steps} forms of case {number}, then say that it is done.",
        },
    ]
    for step, tier in enumerate(drawn.choices(range(len(TIERS)), [71, 6, 5, 18], k=steps), 1):
        name = f"office/case-{number}/{step}"
        row = {
            "id": name,
            "benchmark": "office",
            "instance_id": f"case-{number}",
            "step_index": step,
            "total_steps": steps,
            "messages": list(messages),
            "target_tier": TIERS[tier],
            "target_tier_id": tier,
            "tools": [FORMS],
        }
        tried = min(tier, len(TIERS) - 2)
        trial = {"tier": TIERS[tried], "model": f"m{tried}-alpha", "accepted": tier == tried, "verdict": "fail"}
        if tier == tried:
            trial["verdict"] = "pass"
        proof = {
            "id": name,
            "group": f"office-{number % 997}",
            "basis": "executed",
            "lock": {"tier": TIERS[tier], "model": f"m{tier}-alpha"},
            "trials": [trial],
        }
        yield row, proof
        call = {"name": "file_form", "arguments": json.dumps({"case": number, "form": step})}
        asked = {"id": f"call_{step}", "type": "function", "function": call}
        messages += [
            {"role": "assistant", "content": f"Form {step} comes next.", "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": f"call_{step}", "content": f"Form {step} of case {number} is filed."},
        ]


def _manifest(labels: Counter[str], instances: int) -> dict[str, Any]:
    tiers = [
        {"name": name, "id": number, "models": [{"name": f"m{number}-alpha", "model": f"openai/m{number}-alpha"}]}
        for number, name in enumerate(TIERS)
    ]
    pool = Pool(version="office-1", tiers=tiers).model_dump(mode="json")
    protocol = {"pool": pool, "workloads": [{"harness": "office:Office", "seeds": {"file": None}}], "rules": {}}
    return {
        "pool": {
            "version": "office-1",
            "digest": digest(pool),
            "tiers": [{**tier, "models": [f"m{tier['id']}-alpha"]} for tier in tiers],
        },
        "workloads": [{"benchmark": "office", "version": "1"}],
        "protocol": protocol,
        "protocol_digest": digest(protocol),
        "seeds": {"models": {"office": {"m3-alpha": instances}}, "note": None},
        "rows": labels.total(),
        "instances": {"office": instances},
        "labels": {"office": dict(labels)},
        "dropped": {},
        "blocked": {},
        "unfinished": 0,
        "needed": {"calls": {}, "list_price_usd": 0.0},
    }


_MEASURED = """
import os, sys
from pathlib import Path
from stepdown.builder.cli.main import main
try:
    main(sys.argv[1:], standalone_mode=False)
finally:
    status = Path("/proc/self/status").read_text()
    print(int(status.split("VmHWM:")[1].split()[0]) * 1024, sum(os.times()[:2]))
"""


def measured(command: str, places: Mapping[str, str], rows: int) -> dict[str, Any]:
    """Run a command of stepdown, and what it came to."""
    arguments = [places.get(part, part) for part in COMMANDS[command]]
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", _MEASURED, *arguments], check=True, capture_output=True, text=True)
    took = time.perf_counter() - began
    peak, cpu = done.stdout.split()[-2:]
    return {
        "rows": rows,
        "command": command,
        "rows_per_s": round(rows / took),
        "rows_per_cpu_s": round(rows / float(cpu)),
        "peak_mib": round(int(peak) / MIB, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 1_000_000])
    parser.add_argument("--steps", type=int, default=10)
    given = parser.parse_args()
    for rows in given.rows:
        with tempfile.TemporaryDirectory(prefix="release-") as name:
            folder = Path(name)
            write_run(folder / "run", rows, given.steps)
            places = {"RUN": str(folder / "run"), "RELEASE": str(folder / "release")}
            for command in COMMANDS:
                print(json.dumps(measured(command, places, rows)), flush=True)


if __name__ == "__main__":
    main()
