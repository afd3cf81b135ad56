"""What bounds the requests of one model: how many at once, how many a minute, and when its provider wants none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from stepdown.builder.config.operation import Endpoint
from stepdown.builder.config.pool import LOCAL, Model
from stepdown.builder.models.rates import RateLimits

Wait = Callable[[float], None]
"""Pauses for so many seconds, or raises where the run is to stop."""
Settle = Callable[[int], None]
"""Told how many tokens a request has used."""
_LOOK = 0.2
"""Seconds. While a thread waits for a free slot it looks at `stop` so often."""


class ModelLimits(Protocol):
    """The limits of one model, the same for all who call it: threads of this process, or of many."""

    @property
    def counts_tokens(self) -> bool:
        """Whether it matters how many tokens a request is expected to use."""

    def request(self, tokens: Callable[[], int], wait: Wait) -> AbstractContextManager[Settle]:
        """Held while a request is under way; entered once all limits allow it. `tokens` says how many it is expected to
        use, as far as is known at that moment.
        """

    def pause(self, seconds: float) -> None:
        """The model's provider wants no requests for so long."""


class OwnLimits:
    """The limits of a model that only this process calls."""

    def __init__(self, model: Model, endpoint: Endpoint, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives the seconds by which a minute is counted."""
        self._rates = RateLimits(endpoint.requests_per_minute, endpoint.tokens_per_minute, clock)
        self._closed_until = 0.0
        limit = most_at_once(model, endpoint)
        self._slots = threading.Semaphore(limit) if limit else None

    @property
    def counts_tokens(self) -> bool:
        return self._rates.counts_tokens

    @contextmanager
    def request(self, tokens: Callable[[], int], wait: Wait) -> Iterator[Settle]:
        while (left := self._closed_until - time.monotonic()) > 0:
            wait(left)
        if self._slots is not None:
            while not self._slots.acquire(timeout=_LOOK):
                wait(0)
        try:
            admitted = self._rates.admit(tokens(), wait)
            yield lambda used: self._rates.settle(admitted, used)
        finally:
            if self._slots is not None:
                self._slots.release()

    def pause(self, seconds: float) -> None:
        self._closed_until = time.monotonic() + seconds


def most_at_once(model: Model, endpoint: Endpoint) -> int | None:
    """How many requests of a model may be under way; None: without limit.

    A local model works on one answer at a time; more would only wait in its server, against the time-out.
    """
    return endpoint.concurrency or (1 if model.model.startswith(LOCAL) else None)
