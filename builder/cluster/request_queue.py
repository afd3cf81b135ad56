"""What a node asks the head: threads ask and wait, the head comes for what they ask and brings answers.

The head comes for requests, so it is never asked more than it can keep up with: what piles up is taken as one batch.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from itertools import count
from typing import Any

from stepdown.builder.cluster.messages import HeadReply, NodeRequest

BATCH = 64
"""So many requests are taken at once, at most: others are not kept waiting by one process for long."""


class _Awaited:
    """A thread that waits for its answer."""

    __slots__ = ("came", "reply")

    def __init__(self) -> None:
        self.came = threading.Event()
        self.reply: HeadReply | None = None


class RequestQueue:
    """Requests of a process's threads, and answers to them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[NodeRequest] = deque()
        self._awaited: dict[int, _Awaited] = {}
        self._numbers = count(1)

    def ask(self, attempt: int, request: Any) -> Any:
        """The head's answer. Raises what the request came to there."""
        awaited = _Awaited()
        with self._changed:
            number = next(self._numbers)
            self._awaited[number] = awaited
            self._put(NodeRequest(number, attempt, request))
        awaited.came.wait()
        assert awaited.reply is not None
        if awaited.reply.error is not None:
            raise awaited.reply.error
        return awaited.reply.value

    def tell(self, attempt: int, what: Any) -> None:
        """Tell the head something that it need not answer, in order with what is asked."""
        with self._changed:
            self._put(NodeRequest(0, attempt, what))

    def _put(self, asked: NodeRequest) -> None:
        self._waiting.append(asked)
        self._changed.notify_all()

    def exchange(self, replies: Iterable[HeadReply], patience: float) -> list[NodeRequest]:
        """Bring answers, and take what is asked: at once where there is anything, else within so many seconds."""
        for reply in replies:
            with self._changed:
                awaited = self._awaited.pop(reply.number)
            awaited.reply = reply
            awaited.came.set()
        with self._changed:
            self._changed.wait_for(lambda: self._waiting, patience)
            return [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]


class AttemptRequests:
    """The queue as one attempt uses it."""

    def __init__(self, queue: RequestQueue, attempt: int) -> None:
        self._queue, self._attempt = queue, attempt

    def ask(self, request: Any) -> Any:
        """The head's answer. Raises what the request came to there."""
        return self._queue.ask(self._attempt, request)

    def tell(self, what: Any) -> None:
        """Tell the head something that it need not answer."""
        self._queue.tell(self._attempt, what)
