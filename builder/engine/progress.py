"""How far the work on a run has come, and how that is shown."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from stepdown.builder.config.pool import Model
from stepdown.builder.records import Response

TELLING_INTERVAL = 10.0
"""Seconds between lines of progress where nothing redraws them."""


@dataclass(slots=True)
class RunProgress:
    """How far the work on a run has come. Workers write it; whoever shows it reads it."""

    instances: int = 0
    total: int = 0
    steps: int = 0
    counted: str = "steps locked"
    """What `steps` counts."""
    calls: int = 0
    """Calls made now."""
    hits: int = 0
    """Calls that the cache answered."""
    usd: float = 0.0
    started: float = field(default_factory=time.monotonic)
    done_before: int = 0
    """Instances that were finished before this process began."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def on_call(self, model: Model, response: Response, fresh: bool) -> None:
        with self._lock:
            if fresh:
                self.calls += 1
                self.usd += model.price.cost(response.usage)
            else:
                self.hits += 1

    def on_lock(self) -> None:
        with self._lock:
            self.steps += 1

    def on_instance(self) -> None:
        with self._lock:
            self.instances += 1

    def seconds_left(self) -> float | None:
        """How long the rest will take at the pace so far; None before the first instance is finished."""
        done = self.instances - self.done_before
        if done <= 0:
            return None
        return (self.total - self.instances) * (time.monotonic() - self.started) / done


def progress_line(progress: RunProgress) -> str:
    """One line: instances, steps locked, calls, cache hits, money, time left.

    >>> progress_line(RunProgress(instances=1, done_before=1, total=4, steps=7, calls=9, hits=2, usd=0.5))
    '1/4 instances · 7 steps locked · 9 calls · 2 cache hits · $0.5000'
    """
    parts = [
        f"{progress.instances}/{progress.total} instances",
        f"{progress.steps} {progress.counted}",
        f"{progress.calls} calls",
        f"{progress.hits} cache hits",
        f"${progress.usd:.4f}",
    ]
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
