"""Where one episode's requests wait for their answers: between the program's HTTP client and the engine's thread.

The program asks when it likes: in parallel, late, once more because its client lost patience. The engine takes one
request at a time and answers it. What is a step and what is not is decided here:

- A request whose client has hung up is remembered once it was taken: the same request, sent again, has its answer.
- Requests that wait together are put in an order that does not depend on which of them came first.
- A step that is replayed takes the request that was recorded, whatever else waits.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from stepdown.harnesses.agent.reply import Reply
from stepdown.harnesses.agent.request import ChatRequest

MOST_WAITING = 64
"""Requests of one episode that may wait at once."""
_TOGETHER, _LONGEST_TOGETHER = 0.05, 0.5
"""Requests count as made at once that come at most so many seconds after the one before, and after the first."""
_GRACE = 3.0
"""Seconds that a replayed step waits for its own request while another one is there."""
_MOST_REFUSED = 3
"""Problems of requests that are kept, to be told where the program then comes to nothing."""

Recognises = Callable[[ChatRequest], bool]


class Next(Enum):
    """What a program does next."""

    SIDE = "a side call"
    STEP = "a step"
    END = "its end"


class Waiter(Protocol):
    """One client's connection that waits for an answer."""

    def give(self, reply: Reply) -> None:
        """Hand over the answer. Called from any thread, at most once."""
        ...


class NotTaken(Exception):
    """A request that is not held: the program has ended, or has asked too much at once."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status, self.problem = status, problem


@dataclass(eq=False, slots=True)
class PendingRequest:
    """A request that was made, and who waits for its answer."""

    request: ChatRequest
    is_side: bool
    waiters: list[Waiter] = field(default_factory=list)
    taken: bool = False
    reply: Reply | None = None
    delivered: bool = False
    """Whether some client had the whole answer."""


class Exchange:
    """The requests of one episode. `arrive`, `left` and `delivered` are for the server, the rest for the episode."""

    def __init__(self, is_side: Recognises) -> None:
        """`is_side` knows side calls, which are taken before any step."""
        self._is_side = is_side
        self._changed = threading.Condition()
        self._side: list[PendingRequest] = []
        self._new: list[PendingRequest] = []
        self._ordered: list[PendingRequest] = []
        self._taken: deque[PendingRequest] = deque(maxlen=MOST_WAITING)
        self._ended = False
        self._first_new = self._last_new = 0.0
        self._refused: list[str] = []

    # The server's side

    def arrive(self, request: ChatRequest, waiter: Waiter, again: bool = False) -> PendingRequest:
        """Hold a request. `again`: its client says that it has sent it before. Raises NotTaken."""
        with self._changed:
            if self._ended:
                raise NotTaken(503, "the episode is over")
            held = self._find_repeated(request, again) or self._hold(request)
            held.waiters.append(waiter)
            if held.reply is not None:
                waiter.give(held.reply)
            self._changed.notify_all()
            return held

    def left(self, held: PendingRequest, waiter: Waiter) -> None:
        """A client has hung up before it had its whole answer. What nobody has begun to answer is forgotten."""
        with self._changed:
            held.waiters.remove(waiter)
            if not held.waiters and not held.taken:
                self._remove(held)

    def delivered(self, held: PendingRequest, waiter: Waiter) -> None:
        """A client has its whole answer."""
        with self._changed:
            held.waiters.remove(waiter)
            held.delivered = True

    def note_refused(self, problem: str) -> None:
        """Keep what was wrong with a request that no server would take."""
        with self._changed:
            if len(self._refused) < _MOST_REFUSED:
                self._refused.append(problem)

    def _find_repeated(self, request: ChatRequest, again: bool) -> PendingRequest | None:
        """The request that this one is another sending of; None for a new one."""
        for held in reversed([*self._taken, *self._side, *self._ordered, *self._new]):
            given_up = not held.waiters and not held.delivered
            if (again or given_up) and held.request.digest == request.digest:
                return held
        return None

    def _hold(self, request: ChatRequest) -> PendingRequest:
        if self.waiting >= MOST_WAITING:
            raise NotTaken(429, f"more than {MOST_WAITING} requests at once")
        held = PendingRequest(request, self._is_side(request))
        if held.is_side:
            self._side.append(held)
            return held
        self._last_new = time.monotonic()
        if not self._new:
            self._first_new = self._last_new
        self._new.append(held)
        return held

    # The episode's side

    @property
    def refused(self) -> tuple[str, ...]:
        """What was wrong with requests that no server would take; the first few."""
        return tuple(self._refused)

    @property
    def waiting(self) -> int:
        """How many requests wait, side calls among them."""
        with self._changed:
            return len(self._side) + len(self._new) + len(self._ordered)

    def wait(self, seconds: float, recorded: Recognises | None = None) -> Next:
        """Wait for what comes next. Raises TimeoutError where the program takes more than so many seconds for itself.

        A step is there once `recorded` knows it, or no other is likely to be made together with it.
        """
        deadline = time.monotonic() + seconds
        with self._changed:
            while not self._ended:
                now = time.monotonic()
                if self._side:
                    return Next.SIDE
                if not self._new and not self._ordered:
                    if now >= deadline:
                        raise TimeoutError
                    self._changed.wait(deadline - now)
                elif self._find(recorded) is not None or (left := self._unsettled(now)) <= 0:
                    return Next.STEP
                else:
                    self._changed.wait(left)
            return Next.END

    def take_side(self) -> PendingRequest:
        """The side call that waits, which is to be answered."""
        with self._changed:
            return self._begin(self._side[0])

    def take(self, recorded: Recognises | None = None) -> PendingRequest | None:
        """The next step, which is to be answered; None where none waits any more.

        `recorded` knows the request that was recorded here: it is waited for a little while others are there, and one
        of these comes next if it does not.
        """
        start = time.monotonic()
        with self._changed:
            while not self._ended and (self._new or self._ordered):
                found, wait = self._next(recorded, start, time.monotonic())
                if found is not None:
                    return self._begin(found)
                self._changed.wait(wait)
            return None

    def answer(self, held: PendingRequest, reply: Reply) -> None:
        """Answer a request that was taken."""
        with self._changed:
            held.reply = reply
            for waiter in held.waiters:
                waiter.give(reply)

    def end(self) -> None:
        """The program has ended: what still waits is not answered."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _next(self, recorded: Recognises | None, start: float, now: float) -> tuple[PendingRequest | None, float]:
        """The step to take, or how many seconds to wait at most before looking again."""
        if recorded is not None:
            own, left = self._find(recorded), max(self._last_new, start) + _GRACE - now
            if own is not None or left > 0:
                return own, left
        if not self._ordered:
            if (left := self._unsettled(now)) > 0:
                return None, left
            self._ordered, self._new = sorted(self._new, key=_place), []
        return self._ordered[0], 0.0

    def _find(self, recorded: Recognises | None) -> PendingRequest | None:
        """The step that waits and was recorded."""
        if recorded is None:
            return None
        return next((held for held in (*self._ordered, *self._new) if recorded(held.request)), None)

    def _unsettled(self, now: float) -> float:
        """Seconds until no other request counts as made together with those that wait."""
        if self._ordered:
            return 0.0
        return min(self._last_new + _TOGETHER, self._first_new + _LONGEST_TOGETHER) - now

    def _begin(self, held: PendingRequest) -> PendingRequest:
        self._remove(held)
        held.taken = True
        self._taken.append(held)
        return held

    def _remove(self, held: PendingRequest) -> None:
        for queue in (self._side, self._new, self._ordered):
            if held in queue:
                queue.remove(held)


def _place(held: PendingRequest) -> tuple[int, str]:
    """Where a request stands among those that were made together."""
    return len(held.request.messages), held.request.digest
