"""How far the work on a run has come, and how that is shown."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from stepdown.builder.common.text import kind_of
from stepdown.builder.config.pool import Model
from stepdown.builder.records import Instance, Response

TELLING_INTERVAL = 10.0
"""Seconds between lines of progress where nothing redraws them."""

_MOST_REASONS = 20
"""So many kinds of reasons are told one by one; a run with more of them would only fill the screen."""


@dataclass(slots=True)
class RunProgress:
    """How far the work on a run has come. Workers write it; whoever shows it reads it."""

    instances: int = 0
    total: int = 0
    worked_at: str = "instances"
    """What `instances` and `total` count."""
    steps: int = 0
    counted: str = "steps locked"
    """What `steps` counts."""
    calls: int = 0
    """Calls made now."""
    hits: int = 0
    """Calls that the cache answered."""
    usd: float = 0.0
    errors: int = 0
    """Requests that failed, those tried again included."""
    blocked: int = 0
    """Instances that technical errors have left without labels."""
    done_before: int = 0
    """Instances that were finished before this process began."""
    notify: Callable[[str], None] = lambda line: None
    """Told at once what a person should know now: a line."""
    clock: Callable[[], float] = time.monotonic
    _started: float | None = None
    """When the first call was finished: what comes before it, loading and seeding, says nothing of the pace."""
    _reasons: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def on_call(self, model: Model, response: Response, fresh: bool) -> None:
        with self._lock:
            if self._started is None:
                self._started = self.clock()
            if fresh:
                self.calls += 1
                self.usd += model.price.cost(response.usage)
            else:
                self.hits += 1

    def on_hit(self) -> None:
        """The cache answered a call."""
        with self._lock:
            self.hits += 1

    def on_lock(self) -> None:
        with self._lock:
            self.steps += 1

    def on_lost(self, steps: int) -> None:
        """Work on an instance is begun anew: so many of its steps will be locked once more."""
        with self._lock:
            self.steps -= steps

    def on_instance(self) -> None:
        with self._lock:
            self.instances += 1

    def on_error(self, text: str) -> None:
        with self._lock:
            self.errors += 1

    def on_blocked(self, instance: Instance, reason: str) -> None:
        """An instance is blocked. The first of each reason is told at once, the others are counted."""
        with self._lock:
            self.blocked += 1
            kind = kind_of(reason)
            is_new = kind not in self._reasons and len(self._reasons) < _MOST_REASONS
            self._reasons.add(kind)
        if is_new:
            self.notify(f"blocked: {instance.benchmark}/{instance.id}: {reason}")

    def seconds_left(self) -> float | None:
        """How long the rest will take at the pace since the first call; None before an instance is finished."""
        done = self.instances - self.done_before
        if done <= 0 or self._started is None:
            return None
        return (self.total - self.instances) * (self.clock() - self._started) / done


def progress_line(progress: RunProgress) -> str:
    """One line: instances, steps locked, calls, cache hits, money; errors and blocked instances if any; time left.

    >>> progress_line(RunProgress(instances=1, done_before=1, total=4, steps=7, calls=9, hits=2, usd=0.5))
    '1/4 instances · 7 steps locked · 9 calls · 2 cache hits · $0.5000'
    >>> progress_line(RunProgress(instances=2, total=4, errors=15, blocked=2))
    '2/4 instances · 0 steps locked · 0 calls · 0 cache hits · $0.0000 · 15 errors · 2 blocked'
    """
    parts = [
        f"{progress.instances}/{progress.total} {progress.worked_at}",
        f"{progress.steps} {progress.counted}",
        f"{progress.calls} calls",
        f"{progress.hits} cache hits",
        f"${progress.usd:.4f}",
    ]
    if progress.errors:
        parts.append(f"{progress.errors} errors")
    if progress.blocked:
        parts.append(f"{progress.blocked} blocked")
    left = progress.seconds_left()
    if left is not None and progress.instances < progress.total:
        parts.append(f"{timedelta(seconds=round(left))} left")
    return " · ".join(parts)


@contextmanager
def ticking(seconds: float, tick: Callable[[], object]) -> Iterator[None]:
    """Calls `tick` again and again, in a thread of its own, for as long as the block takes."""
    ended = threading.Event()

    def loop() -> None:
        while not ended.wait(seconds):
            tick()

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
