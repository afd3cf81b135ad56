"""Banks in which a step's label follows a rule that a prefix shows, or none at all."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.banks import Life, write_bank

TASKS = ("add a column", "rename the table", "write the letter", "sum the bill", "sort the mail", "plan the trip")
TEXTS = {3: "prove the theorem about graphs", 1: "error: no such file", 0: "copy the line"}
"""What is asked for, by the tier that it takes."""


def ruled_bank(folder: Path, groups: int = 30, steps: int = 6, seed: int = 3) -> Path:
    """The strong tier where the latest text asks for a proof, the second where a command has failed, else the
    cheapest."""
    stream, lives = random.Random(seed), []
    for group in range(groups):
        kinds = stream.choices((3, 1, 0), [1, 1, 2], k=steps)
        texts = [f"{stream.choice(TASKS)} {group}: {TEXTS[kind]}" for kind in kinds]
        lives.append(_life(group, kinds, texts))
    return write_bank(folder, lives)


def ruleless_bank(folder: Path, groups: int = 30, steps: int = 6, seed: int = 4) -> Path:
    """Labels by lot: nothing in a prefix says anything of them."""
    stream, lives = random.Random(seed), []
    for group in range(groups):
        labels = stream.choices(range(4), [5, 1, 1, 3], k=steps)
        lives.append(_life(group, labels, [f"{stream.choice(TASKS)} {stream.randrange(1000)}" for _ in labels]))
    return write_bank(folder, lives)


def _life(group: int, labels: Sequence[int], texts: Sequence[str]) -> Life:
    """An instance whose steps are each asked for by a text of their own; every fourth group is held out."""
    messages: list[dict[str, Any]] = []
    changes = {}
    for step, text in enumerate(texts, 1):
        messages = [*messages, {"role": "user", "content": text}]
        changes[step] = {"messages": messages}
        messages = [*messages, {"role": "assistant", "content": f"done {step}"}]
    split = "train" if group % 4 else "test"
    return Life(labels, f"task-{group}", group=f"g{group}", split=split, changes=changes)
