"""Which instances are in hand where. What a process had in hand when it died is handed out again."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from stepdown.builder.cluster.messages import Assignment
from stepdown.builder.engine.context import Job
from stepdown.builder.engine.workloads import LoadedWorkload

MOST_DEATHS = 5
"""So many processes in a row may die with an instance in hand before it records anything: it may be what kills them."""


class GivenUpWork(NamedTuple):
    """What was in hand in attempts that were given up."""

    calls: int
    """Calls in hand: whether they were paid for is not known."""
    steps: int
    """Locked so far, and once more by whoever has the instances next."""
    deadly: Sequence[Job]
    """What is not handed out again."""


@dataclass(slots=True)
class _Attempt:
    """What the head knows of an attempt."""

    job: Job
    begun: Counter[str] = field(default_factory=Counter)
    """Calls in hand, by model: begun within the budget, and neither paid nor given back."""
    steps: int = 0
    """Locked so far."""


class Dispatch:
    """Hands out jobs, `most` at once. Threads share one; `changed` is notified of all that may be waited for."""

    def __init__(
        self,
        jobs: Iterable[Job],
        workloads: Sequence[LoadedWorkload],
        done: Callable[[Job], None],
        stop: threading.Event,
        most: int,
    ) -> None:
        self._workloads = workloads
        self._jobs, self._done, self._stop, self._most = iter(jobs), done, stop, most
        self._lock = threading.RLock()
        self.changed = threading.Condition(self._lock)
        self._attempts: dict[int, _Attempt] = {}
        self._again: list[Job] = []
        self._numbers = count(1)
        self._exhausted = False
        self._deaths: Counter[int] = Counter()
        """Of jobs, how many processes in a row died with each before it recorded a trial."""
        self._errors: list[BaseException] = []

    def take(self, room: int, has: Collection[int] = ()) -> list[Assignment]:
        """The next jobs for a process that has these attempts in hand, and room for so many in all.

        A job that processes died with is worked on alone, so that no other is taken for what kills them.
        """
        taken: list[Assignment] = []
        with self._lock:
            if any(self._is_suspect(self._attempts[one].job) for one in has if one in self._attempts):
                return taken
            while len(has) + len(taken) < room and len(self._attempts) < self._most:
                job = self._next(alone=not has and not taken)
                if job is None:
                    break
                attempt = next(self._numbers)
                self._attempts[attempt] = _Attempt(job)
                taken.append(Assignment(attempt, job.record, job.instance, self._place_of(job.workload)))
                if self._is_suspect(job):
                    break
        return taken

    def _is_suspect(self, job: Job) -> bool:
        return self._deaths[job.record.id] > 1

    def _place_of(self, workload: LoadedWorkload) -> int:
        return next(place for place, one in enumerate(self._workloads) if one is workload)

    def _next(self, alone: bool) -> Job | None:
        """The next job; one that processes died with only for a process that has no other, where others are done."""
        if self._stop.is_set():
            return None
        if (again := next((job for job in self._again if not self._is_suspect(job)), None)) is not None:
            self._again.remove(again)
            return again
        if (job := None if self._exhausted else self._next_new()) is not None:
            return job
        return self._again.pop(0) if alone and self._again else None

    def _next_new(self) -> Job | None:
        try:
            job = next(self._jobs, None)
        except BaseException as error:
            self.fail(error)
            job = None
        self._exhausted = job is None
        return job

    def job_of(self, attempt: int) -> Job | None:
        """What is worked on in an attempt; None where the attempt was given up, or has ended."""
        with self._lock:
            found = self._attempts.get(attempt)
            return found.job if found else None

    def begin_call(self, attempt: int, model: str) -> None:
        """Note a call as in hand."""
        with self._lock:
            self._attempts[attempt].begun[model] += 1

    def end_call(self, attempt: int, model: str) -> bool:
        """Note a call as no more in hand; False where the attempt was given up, and its calls with it."""
        with self._lock:
            found = self._attempts.get(attempt)
            if found is None or not found.begun[model]:
                return False
            found.begun[model] -= 1
            return True

    def finish(self, attempt: int, error: BaseException | None) -> None:
        """An attempt has ended. After the first error no further job is handed out."""
        with self._lock:
            found = self._attempts.pop(attempt, None)
            if found is None:
                return
            if error is not None:
                self.fail(error)
            else:
                self._done(found.job)
            self.changed.notify_all()

    def note_lock(self, attempt: int) -> bool:
        """A step is locked; False where the attempt was given up."""
        with self._lock:
            found = self._attempts.get(attempt)
            if found is not None:
                found.steps += 1
            return found is not None

    def note_progress(self, attempt: int) -> None:
        """The attempt has recorded a trial: its job is not what its processes die of."""
        with self._lock:
            if (found := self._attempts.get(attempt)) is not None:
                self._deaths.pop(found.job.record.id, None)

    def give_up(self, attempts: Iterable[int]) -> GivenUpWork:
        """Hand out again what was in hand in these attempts, but for jobs that too many processes died with."""
        with self._lock:
            lost = [found for attempt in attempts if (found := self._attempts.pop(attempt, None)) is not None]
            deadly: list[Job] = []
            for job in (found.job for found in lost):
                self._deaths[job.record.id] += 1
                (deadly if self._deaths[job.record.id] >= MOST_DEATHS else self._again).append(job)
            self.changed.notify_all()
            calls, steps = sum(found.begun.total() for found in lost), sum(found.steps for found in lost)
            return GivenUpWork(calls, steps, deadly)

    def note_done(self, job: Job) -> None:
        """A job has come to an end without an attempt that finished."""
        self._done(job)

    def fail(self, error: BaseException) -> None:
        """End the work by an error."""
        with self._lock:
            self._errors.append(error)
            self._stop.set()
            self.changed.notify_all()

    @property
    def is_over(self) -> bool:
        """Whether nothing is in hand, and nothing will be handed out."""
        with self._lock:
            none_left = self._exhausted and not self._again
            return not self._attempts and (none_left or self._stop.is_set())

    @property
    def in_hand(self) -> int:
        with self._lock:
            return len(self._attempts)

    def raise_first_error(self) -> None:
        """Raises the first error that ended the work, where there was one."""
        if self._errors:
            raise self._errors[0]
