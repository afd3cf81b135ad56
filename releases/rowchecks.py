"""The gates that a row passes, and an instance as a whole: used by `publish` as it writes and by `verify` as it reads.

Rows of an instance stand together, from step 1 to the last, so they are checked in one pass. Which instances and groups
there were is remembered on disk: memory does not grow with the rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType

from stepdown.builder.artifacts.rows import Row
from stepdown.builder.common.text import is_id
from stepdown.releases.distinct import Distinct
from stepdown.releases.layout import ROWS, SPLITS, TEST, TRAIN, Holdout
from stepdown.releases.messages import Prefixes
from stepdown.releases.problems import Problems
from stepdown.releases.splits import split_of
from stepdown.releases.texts import Watch

MOST_BENCHMARKS = 1000


@dataclass(slots=True)
class Counts:
    """What the rows came to."""

    labels: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Rows by benchmark and tier name."""
    instances: Counter[str] = field(default_factory=Counter)
    rows_of: Counter[str] = field(default_factory=Counter)
    """Rows by split; so the next two."""
    instances_of: Counter[str] = field(default_factory=Counter)
    groups_of: Counter[str] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)
    """Rows by the name of a pool model that they hold."""

    @property
    def rows(self) -> int:
        return self.rows_of.total()


class RowChecks:
    """One pass over rows in their order. A context manager: what it remembers lies on disk meanwhile."""

    def __init__(
        self, tiers: Mapping[str, int], holdout: Holdout, watch: Watch, problems: Problems, ordered: bool = True
    ) -> None:
        """`tiers` are ids by name; `ordered`: whether all of train must come before all of test."""
        self._tiers, self._holdout, self._watch = tiers, holdout, watch
        self._problems, self._ordered = problems, ordered
        self._file = ROWS
        self._prefixes = Prefixes(watch)
        self._instances, self._groups = Distinct(), Distinct()
        self._before: Row | None = None
        self._line = self._line_before = 0
        self._tested = False
        self._field_names: frozenset[str] = frozenset()
        """Names of pool models in the fields of this instance's rows."""
        self.counts = Counts()

    def __enter__(self) -> RowChecks:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._instances.__exit__(kind, error, at)
        self._groups.__exit__(kind, error, at)

    def begin(self, file: str, tiers: Mapping[str, int]) -> None:
        """Go on with the rows of another file, which problems name, under its own tiers."""
        self.finish()
        self._file, self._before, self._tiers = file, None, tiers

    def check(self, row: Row, line: int) -> None:
        """Look at the next row, which stands in `line` of its file."""
        self._line_before, self._line = self._line, line
        first = self._before is None or (row.benchmark, row.instance_id) != (
            self._before.benchmark,
            self._before.instance_id,
        )
        self._tier(row)
        if first or self._before is None or row.group != self._before.group:
            self._names(row)
        if row.id != f"{row.benchmark}/{row.instance_id}/{row.step_index}":
            self._add(row, "id", "must be benchmark/instance_id/step_index")
        if first:
            self._end_instance()
            self._new_instance(row)
        self._step(row, 1 if first or self._before is None else self._before.step_index + 1)
        self._split(row)
        try:
            for name, problem in self._prefixes.check(row.messages, row.tools):
                self._add(row, name, problem)
        except RecursionError:
            self._add(row, "messages", "nested too deeply")
        self._count(row)
        self._before = row

    def finish(self) -> None:
        """There are no more rows in this file."""
        self._line_before = self._line
        self._end_instance()

    def _end_instance(self) -> None:
        """The last row of an instance was seen: it must have been its last step."""
        before = self._before
        if before is not None and before.step_index < before.total_steps:
            problem = f"the instance ends with step {before.step_index} of {before.total_steps}"
            self._problems.add(self._file, problem, self._line_before, "total_steps", before.id)

    def _add(self, row: Row, name: str, problem: str) -> None:
        self._problems.add(self._file, problem, self._line, name, row.id)

    def _names(self, row: Row) -> None:
        self._field_names = frozenset()
        for name in ("benchmark", "instance_id", "group"):
            text = getattr(row, name)
            if not is_id(text):
                self._add(row, name, "must be 1 to 200 characters without control characters")
            for problem in self._watch.in_field(text):
                self._add(row, name, problem)
            names = self._watch.names_in(text)
            self._field_names |= names
            for found in sorted(names - self._watch.allowed_names):
                self._add(row, name, f"names a model of the pool: {found}")
        if "/" in row.benchmark:
            self._add(row, "benchmark", "must not hold a slash")

    def _tier(self, row: Row) -> None:
        if row.target_tier not in self._tiers:
            self._add(row, "target_tier", f"no tier of this release: {row.target_tier!r}")
        elif self._tiers[row.target_tier] != row.target_tier_id:
            right = self._tiers[row.target_tier]
            self._add(row, "target_tier_id", f"{row.target_tier} has id {right}, not {row.target_tier_id}")

    def _new_instance(self, row: Row) -> None:
        if not self._instances.add(f"{row.benchmark}\0{row.instance_id}"):
            self._add(row, "id", "given before: the rows of an instance stand together, and each id once")
        if row.benchmark in self.counts.labels or len(self.counts.labels) < MOST_BENCHMARKS:
            self.counts.instances[row.benchmark] += 1
        self.counts.instances_of[row.split] += 1
        if self._groups.add(f"{row.benchmark}\0{row.group}"):
            self.counts.groups_of[row.split] += 1

    def _step(self, row: Row, due: int) -> None:
        before = self._before
        if row.step_index != due:
            same = before is not None and row.id == before.id
            problem = "given before" if same else f"step {due} must stand here, not {row.step_index}"
            self._add(row, "id" if same else "step_index", problem)
        if row.step_index > row.total_steps:
            self._add(row, "total_steps", f"step {row.step_index} of {row.total_steps}")
        if due > 1 and before is not None:
            if row.total_steps != before.total_steps:
                self._add(row, "total_steps", f"the row before said {before.total_steps}, not {row.total_steps}")
            if row.group != before.group:
                self._add(row, "group", "not that of the row before, of the same instance")

    def _split(self, row: Row) -> None:
        if row.split not in SPLITS:
            self._add(row, "split", "must be train or test")
        elif row.split != split_of(row.benchmark, row.group, self._holdout):
            self._add(row, "split", f"the group {row.group!r} belongs to the other one: a group is never split")
        elif self._ordered and row.split == TRAIN and self._tested:
            self._add(row, "split", "a row of train after rows of test")
        self._tested |= row.split == TEST

    def _count(self, row: Row) -> None:
        labels = self.counts.labels
        if row.benchmark not in labels and len(labels) == MOST_BENCHMARKS:
            self._add(row, "benchmark", f"more than {MOST_BENCHMARKS} benchmarks in one release")
            return
        if row.target_tier in self._tiers:
            labels[row.benchmark][row.target_tier] += 1
        self.counts.rows_of[row.split] += 1
        for name in (self._prefixes.names | self._field_names) & self._watch.allowed_names:
            self.counts.names[name] += 1
