"""Which instances are in hand where. What a process had in hand when it died is handed out again."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

from stepdown.builder.cluster.messages import Assignment
from stepdown.builder.engine.context import Job
from stepdown.builder.engine.workloads import LoadedWorkload


@dataclass(slots=True)
class _Attempt:
    """What the head knows of an attempt."""

    job: Job
    begun: Counter[str] = field(default_factory=Counter)
    """Calls in hand, by model: begun within the budget, and neither paid nor given back."""


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
        self._again: deque[Job] = deque()
        self._numbers = count(1)
        self._exhausted = False
        self._errors: list[BaseException] = []

    def take(self, room: int) -> list[Assignment]:
        """The next jobs for somebody who has room for so many more."""
        taken: list[Assignment] = []
        with self._lock:
            while len(taken) < room and len(self._attempts) < self._most and (job := self._next()) is not None:
                attempt = next(self._numbers)
                self._attempts[attempt] = _Attempt(job)
                taken.append(Assignment(attempt, job.record, job.instance, self._place_of(job.workload)))
        return taken

    def _place_of(self, workload: LoadedWorkload) -> int:
        return next(place for place, one in enumerate(self._workloads) if one is workload)

    def _next(self) -> Job | None:
        if self._stop.is_set():
            return None
        if self._again:
            return self._again.popleft()
        if self._exhausted:
            return None
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

    def give_up(self, attempts: Iterable[int]) -> int:
        """Hand out again what was in hand in these attempts. How many calls were in hand: whether they were paid for is
        not known.
        """
        with self._lock:
            lost = [found for attempt in attempts if (found := self._attempts.pop(attempt, None)) is not None]
            self._again.extend(found.job for found in lost)
            self.changed.notify_all()
            return sum(found.begun.total() for found in lost)

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
