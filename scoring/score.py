"""Scores a router's predictions in one pass over the rows (paper, static scoring)."""

from __future__ import annotations

import hashlib
import json
import math
from array import array
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepdown.builder.common.files import whole_text_file
from stepdown.builder.errors import BadInput
from stepdown.scoring.accounting import Prices, Steps
from stepdown.scoring.bank import Bank
from stepdown.scoring.baselines import FOLDS, BestFixed, Sums, best_fixed
from stepdown.scoring.bootstrap import bounds, whole_groups
from stepdown.scoring.outcomes import write_outcomes
from stepdown.scoring.predictions import BROKEN, MISSING, Predictions
from stepdown.scoring.rates import Rate
from stepdown.scoring.result import Metric, Score, ScorePart
from stepdown.scoring.steps import ScoredTrajectory, read_trajectories
from stepdown.scoring.tally import COLUMNS, METRICS, Batch, Outcomes, metrics, outcomes, random_sums, sums
from stepdown.scoring.tokenizers import Tokenizer

if TYPE_CHECKING:
    from numpy import float64, int64, uint64
    from numpy.typing import NDArray

BATCH_ROWS = 4096
"""Rows that are priced together."""
RESAMPLES = 1000
TRAIN, TEST = "train", "test"


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """What a score depends on beside rows and predictions."""

    rates: Sequence[Rate]
    tokens: Tokenizer
    split: str | None = None
    """Only rows of this split are scored. What a router has to beat on `test` is still chosen on `train`."""
    resamples: int = RESAMPLES
    """Of the bootstrap; 0: no intervals."""
    by_group: bool = False
    """Draw whole groups, not trajectories."""
    seed: int = 0


class _Tally:
    """Sums of each trajectory: a few numbers, which are all that stays in memory."""

    def __init__(self, bank: Bank, settings: ScoreSettings) -> None:
        import numpy as np

        self._settings, self._names = settings, [tier.name for tier in bank.tiers]
        self._count = len(bank.tiers)
        self.workloads: dict[str, int] = {}
        """Those that are scored, by their number among all."""
        self._numbers: dict[str, int] = {}
        self._scored: set[int] = set()
        """The parts that are scored; a fixed tier may have been tried on others too."""
        self._sums, self._workload, self._group = array("d"), array("q"), array("Q")
        self._confusion: dict[int, NDArray[int64]] = {}
        self.missing = self.broken = 0
        self._fixed = {f"always {name}": Sums() for name in self._names}
        self._random, self._draw = Sums(), Sums()
        self._stream = np.random.default_rng(settings.seed)
        self._splits: dict[str, int] = {}

    def add(self, found: Sequence[ScoredTrajectory], predicted: NDArray[int64]) -> tuple[Batch, Outcomes]:
        """Add whole trajectories and what was predicted for their steps."""
        import numpy as np

        labels = np.array([step.label for one in found for step in one.steps], dtype=np.int64)
        steps = Steps.of(found)
        batch = Batch.of(steps, labels, Prices(steps, self._settings.rates), self._count)
        came_to = outcomes(batch, predicted)
        by_trajectory = sums(batch, came_to)
        workloads = self._workloads_of(found)
        self.workloads |= {one.benchmark: self._numbers[one.benchmark] for one in found}
        groups = np.array([_group_key(one) for one in found], dtype=np.uint64)
        parts = self._parts_of(found, groups)
        self._sums.frombytes(by_trajectory.tobytes())
        self._workload.extend(workloads.tolist())
        self._group.extend(groups.tolist())
        self._count_errors(np.repeat(workloads, [len(one.steps) for one in found]), labels, predicted)
        self._scored |= set(parts.tolist())
        self._add_fixed(batch, parts, workloads)
        self._random.add(parts, workloads, random_sums(batch))
        drawn = self._stream.integers(0, self._count, len(labels))
        self._draw.add(parts, workloads, sums(batch, outcomes(batch, drawn)))
        return batch, came_to

    def learn(self, found: Sequence[ScoredTrajectory]) -> None:
        """Add trajectories that are not scored, on which a fixed tier may be chosen."""
        import numpy as np

        labels = np.array([step.label for one in found for step in one.steps], dtype=np.int64)
        steps = Steps.of(found)
        batch = Batch.of(steps, labels, Prices(steps, self._settings.rates), self._count)
        groups = np.array([_group_key(one) for one in found], dtype=np.uint64)
        self._add_fixed(batch, self._parts_of(found, groups), self._workloads_of(found))

    def _workloads_of(self, found: Sequence[ScoredTrajectory]) -> NDArray[int64]:
        import numpy as np

        return np.array([self._numbers.setdefault(one.benchmark, len(self._numbers)) for one in found])

    def _parts_of(self, found: Sequence[ScoredTrajectory], groups: NDArray[uint64]) -> NDArray[int64]:
        """The part of each trajectory: its split, and the fold that its group is in."""
        import numpy as np

        splits = np.array([self._splits.setdefault(one.split, len(self._splits)) for one in found])
        return splits * FOLDS + (groups % np.uint64(FOLDS)).astype(np.int64)

    def _add_fixed(self, batch: Batch, parts: NDArray[int64], workloads: NDArray[int64]) -> None:
        import numpy as np

        for tier, baseline in enumerate(self._fixed.values()):
            baseline.add(parts, workloads, sums(batch, outcomes(batch, np.full_like(batch.labels, tier))))

    def _count_errors(self, workloads: NDArray[int64], labels: NDArray[int64], predicted: NDArray[int64]) -> None:
        import numpy as np

        self.missing += int((predicted == MISSING).sum())
        self.broken += int((predicted == BROKEN).sum())
        columns = np.where(predicted >= 0, predicted, self._count)
        for workload in np.unique(workloads):
            here = workloads == workload
            counts = self._confusion.setdefault(int(workload), np.zeros((self._count, self._count + 1), dtype=np.int64))
            np.add.at(counts, (labels[here], columns[here]), 1)

    def score(self) -> Score:
        import numpy as np

        table = np.frombuffer(self._sums, dtype=np.float64).reshape(-1, len(COLUMNS))
        owner, groups = np.frombuffer(self._workload, dtype=np.int64), np.frombuffer(self._group, dtype=np.uint64)
        mine = {name: owner == index for name, index in self.workloads.items()}
        units = {
            name: whole_groups(table[here], groups[here]) if self._settings.by_group else table[here]
            for name, here in mine.items()
        }
        each, overall = metrics(np.stack([found.sum(axis=0) for found in units.values()]))
        edges = bounds(units, self._settings.resamples, self._settings.seed) if self._settings.resamples else None
        failed = table[:, COLUMNS.index("trajectory_rows")] == 0
        parts = tuple(
            ScorePart(
                name,
                int(table[here, 0].sum()),
                int(here.sum()),
                len(units[name]),
                int(failed[here].sum()),
                _metrics(each[place], edges.workloads[name] if edges else None),
                _table(self._confusion[index]),
            )
            for place, ((name, index), here) in enumerate(zip(self.workloads.items(), mine.values(), strict=True))
        )
        whole = ScorePart(
            "all",
            int(table[:, 0].sum()),
            len(table),
            sum(map(len, units.values())),
            int(failed.sum()),
            _metrics(overall, edges.overall if edges else None),
            _table(sum(self._confusion.values())),
        )
        tiers = tuple(self._names)
        ordered = tuple(sorted(parts, key=lambda part: part.name))
        best = tuple(self._best_fixed())
        return Score(tiers, self.missing, self.broken, whole, ordered, self._baselines(), best, units)

    def _baselines(self) -> dict[str, dict[str, float | None]]:
        every = {**self._fixed, "random, expected": self._random, "random, one draw": self._draw}
        found = {}
        for name, baseline in every.items():
            overall = metrics(baseline.of(sorted(self._scored), len(self._numbers)))[1]
            found[name] = {metric: _number(value) for metric, value in zip(METRICS, overall, strict=True)}
        return found

    def _best_fixed(self) -> Iterator[BestFixed]:
        """By folds of the groups that are scored; and on train for test, where rows name both."""
        fixed = dict(zip(self._names, self._fixed.values(), strict=True))
        scored, every = sorted(self._scored), next(iter(fixed.values())).parts()
        folds = [
            ([part for part in scored if part % FOLDS == fold], [part for part in scored if part % FOLDS != fold])
            for fold in range(FOLDS)
        ]
        crossed = best_fixed(f"{FOLDS} folds", fixed, folds, len(self._numbers))
        if crossed is not None and len(crossed.folds) > 1:
            yield crossed
        if {TRAIN, TEST} <= self._splits.keys():
            train, test = ([part for part in every if part // FOLDS == self._splits[name]] for name in (TRAIN, TEST))
            declared = best_fixed("train to test", fixed, [(test, train)], len(self._numbers))
            if declared is not None:
                yield declared


def _group_key(one: ScoredTrajectory) -> int:
    text = json.dumps([one.benchmark, one.group]).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def _table(counts: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(int, row)) for row in counts)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _metrics(values: NDArray[float64], edges: NDArray[float64] | None) -> dict[str, Metric]:
    return {
        name: Metric(
            _number(values[place]),
            *(() if edges is None or math.isnan(values[place]) else map(_number, edges[place])),
        )
        for place, name in enumerate(METRICS)
    }


def score(bank: Bank, predictions: Predictions, settings: ScoreSettings, outcomes_file: Path | None = None) -> Score:
    """Score predictions against a bank's labels; per-row outcomes go to a JSONL file where one is named.

    Raises BadInput: what `trajectories` raises, a prediction for no row, nothing to score.
    """
    tally = _Tally(bank, settings)
    with whole_text_file(outcomes_file) if outcomes_file else nullcontext() as file:
        for found in _batches(read_trajectories(bank, settings.tokens)):
            predicted = predictions.of([step.id for one in found for step in one.steps])
            kept = [settings.split is None or one.split == settings.split for one in found]
            wanted = [one for one, keep in zip(found, kept, strict=True) if keep]
            if settings.split == TEST and (training := [one for one in found if one.split == TRAIN]):
                tally.learn(training)
            if not wanted:
                continue
            here = [keep for one, keep in zip(found, kept, strict=True) for _ in one.steps]
            batch, came_to = tally.add(wanted, predicted[here])
            if file is not None:
                write_outcomes(file, wanted, predicted[here], batch, came_to, [tier.name for tier in bank.tiers])
        predictions.refuse_unknown()
        if not tally.workloads:
            problem = f"no row is of the split {settings.split!r}" if settings.split else "there are no rows to score"
            raise BadInput(problem, file=bank.rows)
    return tally.score()


def _batches(found: Iterator[ScoredTrajectory]) -> Iterator[list[ScoredTrajectory]]:
    batch: list[ScoredTrajectory] = []
    rows = 0
    for one in found:
        batch.append(one)
        rows += len(one.steps)
        if rows >= BATCH_ROWS:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch
