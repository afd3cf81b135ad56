"""Keeps to the requests and tokens per minute that a model's provider allows.

Libraries for this sleep where nothing can wake them, and count only what is known beforehand. Here a wait ends when
the run is asked to stop. A request's expected tokens are counted before it begins, and corrected when it has ended.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

WINDOW = 60.0
"""Seconds. The limits hold in every window of this length, wherever it begins, so however a provider counts."""
LOOK = 1.0
"""Seconds. A waiting thread looks again so often, since other requests may have used less than was expected."""


@dataclass(slots=True)
class Admitted:
    """A request that was admitted: when, and how many tokens count for it."""

    at: float
    tokens: int


class RateLimits:
    """The limits of one model. Threads share one."""

    def __init__(
        self, requests: int | None = None, tokens: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`requests` and `tokens` per minute; None: without limit. `clock` gives seconds."""
        self._requests, self._tokens, self._clock = requests, tokens, clock
        self._lock = threading.Lock()
        self._window: deque[Admitted] = deque()  # those of the last minute, oldest first
        self._sum = 0

    @property
    def counts_tokens(self) -> bool:
        return self._tokens is not None

    def admit(self, tokens: int, wait: Callable[[float], None]) -> Admitted:
        """Return once a request of so many tokens may begin. `wait` pauses for some seconds, or raises.

        A request of more tokens than a minute allows begins when there is no other in its minute.

        >>> RateLimits(requests=60).admit(0, time.sleep).tokens
        0
        """
        while isinstance(admitted := self.try_admit(tokens), float):
            wait(min(admitted, LOOK))
        return admitted

    def try_admit(self, tokens: int) -> Admitted | float:
        """`admit` for whoever can not be kept waiting: the request, or the seconds until it may be admitted."""
        with self._lock:
            now = self._clock()
            left = self._seconds_until(now, tokens)
            if left > 0:
                return left
            admitted = Admitted(now, tokens)
            if self._requests is not None or self._tokens is not None:
                self._window.append(admitted)
                self._sum += tokens
            return admitted

    def settle(self, admitted: Admitted, tokens: int) -> None:
        """Correct the count: the request has ended and used so many tokens."""
        with self._lock:
            if self._window and admitted.at >= self._window[0].at:
                self._sum += tokens - admitted.tokens
            admitted.tokens = tokens

    def _seconds_until(self, now: float, tokens: int) -> float:
        """How long until both limits allow the request, if nothing else changes."""
        while self._window and self._window[0].at + WINDOW <= now:
            self._sum -= self._window.popleft().tokens
        free_at = now
        if self._requests is not None and len(self._window) >= self._requests:
            free_at = self._window[len(self._window) - self._requests].at + WINDOW
        if self._tokens is not None:
            over = self._sum + tokens - self._tokens
            for earlier in self._window:
                if over <= 0:
                    break
                over -= earlier.tokens
                free_at = max(free_at, earlier.at + WINDOW)
        return free_at - now
