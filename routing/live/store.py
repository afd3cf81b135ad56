"""The file of a live run: every step stands in it before the next one is begun, so an interruption loses none."""

from __future__ import annotations

from collections.abc import Iterator

from stepdown.builder.records import Instance, Ruling, Usage, Verdict
from stepdown.builder.run.own_store import OwnStore
from stepdown.routing.live.records import LiveStep, LiveTask, TaskState

FILE = "live.sqlite"
_VERSION = 1
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE tasks (
    policy TEXT NOT NULL, benchmark TEXT NOT NULL, instance TEXT NOT NULL, grouped TEXT NOT NULL, state TEXT NOT NULL,
    verdict TEXT, reason TEXT NOT NULL, PRIMARY KEY (policy, benchmark, instance)
);
CREATE TABLE steps (
    policy TEXT NOT NULL, benchmark TEXT NOT NULL, instance TEXT NOT NULL, step INTEGER NOT NULL, model TEXT NOT NULL,
    tier TEXT NOT NULL, at REAL NOT NULL, seconds REAL NOT NULL, prompt INTEGER NOT NULL, cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL, completion INTEGER NOT NULL, usd REAL NOT NULL, paid INTEGER NOT NULL,
    reason TEXT NOT NULL, fell_back INTEGER NOT NULL, PRIMARY KEY (policy, benchmark, instance, step)
)"""
_STEPS = """
SELECT step, model, tier, at, seconds, prompt, cache_read, cache_write, completion, usd, paid, reason, fell_back
FROM steps WHERE policy = ? AND benchmark = ? AND instance = ? ORDER BY step
"""
_TASK = "SELECT state, verdict, reason FROM tasks WHERE policy = ? AND benchmark = ? AND instance = ?"
_ADD_STEP = "INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class LiveStore(OwnStore):
    """Tasks and their steps, by policy."""

    file_name, called, nothing, version, tables = FILE, "the live run's file", "no live run", _VERSION, _TABLES

    def task(self, policy: str, instance: Instance) -> LiveTask:
        """A task as it stands; an open one where it was not begun."""
        rows = self._file.read(_TASK, (policy, instance.benchmark, instance.id))
        state, verdict, reason = rows[0] if rows else (TaskState.OPEN, None, "")
        return _task(policy, instance.benchmark, instance.id, instance.group or instance.id, state, verdict, reason, ())

    def steps(self, policy: str, benchmark: str, instance: str) -> tuple[LiveStep, ...]:
        """The steps that a task has made, in order."""
        rows = self._file.read(_STEPS, (policy, benchmark, instance))
        return tuple(
            LiveStep(*row[:5], Usage(*row[5:9]), row[9], bool(row[10]), row[11], bool(row[12]))  # type: ignore[call-arg]
            for row in rows
        )

    def add_step(self, policy: str, instance: Instance, step: LiveStep) -> None:
        """Keep a step; the same step again replaces it."""
        usage = step.usage
        self._file.write(
            _ADD_STEP,
            (
                policy, instance.benchmark, instance.id, step.step, step.model, step.tier, step.at, step.seconds,
                usage.prompt, usage.cache_read, usage.cache_write, usage.completion, step.usd, step.paid, step.reason,
                step.fell_back,
            ),
        )  # fmt: skip

    def end(self, policy: str, instance: Instance, ruling: Ruling) -> None:
        """Keep a task's end; a technical one is open again at the next start."""
        technical = ruling.verdict is Verdict.TECHNICAL
        state = TaskState.TECHNICAL if technical else TaskState.DONE
        self._file.write(
            "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                policy, instance.benchmark, instance.id, instance.group or instance.id, state.value,
                None if technical else ruling.verdict.value, ruling.reason,
            ),
        )  # fmt: skip

    def tasks(self) -> Iterator[LiveTask]:
        """Every task that has ended, with its steps."""
        rows = self._file.read("SELECT * FROM tasks ORDER BY benchmark, instance, policy")
        for policy, benchmark, instance, group, state, verdict, reason in rows:
            steps = self.steps(policy, benchmark, instance)
            yield _task(policy, benchmark, instance, group, state, verdict, reason, steps)


def _task(
    policy: str, benchmark: str, instance: str, group: str, state: str, verdict: str | None, reason: str,
    steps: tuple[LiveStep, ...],
) -> LiveTask:  # fmt: skip
    ruled = Verdict(verdict) if verdict else None
    return LiveTask(policy, benchmark, instance, group, TaskState(state), ruled, reason, steps)
