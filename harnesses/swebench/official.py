"""One run of the official grader, in a fresh container of ours.

`run_instance` of the package swebench applies the patch, runs the tests and reads their output. Where it has no report
it does not say why; what it did is in the notes of the client it was lent, and only what a patch did itself is held
against the patch.
"""

from __future__ import annotations

import hashlib
import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from stepdown.builder.config.validation import JsonObject
from stepdown.builder.errors import Lost, Technical
from stepdown.builder.records import Verdict
from stepdown.harnesses.containers import images
from stepdown.harnesses.containers.engine import Engine
from stepdown.harnesses.swebench.canary import Canary, Sign
from stepdown.harnesses.swebench.client import Bound, GraderClient, Notes, Stage
from stepdown.harnesses.swebench.gradings import GradingUsage, PatchGrading
from stepdown.harnesses.swebench.instances import Task
from stepdown.harnesses.swebench.limits import Limits
from stepdown.harnesses.swebench.upstream import grader

T = TypeVar("T")

_STALE = 86_400.0
"""Seconds after which the files of a run that never ended are those of a crash."""


@dataclass(frozen=True, slots=True)
class Over(Exception):
    """The tests took too much."""

    bound: Bound


class OfficialGrader:
    """Runs the official grader. Keeps its files, those of the last run of a patch only."""

    def __init__(self, folder: Path, engine: Engine, limits: Limits, seconds: float, attempts: int) -> None:
        """`seconds` bounds one run of the tests; `attempts` are made before a failure of the apparatus is one."""
        self._folder, self._engine, self._limits, self._seconds = folder, engine, limits, seconds
        self._attempts = attempts
        self._remove_stale()

    def run(self, task: Task, patch: bytes) -> PatchGrading:
        """The verdict on a patch. Raises Technical where the apparatus fails again and again, and Over."""
        return self._insistently(lambda: self._run_once(task, patch, sha(patch)[:16], lambda _: None)[0])

    def watch(self, canary: Canary, patch: bytes) -> Sign:
        """What becomes of a canary among the tests of a patch. Raises as `run` does."""

        def look(output: Path) -> Sign:
            from swebench.harness.grading import get_logs_eval, parse_test_exit_code
            from swebench.harness.utils import make_test_spec

            if not output.is_file():
                raise Technical("grading with a canary failed: there is no output of the tests")
            statuses, _ = get_logs_eval(make_test_spec(canary.task.model_dump(mode="json")), str(output))
            log = output.read_text()
            return canary.sign(log, statuses, parse_test_exit_code(log))

        return self._insistently(lambda: self._run_once(canary.task, patch, f"{sha(patch)[:16]}.canary", look)[1])

    def _insistently(self, run: Callable[[], T]) -> T:
        """Run it, again where the apparatus failed."""
        failures: list[str] = []
        for attempt in Retrying(
            stop=stop_after_attempt(self._attempts),
            wait=wait_exponential(max=10),
            retry=retry_if_exception_type(Technical),
            reraise=True,
        ):
            with attempt:
                try:
                    return run()
                except Technical as error:
                    failures.append(error.reason)
                    raise type(error)(error.reason, failures[:-1]) from None
        raise AssertionError("unreachable")

    def _run_once(self, task: Task, patch: bytes, kept_as: str, look: Callable[[Path], T]) -> tuple[PatchGrading, T]:
        """The verdict of one run, and what is seen in its output."""
        images.ensure(self._engine.client, task.image)
        client = GraderClient(self._engine, self._limits, self._seconds, patch)
        logs = self._folder / "running" / f"{kept_as}.{uuid.uuid4().hex[:8]}"
        try:
            report = self._official(task, patch, client, logs.absolute())
            alive = client.settle()
            notes = client.notes
            memory = client.memory_peak() if alive and report and report["resolved"] else None
            grading = self._read_off(report, alive, notes)
            seen = look(logs / "patch" / task.instance_id / "test_output.txt")
        finally:
            client.close()
            self._keep_log(task, logs, kept_as)
        usage = GradingUsage(seconds=round(notes.tested_for(), 3), memory=memory, disk=notes.disk)
        return grading.model_copy(update={"patch": sha(patch), "usage": usage}), seen

    def _official(self, task: Task, patch: bytes, client: GraderClient, logs: Path) -> JsonObject | None:
        """What `run_instance` reports on the instance, None where it does not."""
        from swebench.harness.utils import make_test_spec

        prediction = {
            "instance_id": task.instance_id,
            "model_name_or_path": "patch",
            "model_patch": patch.decode(errors="replace"),
        }
        # Its files go to a folder that is named by the run; an absolute path takes the place of the working directory.
        result = grader().run_instance(
            make_test_spec(task.model_dump(mode="json")), prediction, client, str(logs), self._seconds
        )
        return result[1][task.instance_id] if result else None

    def _read_off(self, report: JsonObject | None, alive: bool, notes: Notes) -> PatchGrading:
        """The verdict on one run. Raises Over and Technical."""
        if notes.over == "disk":
            raise Over("disk")
        if alive and notes.stage is Stage.TESTED and report is not None:
            if report["resolved"]:
                return PatchGrading(verdict=Verdict.PASS, report=report)
            if notes.over is None:
                return PatchGrading(verdict=Verdict.FAIL, reason=_why_unresolved(report), report=report)
        if notes.over == "memory":
            raise Over("memory")
        if alive and report is None and notes.tested_for() >= self._seconds:
            raise Over("time")
        if alive and notes.stage is Stage.PATCHING and not notes.troubles:
            return PatchGrading(verdict=Verdict.FAIL, reason="the patch does not apply")
        problem = notes.troubles[-1] if notes.troubles else "the grader made no report"
        failure = Technical if alive else Lost
        raise failure(f"grading failed: {problem}", notes.troubles[:-1])

    def _keep_log(self, task: Task, running: Path, kept_as: str) -> None:
        """The grader's files under the name of the patch, in place of those of its last run."""
        made, kept = running / "patch" / task.instance_id, self._folder / "logs" / task.instance_id / kept_as
        if made.is_dir():
            shutil.rmtree(kept, ignore_errors=True)
            kept.parent.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):  # another process was faster
                made.rename(kept)
        shutil.rmtree(running, ignore_errors=True)

    def _remove_stale(self) -> None:
        for left in (self._folder / "running").glob("*"):
            with suppress(FileNotFoundError):  # a living grading has just ended, or another process was faster
                if left.stat().st_mtime < time.time() - _STALE:
                    shutil.rmtree(left, ignore_errors=True)


def _why_unresolved(report: Mapping[str, Any]) -> str:
    """A few words that are the same for all patches that fail alike."""
    status = report.get("tests_status")
    if status is None:
        return "the tests gave no result that the grader reads"
    left = [name for name in ("FAIL_TO_PASS", "PASS_TO_PASS") if status[name]["failure"]]
    return f"tests fail: {', '.join(left)}"


def sha(patch: bytes) -> str:
    """The name of a patch: the SHA-256 of its bytes."""
    return hashlib.sha256(patch).hexdigest()
