"""Labelled rows as examples: what a policy would have seen, the label, and the group that is held out whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stepdown.builder.artifacts.rows import Row, read_rows
from stepdown.builder.common.reading import read_json_lines
from stepdown.builder.errors import BadInput
from stepdown.releases.layout import TEST, TRAIN, Holdout
from stepdown.releases.splits import split_of
from stepdown.routing.policies.contract import View
from stepdown.scoring.bank import Bank

CALIBRATION_SHARE = 0.2
"""Of the training groups; their rows calibrate probabilities and fit nothing else."""
RUN_HOLDOUT = Holdout(share=0.2, seed=0)
"""Which groups of a run, whose rows name no split, are left for scoring: those that `publish` leaves by default."""


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled step, as it looked before it was made."""

    view: View
    label: int
    """Index of the tier."""
    group: str
    """`benchmark/group`."""
    row_id: str


@dataclass(frozen=True, slots=True)
class Examples:
    """Rows to make a policy from, their groups in two parts that share none."""

    fitting: tuple[Example, ...]
    calibration: tuple[Example, ...]
    held_out_rows: int
    by_hash: bool
    """Whether the rows named no split, and groups were held out by their hash."""


def read_examples(bank: Bank) -> Examples:
    """The rows of the `train` groups of a release, or of a run's groups that `publish` would put there.

    Raises BadInput: a group that stands in both splits, or no row to train on.
    """
    tiers = {tier.name: index for index, tier in enumerate(bank.tiers)}
    names = tuple(tiers)
    fitting: list[Example] = []
    calibration: list[Example] = []
    held_out, by_hash = 0, False
    splits: dict[str, str] = {}
    for number, row, group in grouped_rows(bank):
        if row.target_tier not in tiers:
            problem = f"the manifest names no tier {row.target_tier!r}"
            raise BadInput(problem, file=bank.rows, line=number, field="target_tier")
        key = f"{row.benchmark}/{group}"
        split = row.split or split_of(row.benchmark, group, RUN_HOLDOUT)
        by_hash |= not row.split
        if splits.setdefault(key, split) != split:
            raise BadInput(f"group {key!r} stands in both splits", file=bank.rows, line=number, field="split")
        if split != TRAIN:
            held_out += split == TEST
            continue
        example = Example(view_of(row, names), tiers[row.target_tier], key, row.id)
        (calibration if _calibrates(key) else fitting).append(example)
    if not fitting:  # so few groups that the lot has put all of them aside
        fitting, calibration = calibration, []
    if not fitting:
        raise BadInput("has no row in a training group", file=bank.rows)
    return Examples(tuple(fitting), tuple(calibration), held_out, by_hash)


def view_of(row: Row, tiers: Sequence[str]) -> View:
    """What a policy would have seen before the step of a labelled row."""
    return View(row.messages, row.tools or (), row.step_index, tiers, instance=f"{row.benchmark}/{row.instance_id}")


def grouped_rows(bank: Bank) -> Iterator[tuple[int, Row, str]]:
    """Rows with their group: their own, else what the run's evidence says, else the instance alone."""
    groups = _groups_of_evidence(bank.rows.parent / "evidence.jsonl")
    for number, row in read_rows(bank.rows):
        yield number, row, row.group or groups.get(row.id) or row.instance_id


def _groups_of_evidence(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    found = {}
    for _, data in read_json_lines(path):
        if isinstance(data, dict) and isinstance(data.get("id"), str) and isinstance(data.get("group"), str):
            found[data["id"]] = data["group"]
    return found


def _calibrates(group: str) -> bool:
    drawn = hashlib.sha256(f"calibration\0{group}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(drawn[:8], "big") < CALIBRATION_SHARE * 2**64
