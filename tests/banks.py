"""Small banks of labelled rows, written as a release or a run has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TIERS = ("low", "mid", "mid_high", "high")


@dataclass(frozen=True)
class Life:
    """One instance: the labels of its steps, what each answered, and what is to be seen before the first."""

    labels: Sequence[int]
    instance_id: str = "i"
    benchmark: str = "work"
    group: str | None = None
    split: str | None = None
    answers: Sequence[Mapping[str, Any]] = ()
    """Of every step but the last."""
    start: Sequence[Mapping[str, Any]] = ({"role": "user", "content": "begin"},)
    tools: Sequence[Mapping[str, Any]] = ()
    changes: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """Fields of rows that shall be others, by step."""

    def rows(self) -> Iterable[dict[str, Any]]:
        messages = list(self.start)
        for step, label in enumerate(self.labels, 1):
            row = {
                "id": f"{self.benchmark}/{self.instance_id}/{step}",
                "benchmark": self.benchmark,
                "instance_id": self.instance_id,
                "step_index": step,
                "total_steps": len(self.labels),
                "messages": list(messages),
                "target_tier": TIERS[label],
                "target_tier_id": label,
            }
            optional = {"group": self.group, "split": self.split, "tools": list(self.tools)}
            row |= {name: value for name, value in optional.items() if value}
            yield {**row, **self.changes.get(step, {})}
            answer = self.answers[step - 1] if step <= len(self.answers) else {"content": f"answer {step}"}
            messages += [{"role": "assistant", **answer}, {"role": "user", "content": f"go on {step}"}]


def write_bank(folder: Path, lives: Iterable[Life], manifest: Mapping[str, Any] | None = None) -> Path:
    """The lives as `question_bank.jsonl`, and a manifest that names the tiers as a run's does."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "question_bank.jsonl").open("w") as file:
        for life in lives:
            for row in life.rows():
                file.write(json.dumps(row) + "\n")
    tiers = [{"name": name, "id": index, "models": [f"model-{index}"]} for index, name in enumerate(TIERS)]
    (folder / "manifest.json").write_text(json.dumps({"pool": {"version": "p", "tiers": tiers}, **(manifest or {})}))
    return folder


def write_predictions(path: Path, tiers: Mapping[str, Any]) -> Path:
    path.write_text("".join(json.dumps({"id": name, "tier": tier}) + "\n" for name, tier in tiers.items()))
    return path


def ids(folder: Path) -> dict[str, int]:
    """Every row's id and the id of its label."""
    lines = (folder / "question_bank.jsonl").read_text().splitlines()
    return {row["id"]: row["target_tier_id"] for row in map(json.loads, lines)}
