"""The official grading of a submitted patch, in a fresh container of ours, once per patch.

`run_instance` of the package swebench applies the patch, runs the tests and reads their output. Where it has no report
it does not say why; what it did is in the notes of the client it was lent, and only what a patch did itself is held
against the patch.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Literal
from weakref import WeakValueDictionary

from pydantic import ValidationError
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from stepdown.builder.common.files import write_text
from stepdown.builder.config.validation import JsonObject, Strict
from stepdown.builder.errors import Lost, Technical
from stepdown.builder.records import Instance, Verdict, clean_text, digest
from stepdown.harnesses.swebench import images
from stepdown.harnesses.swebench.client import Bound, GraderClient, Notes, Stage
from stepdown.harnesses.swebench.engine import Engine
from stepdown.harnesses.swebench.instances import Task
from stepdown.harnesses.swebench.limits import MIB, Limits
from stepdown.harnesses.swebench.upstream import grader, pinned_version

VERSION = "1"
"""Raised with every change here that can change a verdict: gradings of another version are not used again."""

TESTS_SECONDS = 1800
"""The official limit of one run of an instance's tests."""

SPARE = 3
"""A patch over a limit has failed where the seed's needed less than this part of it; else the limit is to blame."""

SEED = "seed"
FLAKY = "its grading is flaky"

_STALE = 86_400.0
"""Seconds after which the files of a run that never ended are those of a crash."""


class GradingUsage(Strict):
    """What one grading took."""

    seconds: float = 0.0
    memory: int | None = None
    """The peak in bytes, page cache included; None where it is not known."""
    disk: int = 0
    """Bytes written beyond the image's."""


class PatchGrading(Strict):
    """The verdict on one patch of one instance, and what it rests on."""

    verdict: Literal[Verdict.PASS, Verdict.FAIL, Verdict.INCOMPLETE]
    """Incomplete only where gradings of a seed's patch differ: they come to no verdict."""
    reason: str = ""
    patch: str = ""
    """SHA-256 of the patch."""
    report: JsonObject | None = None
    """The official report on the instance, as it is."""
    over: Bound | None = None
    """The limit that the tests were over."""
    usage: GradingUsage = GradingUsage()

    def evidence(self) -> JsonObject:
        """What an auditor wants of it: a function of the patch, without times or figures of this machine.

        `infra_failure` is a pattern over output that the patch controls: shown, never believed.
        """
        shown: JsonObject = {"patch": self.patch, "over": self.over}
        report = self.report or {}
        for name in ("resolved", "patch_successfully_applied", "infra_failure", "infra_failure_reason"):
            if name in report:
                shown[name] = report[name]
        for name, tests in report.get("tests_status", {}).items():
            if name in ("FAIL_TO_PASS", "PASS_TO_PASS"):
                shown[name] = {"success": len(tests["success"]), "failure": sorted(tests["failure"])}
        return {name: value for name, value in shown.items() if value is not None}


@dataclass(frozen=True, slots=True)
class _Over(Exception):
    """The tests took too much."""

    bound: Bound


class Grader:
    """Grades patches. Shared by threads and, by its folder, by processes.

    Gradings are files of the folder, written whole or not at all, so a patch is graded once however often a run is
    interrupted.
    """

    def __init__(
        self,
        folder: Path,
        engine: Engine,
        limits: Limits | None = None,
        seconds: float = TESTS_SECONDS,
        attempts: int = 3,
    ) -> None:
        """`seconds` bounds one run of the tests; `attempts` are made before a failure of the apparatus is one."""
        self._folder, self._engine, self._limits, self._seconds = folder, engine, limits or Limits(), seconds
        self._attempts = attempts
        self.version = version(self._limits, seconds)
        self._locks: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self._guard = Lock()
        self._remove_stale()

    def grade(self, instance: Instance, patch: bytes | str) -> PatchGrading:
        """The verdict on a patch, from its file where it was graded before. Raises Technical."""
        task, content = Task.of(instance), _bytes(patch)
        if not content.strip():
            return PatchGrading(verdict=Verdict.FAIL, reason="the patch is empty", patch=_sha(content))
        with self._one_at_a_time(task, content):
            known: PatchGrading | None = self._read(self._place(task, _sha(content)), PatchGrading)
            if known is None:
                known = self._judged(task, content)
                self._write(self._place(task, _sha(content)), known)
            return known

    def verify(self, instance: Instance, patch: bytes | str, times: int = 0) -> PatchGrading:
        """The verdict on a seed's patch, graded afresh so many times (0: as `grade` has it).

        Where gradings differ the instance is flaky, and none of its seeds will do from then on. What a seed that passes
        took is kept: other patches are measured by it. Raises Technical.
        """
        task, content = Task.of(instance), _bytes(patch)
        if times == 0 or not content.strip():
            gradings = [self.grade(instance, patch)]
        else:
            known: PatchGrading | None = self._read(self._place(task, FLAKY), PatchGrading)
            if known is not None:
                return known
            gradings = []
            for _ in range(times):
                gradings.append(self._afresh(task, content))
                if gradings[-1].verdict is not gradings[0].verdict:
                    flaky = PatchGrading(verdict=Verdict.INCOMPLETE, reason=FLAKY, patch=_sha(content))
                    self._write(self._place(task, FLAKY), flaky)
                    return flaky
        if gradings[0].verdict is Verdict.PASS:
            self._write(self._place(task, _sha(content)), gradings[0])
            self._write(self._place(task, SEED), _most([each.usage for each in gradings]))
        return gradings[0]

    def _judged(self, task: Task, patch: bytes) -> PatchGrading:
        """The verdict by the rule for what takes too much: twice, and the seed's patch needed far less."""
        try:
            return self._run(task, patch)
        except _Over:
            pass
        try:
            return self._run(task, patch)
        except _Over as again:
            bound = again.bound
        seed = self._read(self._place(task, SEED), GradingUsage)
        if not self._has_spare(bound, seed):
            raise Technical(
                f"the tests were over their limit of {bound}, and it is not known that the seed's patch needed less "
                f"than a third of it"
            )
        return PatchGrading(
            verdict=Verdict.FAIL,
            reason=f"the tests were twice over their limit of {bound}",
            patch=_sha(patch),
            over=bound,
        )

    def _afresh(self, task: Task, patch: bytes) -> PatchGrading:
        try:
            return self._run(task, patch)
        except _Over as over:
            raise Technical(f"the tests of the seed's patch were over their limit of {over.bound}") from None

    def _has_spare(self, bound: Bound, seed: GradingUsage | None) -> bool:
        if seed is None:
            return False
        limits = {"time": self._seconds, "memory": self._limits.memory_mib * MIB, "disk": self._limits.disk_mib * MIB}
        needed = {"time": seed.seconds, "memory": seed.memory, "disk": seed.disk}[bound]
        return needed is not None and needed * SPARE < limits[bound]

    # One run of the official grader

    def _run(self, task: Task, patch: bytes) -> PatchGrading:
        """Run it, again where the apparatus failed. Raises Technical where it still does, and _Over."""
        failures: list[str] = []
        for attempt in Retrying(
            stop=stop_after_attempt(self._attempts),
            wait=wait_exponential(max=10),
            retry=retry_if_exception_type(Technical),
            reraise=True,
        ):
            with attempt:
                try:
                    return self._run_once(task, patch)
                except Technical as error:
                    failures.append(error.reason)
                    raise type(error)(error.reason, failures[:-1]) from None
        raise AssertionError("unreachable")

    def _run_once(self, task: Task, patch: bytes) -> PatchGrading:
        images.ensure(self._engine.client, task.image)
        client = GraderClient(self._engine, self._limits, self._seconds, patch)
        logs = self._folder / "running" / f"{_sha(patch)[:16]}.{uuid.uuid4().hex[:8]}"
        try:
            report = self._official(task, patch, client, logs.absolute())
            alive = client.settle()
            notes = client.notes
            memory = client.memory_peak() if alive and report and report["resolved"] else None
        finally:
            client.close()
            self._keep_log(task, logs, patch)
        grading = self._read_off(report, alive, notes)
        usage = GradingUsage(seconds=round(notes.tested_for(), 3), memory=memory, disk=notes.disk)
        return grading.model_copy(update={"patch": _sha(patch), "usage": usage})

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
        """The verdict on one run. Raises _Over and Technical."""
        if notes.over == "disk":
            raise _Over("disk")
        if alive and notes.stage is Stage.TESTED and report is not None:
            if report["resolved"]:
                return PatchGrading(verdict=Verdict.PASS, report=report)
            if notes.over is None:
                return PatchGrading(verdict=Verdict.FAIL, reason=_why_unresolved(report), report=report)
        if notes.over == "memory":
            raise _Over("memory")
        if alive and report is None and notes.tested_for() >= self._seconds:
            raise _Over("time")
        if alive and notes.stage is Stage.PATCHING and not notes.troubles:
            return PatchGrading(verdict=Verdict.FAIL, reason="the patch does not apply")
        problem = notes.troubles[-1] if notes.troubles else "the grader made no report"
        failure = Technical if alive else Lost
        raise failure(f"grading failed: {problem}", notes.troubles[:-1])

    # Files

    def _place(self, task: Task, what: str) -> Path:
        """The file of a patch (its digest), of what the seed took, or of the instance's flakiness."""
        key = digest([self.version, task.model_dump(mode="json"), what])[:40]
        return self._folder / "gradings" / task.instance_id / f"{key}.json"

    def _keep_log(self, task: Task, running: Path, patch: bytes) -> None:
        """The grader's files under the patch's name, those of the last run of a patch only."""
        made, kept = running / "patch" / task.instance_id, self._folder / "logs" / task.instance_id / _sha(patch)[:16]
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

    @staticmethod
    def _read(path: Path, kind: Any) -> Any:
        """The record of a file; None where there is none, or a damaged one."""
        try:
            return kind.model_validate_json(path.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    @staticmethod
    def _write(path: Path, record: Strict) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(record.model_dump(mode="json"), ensure_ascii=True), durable=True, shared=True)

    def _one_at_a_time(self, task: Task, patch: bytes) -> Any:
        """The lock of this patch: two threads that have the same one grade it once."""
        with self._guard:
            return self._locks.setdefault(f"{task.instance_id}/{_sha(patch)}", Lock())


def version(limits: Limits, seconds: float) -> str:
    """What a grading depends on beside instance and patch. Raises BadInput where swebench is not installed."""
    return f"{VERSION}+swebench.{pinned_version()}+{digest([limits.model_dump(mode='json'), seconds])[:12]}"


def _why_unresolved(report: Mapping[str, Any]) -> str:
    """A few words that are the same for all patches that fail alike."""
    status = report.get("tests_status")
    if status is None:
        return "the tests gave no result that the grader reads"
    left = [name for name in ("FAIL_TO_PASS", "PASS_TO_PASS") if status[name]["failure"]]
    return f"tests fail: {', '.join(left)}"


def _most(usages: list[GradingUsage]) -> GradingUsage:
    memory = [usage.memory for usage in usages]
    return GradingUsage(
        seconds=max(usage.seconds for usage in usages),
        memory=None if None in memory else max(filter(None, memory), default=0),
        disk=max(usage.disk for usage in usages),
    )


def _bytes(patch: bytes | str) -> bytes:
    return clean_text(patch).encode() if isinstance(patch, str) else patch


def _sha(patch: bytes) -> str:
    return hashlib.sha256(patch).hexdigest()
