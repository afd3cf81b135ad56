"""The file of a live run: every step stands in it before the next one is begun, so an interruption loses none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stepdown.builder.common.sqlite import SQLiteFile, make_tables, open_prepared
from stepdown.builder.config.validation import changes
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Instance, Ruling, Usage, Verdict
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


class LiveStore:
    """Tasks and their steps, by policy. Threads share one."""

    def __init__(self, folder: Path, mode: str = "rwc") -> None:
        """Raises BadInput where the file can not be used, or is of another version of stepdown."""
        path = folder / FILE
        if mode == "ro" and not path.is_file():
            raise BadInput("no live run", file=folder)
        pragmas = ("journal_mode=WAL", "synchronous=NORMAL") if mode != "ro" else ()
        self._file = open_prepared(path, "the live run's file", mode, pragmas, self._prepare)  # type: ignore[arg-type]

    @staticmethod
    def _prepare(file: SQLiteFile) -> None:
        [(version,)] = file.read("PRAGMA user_version")
        if version == 0:
            with file.transaction() as db:
                make_tables(db, _TABLES, _VERSION)
        elif version != _VERSION:
            raise BadInput(f"of another version of stepdown ({version})", file=file.path)

    def close(self) -> None:
        self._file.close()

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the run was begun with."""
        found: Mapping[str, Any] = self._file.meta("settings") or {}
        return found

    def keep_settings(self, settings: Mapping[str, Any]) -> None:
        """Keep what the run depends on. Raises BadInput, with the difference, where it was begun otherwise."""
        begun = self._file.meta("settings")
        if begun is None:
            self._file.set_meta("settings", dict(settings))
        elif begun != settings:
            difference = "; ".join(changes(begun, dict(settings))[:4])
            raise BadInput(
                f"this live run was begun otherwise ({difference}): name another folder", file=self._file.path
            )

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
