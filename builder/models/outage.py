"""What is done about an endpoint that is down: after some equal failures in a row it is asked less and less often."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stepdown.builder.common.text import kind_of

EQUAL_FAILURES = 10
"""So many equal failures in a row, with no answer between them, mean that asking on would burn through the list."""
_SHORTEST_PAUSE = 1.0
_LOOK = 0.2
"""Seconds. While a request waits for its turn it looks so often whether the run is asked to stop."""


class Outage:
    """The failures in a row of one endpoint. Thread-safe.

    From the tenth equal one on it pauses before each request, one second at first and twice as long each time, and
    lets one request through at a time. The first answer ends that. A pause is at most `longest` seconds.
    """

    def __init__(self, longest: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._longest, self._clock = longest, clock
        self._guard, self._probing = threading.Lock(), threading.Lock()
        self._kind, self._in_a_row, self._pauses, self._until = "", 0, 0, 0.0

    def note_failure(self, text: str) -> float | None:
        """Count a failure. Seconds of the pause that begins with it; None where none does."""
        with self._guard:
            kind = kind_of(text)
            self._in_a_row = self._in_a_row + 1 if kind == self._kind else 1
            self._kind = kind
            if self._in_a_row < EQUAL_FAILURES or self._clock() < self._until:
                return None
            pause = min(_SHORTEST_PAUSE * float(1 << min(self._pauses, 20)), self._longest)
            self._pauses += 1
            self._until = self._clock() + pause
            return pause

    def note_answer(self) -> bool:
        """Count an answer; whether it ended an outage."""
        with self._guard:
            was_down = self._pauses > 0
            self._kind, self._in_a_row, self._pauses, self._until = "", 0, 0, 0.0
            return was_down

    @contextmanager
    def turn(self, wait: Callable[[float], None]) -> Iterator[None]:
        """Hold while a request is made: during an outage pauses come first, and only one request is made at a time.

        `wait` pauses for so many seconds, or raises.
        """
        alone = self._wait_for_turn(wait)
        try:
            yield
        finally:
            if alone:
                self._probing.release()

    def _wait_for_turn(self, wait: Callable[[float], None]) -> bool:
        while True:
            if (left := self._until - self._clock()) > 0:
                wait(left)
            elif not self._pauses:
                return False
            elif not self._probing.acquire(timeout=_LOOK):
                wait(0)
            elif self._until > self._clock():  # the request before this one has failed too
                self._probing.release()
            else:
                return True
