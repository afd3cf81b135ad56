"""What a build has done so far, for whoever shows it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from stepdown.builder.config.pool import Model
from stepdown.builder.records import Response


@dataclass(slots=True)
class BuildProgress:
    """What a build has done so far; written by workers, read by whoever shows it."""

    instances: int = 0
    total: int = 0
    steps: int = 0
    counted: str = "steps locked"
    """What `steps` counts."""
    calls: int = 0
    """Calls made now."""
    hits: int = 0
    """Calls answered without being made."""
    usd: float = 0.0
    started: float = field(default_factory=time.monotonic)
    done_before: int = 0
    """Instances that were settled before this process began."""
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
        """From the pace so far; None where there is none yet."""
        done = self.instances - self.done_before
        if done <= 0:
            return None
        return (self.total - self.instances) * (time.monotonic() - self.started) / done
