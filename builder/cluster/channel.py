"""The head's side of one process on a node: comes for requests, brings answers and instances."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from stepdown.builder.cluster.dispatch import Dispatch
from stepdown.builder.cluster.head import Head
from stepdown.builder.cluster.messages import Assignment, AttemptFinished, Delivery, HeadReply, KeepAnswer, NodeRequest
from stepdown.builder.cluster.nodes import NodeProcess, ProcessDied, ProcessSilent

HEARTBEAT = 1.0
"""Seconds within which a process answers, also where it has nothing to ask."""


class Channel:
    """One process, and the thread that talks to it for as long as there is something to do."""

    def __init__(self, process: NodeProcess, head: Head, dispatch: Dispatch, room: Callable[[str], int]) -> None:
        """`room` says how many instances each process on a node may have in hand now."""
        self.process, self._head, self._dispatch, self._room = process, head, dispatch, room
        self.calls = 0
        """Paid by the process."""
        self._in_hand: set[int] = set()
        self._is_open = True
        self._is_stopped = False
        self._thread = threading.Thread(target=self._talk, name=f"channel-{process.node[:8]}", daemon=True)

    @property
    def node(self) -> str:
        return self.process.node

    @property
    def is_open(self) -> bool:
        """Whether the process is given work."""
        return self._is_open

    @property
    def attempts(self) -> list[int]:
        """What the process has in hand."""
        return sorted(self._in_hand)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Have the process begin no further step."""
        if not self._is_stopped:
            self._is_stopped = True
            self.process.stop()

    def end(self) -> None:
        """End the process. What it still has in hand is lost."""
        self._is_open = False
        self.process.end()

    def _talk(self) -> None:
        replies: Sequence[HeadReply] = ()
        try:
            while (assignments := self._take()) or self._in_hand or replies or self._wait():
                if assignments or self._in_hand or replies:
                    replies = self._answered(self._exchange(Delivery(replies, assignments, self._head.state())))
        except ProcessDied:
            self._leave()
            self.process.end()  # it may only have been out of reach
        except BaseException as error:
            self._dispatch.fail(error)
            self._leave()

    def _take(self) -> Sequence[Assignment]:
        """What the process is to work on beside what it has."""
        if not self._is_open:
            return ()
        taken = self._dispatch.take(self._room(self.node), self._in_hand)
        self._in_hand.update(assignment.attempt for assignment in taken)
        return taken

    def _wait(self) -> bool:
        """Wait for something to do; False where there will be nothing."""
        if not self._is_open or self._dispatch.is_over:
            return False
        with self._dispatch.changed:
            self._dispatch.changed.wait(HEARTBEAT)
        return True

    def _exchange(self, delivery: Delivery) -> Sequence[NodeRequest]:
        try:
            return self.process.exchange(delivery, HEARTBEAT)
        except ProcessSilent:
            self._leave()
            # What it was paid for meanwhile is kept; whatever else it wants is refused, so its work comes to an end.
            return self.process.wait()

    def _answered(self, requests: Sequence[NodeRequest]) -> list[HeadReply]:
        replies = []
        for asked in requests:
            if isinstance(asked.request, AttemptFinished):
                self._in_hand.discard(asked.attempt)
            self.calls += isinstance(asked.request, KeepAnswer)
            if (reply := self._head.answer(self.process.name, asked)) is not None:
                replies.append(reply)
        return replies

    def _leave(self) -> None:
        """Give the process no more work, and what it has in hand to others."""
        self._is_open = False
        self._head.give_up(self.process.name, self._in_hand)
