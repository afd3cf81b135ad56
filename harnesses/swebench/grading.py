"""The grading of a submitted patch: the official grader's verdict, and whether it was come by honestly. Once per patch.

What passes is graded once more with a canary among its tests. A patch that reaches into git's own records is not run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, Literal, TypeVar
from weakref import WeakValueDictionary

from pydantic import ValidationError

from stepdown.builder.common.files import write_text
from stepdown.builder.config.validation import Strict
from stepdown.builder.errors import Technical
from stepdown.builder.records import Instance, Verdict, clean_text, digest
from stepdown.harnesses.containers.engine import Engine
from stepdown.harnesses.swebench import canary, patches
from stepdown.harnesses.swebench.client import Bound
from stepdown.harnesses.swebench.gradings import GradingUsage, PatchGrading
from stepdown.harnesses.swebench.instances import Task
from stepdown.harnesses.swebench.limits import MIB, Limits
from stepdown.harnesses.swebench.official import OfficialGrader, Over, sha
from stepdown.harnesses.swebench.upstream import pinned_version

T = TypeVar("T")
Record = TypeVar("Record", bound=Strict)
Infrastructure = Literal["note", "refuse"]

VERSION = "3"
"""Raised with every change here that can change a verdict: gradings of another version are not used again."""

TESTS_SECONDS = 1800
"""The official limit of one run of an instance's tests."""

SPARE = 3
"""A patch over a limit has failed where the seed's needed less than this part of it; else the limit is to blame."""

SEED = "seed"
FLAKY = "its grading is flaky"


class _Watched(Strict):
    """What became of a canary."""

    sign: canary.Sign


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
        infrastructure: Infrastructure = "note",
    ) -> None:
        """`seconds` bounds one run of the tests; `attempts` are made before a failure of the apparatus is one;
        `infrastructure` says whether a patch that touches test infrastructure can pass."""
        self._folder, self._limits, self._seconds = folder, limits or Limits(), seconds
        self._infrastructure = infrastructure
        self._official = OfficialGrader(folder, engine, self._limits, seconds, attempts)
        self.version = version(self._limits, seconds, infrastructure)
        self._locks: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self._guard = Lock()

    def grade(self, instance: Instance, patch: bytes | str) -> PatchGrading:
        """The verdict on a patch, from its file where it was graded before. Raises Technical."""
        task, content = Task.of(instance), _bytes(patch)
        if unfit := _unfit(content):
            return unfit
        with self._one_at_a_time(task, content):
            return self._once(task, sha(content), PatchGrading, lambda: self._judged(task, content))

    def verify(self, instance: Instance, patch: bytes | str, times: int = 0) -> PatchGrading:
        """The verdict on a seed's patch, graded afresh so many times (0: as `grade` has it).

        Where gradings differ the instance is flaky, and none of its seeds will do from then on. What a seed that passes
        took is kept: other patches are measured by it. Each grading is kept: an interrupted verification goes on where
        it was. Raises Technical.
        """
        task, content = Task.of(instance), _bytes(patch)
        if times == 0 or _unfit(content):
            gradings = [self.grade(instance, patch)]
        else:
            known: PatchGrading | None = self._read(self._place(task, FLAKY), PatchGrading)
            if known is not None:
                return known
            gradings = []
            for number in range(times):
                what = f"{sha(content)} {number}"
                gradings.append(self._once(task, what, PatchGrading, lambda: self._afresh(task, content)))
                if gradings[-1].verdict is not gradings[0].verdict:
                    flaky = PatchGrading(verdict=Verdict.INCOMPLETE, reason=FLAKY, patch=sha(content))
                    self._write(self._place(task, FLAKY), flaky)
                    return flaky
            gradings[0] = self._gated(task, content, gradings[0])
        if gradings[0].verdict is Verdict.PASS:
            self._write(self._place(task, sha(content)), gradings[0])
            self._write(self._place(task, SEED), _most([each.usage for each in gradings]))
        return gradings[0]

    def _judged(self, task: Task, patch: bytes) -> PatchGrading:
        """The verdict, where the rule for what takes too much finds against the patch too."""
        try:
            return self._gated(task, patch, self._within_limits(task, lambda: self._official.run(task, patch)))
        except Over as over:
            return PatchGrading(
                verdict=Verdict.FAIL,
                reason=f"the tests were twice over their limit of {over.bound}",
                patch=sha(patch),
                over=over.bound,
            )

    def _afresh(self, task: Task, patch: bytes) -> PatchGrading:
        try:
            return self._official.run(task, patch)
        except Over as over:
            raise Technical(f"the tests of the seed's patch were over their limit of {over.bound}") from None

    # What a pass is worth

    def _gated(self, task: Task, patch: bytes, graded: PatchGrading) -> PatchGrading:
        """The verdict with what is known of its worth: a pass that is none is a fail. Raises Technical, Over."""
        paths = patches.infrastructure(patches.touched(patch))
        graded = graded.model_copy(update={"infrastructure": paths})
        if graded.verdict is not Verdict.PASS:
            return graded
        if paths and self._infrastructure == "refuse":
            return _failed(graded, f"the patch touches test infrastructure: {paths[0]}")
        sign = self._watched(task, patch)
        graded = graded.model_copy(update={"canary": sign})
        if sign in (None, "failed", "not placed"):
            return graded
        return _failed(graded, f"gamed: a test that must fail was seen as: {sign}")

    def _watched(self, task: Task, patch: bytes) -> canary.Sign | None:
        placed = canary.place(task)
        if placed is None:
            return None

        def watch() -> _Watched:
            return _Watched(sign=self._within_limits(task, lambda: self._official.watch(placed, patch)))

        return self._once(task, f"{sha(patch)} canary", _Watched, watch).sign

    # What takes too much

    def _within_limits(self, task: Task, run: Callable[[], T]) -> T:
        """What a run comes to, the second where the first took too much.

        Raises Over where both did and the seed's patch needed far less, else Technical.
        """
        try:
            return run()
        except Over:
            pass
        try:
            return run()
        except Over as again:
            bound = again.bound
        if not self._has_spare(bound, self._read(self._place(task, SEED), GradingUsage)):
            raise Technical(
                f"the tests were over their limit of {bound}, and it is not known that the seed's patch needed less "
                f"than a third of it"
            )
        raise Over(bound)

    def _has_spare(self, bound: Bound, seed: GradingUsage | None) -> bool:
        if seed is None:
            return False
        limits = {"time": self._seconds, "memory": self._limits.memory_mib * MIB, "disk": self._limits.disk_mib * MIB}
        needed = {"time": seed.seconds, "memory": seed.memory, "disk": seed.disk}[bound]
        return needed is not None and needed * SPARE < limits[bound]

    # Files

    def _place(self, task: Task, what: str) -> Path:
        """The file of a patch (its digest), of what the seed took, or of the instance's flakiness."""
        key = digest([self.version, task.model_dump(mode="json"), what])[:40]
        return self._folder / "gradings" / task.instance_id / f"{key}.json"

    def _once(self, task: Task, what: str, kind: type[Record], make: Callable[[], Record]) -> Record:
        """The record of a file; where there is none yet, one that is made now and kept."""
        known: Record | None = self._read(self._place(task, what), kind)
        if known is None:
            known = make()
            self._write(self._place(task, what), known)
        return known

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
            return self._locks.setdefault(f"{task.instance_id}/{sha(patch)}", Lock())


def version(limits: Limits, seconds: float, infrastructure: Infrastructure) -> str:
    """What a grading depends on beside instance and patch. Raises BadInput where swebench is not installed."""
    parts = [limits.model_dump(mode="json"), seconds, infrastructure]
    return f"{VERSION}+swebench.{pinned_version()}+{digest(parts)[:12]}"


def _unfit(patch: bytes) -> PatchGrading | None:
    """The failure of a patch that is not run, None for one that is."""
    unfit = PatchGrading(verdict=Verdict.FAIL, patch=sha(patch))
    if not patch.strip():
        return _failed(unfit, "the patch is empty")
    if inside := patches.records(patches.touched(patch)):
        return _failed(unfit, f"the patch reaches into git's own records: {inside[0]}")
    return None


def _failed(graded: PatchGrading, reason: str) -> PatchGrading:
    return graded.model_copy(update={"verdict": Verdict.FAIL, "reason": reason})


def _most(usages: list[GradingUsage]) -> GradingUsage:
    memory = [usage.memory for usage in usages]
    return GradingUsage(
        seconds=max(usage.seconds for usage in usages),
        memory=None if None in memory else max(filter(None, memory), default=0),
        disk=max(usage.disk for usage in usages),
    )


def _bytes(patch: bytes | str) -> bytes:
    return clean_text(patch).encode() if isinstance(patch, str) else patch
