"""How fast a release is scored, and in how much memory, whatever its size.

    python -m benchmarks.score                         a thousand, a hundred thousand and a million rows
    python -m benchmarks.score --rows 50000 [--steps 10] [--message-bytes 400]

One JSON line per case. A case's bank is made up and written to a temporary folder first; that is not measured. Prefixes
grow by an answer and an observation per step, as an agent's do, so a bank of a million rows takes some gigabytes.
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
from typing import Any

from benchmarks.planted import MIB, _forget_peak, _peak_bytes
from stepdown.scoring.bank import open_bank
from stepdown.scoring.predictions import Predictions
from stepdown.scoring.rates import read_rates
from stepdown.scoring.score import RESAMPLES, ScoreSettings, score
from stepdown.scoring.tokenizers import load_tokenizer

TIERS = ("low", "mid", "mid_high", "high")
SHARES = (71, 6, 5, 18)
CASES = (1_000, 100_000, 1_000_000)


def write_bank(folder: Path, rows: int, steps: int, message_bytes: int) -> None:
    """A bank of so many rows, and predictions of which four in five are the label."""
    stream, text = random.Random(7), "lorem ipsum dolor sit amet " * (message_bytes // 27 + 1)
    tiers = [{"name": name, "id": index} for index, name in enumerate(TIERS)]
    (folder / "manifest.json").write_text(json.dumps({"pool": {"version": "made up", "tiers": tiers}}))
    with (folder / "question_bank.jsonl").open("w") as bank, (folder / "predictions.jsonl").open("w") as predictions:
        for instance in range(rows // steps):
            messages = [{"role": "user", "content": f"task {instance}: {text[:message_bytes]}"}]
            for step in range(1, steps + 1):
                (label,) = stream.choices(range(len(TIERS)), SHARES)
                row = {
                    "id": f"made/i{instance}/{step}",
                    "benchmark": "made",
                    "instance_id": f"i{instance}",
                    "step_index": step,
                    "total_steps": steps,
                    "messages": messages,
                    "target_tier": TIERS[label],
                    "target_tier_id": label,
                    "group": f"g{instance % 500}",
                    "split": "test" if instance % 500 < 100 else "train",
                }
                bank.write(json.dumps(row) + "\n")
                predicted = label if stream.random() < 0.8 else stream.randrange(len(TIERS))
                predictions.write(json.dumps({"id": row["id"], "tier": TIERS[predicted]}) + "\n")
                messages = [
                    *messages,
                    {"role": "assistant", "content": f"{step}: {text[: message_bytes // 2]}"},
                    {"role": "user", "content": f"{step}: {text[:message_bytes]}"},
                ]


def measured(rows: int, steps: int, message_bytes: int) -> dict[str, Any]:
    """What scoring so many rows takes."""
    with tempfile.TemporaryDirectory(prefix="score-") as name:
        folder = Path(name)
        write_bank(folder, rows, steps, message_bytes)
        _forget_peak()
        began = time.perf_counter()
        bank = open_bank(folder)
        predictions = Predictions(folder / "predictions.jsonl", bank.tiers)
        settings = ScoreSettings(read_rates(TIERS), load_tokenizer())
        found = score(bank, predictions, settings, folder / "outcomes.jsonl")
        took = time.perf_counter() - began
        return {
            "rows": found.overall.rows,
            "bank_mib": round((folder / "question_bank.jsonl").stat().st_size / MIB),
            "resamples": RESAMPLES,
            "took_s": round(took, 2),
            "rows_per_s": round(rows / took),
            "peak_mib": round(_peak_bytes() / MIB),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--message-bytes", type=int, default=400)
    given = parser.parse_args()
    if given.rows is not None:
        print(json.dumps(measured(**vars(given))), flush=True)
        return
    if len(sys.argv) > 1:
        parser.error("a case needs --rows; without any argument all cases are run")
    for rows in CASES:
        # A process each, so that one case's memory is not another's.
        subprocess.run([sys.executable, "-m", "benchmarks.score", "--rows", str(rows)], check=True)


if __name__ == "__main__":
    main()
