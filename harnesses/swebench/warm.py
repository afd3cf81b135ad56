"""Containers of snapshots that are ready before they are asked for.

An episode that is at an end where its last checkpoint was taken leaves its container to the next that goes on from
there; for a snapshot that trials start from, the next container is started while a trial is under way. What waits for
nobody is removed with its snapshot.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple

from stepdown.builder.errors import Lost
from stepdown.harnesses.containers.engine import Engine
from stepdown.harnesses.swebench.sandbox import Sandbox
from stepdown.harnesses.swebench.snapshots import Snapshot

MOST = 16
"""Containers that may wait at once."""


class Ready(NamedTuple):
    """A container in the state of a snapshot."""

    sandbox: Sandbox
    origin: Snapshot | None
    """The snapshot that it was started from, which must outlive it; None for the instance's own image."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    sandbox: Future[Sandbox]
    left: bool
    """Whether an episode left it; else it was started from the snapshot itself."""
    origin: Snapshot | None = None


class Warm:
    """The containers that wait, one a snapshot at most. Shared by threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: dict[str, _Waiting] = {}
        # A snapshot that goes is noticed wherever memory is tidied up, also by a thread that holds this already.
        self._guard = threading.RLock()

    def take(self, snapshot: Snapshot) -> Ready | None:
        """The container that waits for the snapshot; None where there is none."""
        with self._guard:
            waiting = self._waiting.pop(snapshot.image, None)
        if waiting is None or waiting.sandbox.cancel():
            return None
        try:
            sandbox = waiting.sandbox.result()
        except Lost:
            return None
        return Ready(sandbox, waiting.origin if waiting.left else snapshot)

    def prepare(self, snapshot: Snapshot, start: Callable[[], Sandbox]) -> None:
        """Have a container started for the snapshot, unless there is one."""
        with self._guard:
            if snapshot.image not in self._waiting and len(self._waiting) < MOST:
                self._waiting[snapshot.image] = _Waiting(self._engine.aside(start), left=False)

    def leave(self, snapshot: Snapshot, ready: Ready) -> None:
        """Keep a container that stands at the snapshot, or have it removed where there is one already."""
        future: Future[Sandbox] = Future()
        future.set_result(ready.sandbox)
        with self._guard:
            room = snapshot.image not in self._waiting and len(self._waiting) < MOST
            if room:
                self._waiting[snapshot.image] = _Waiting(future, left=True, origin=ready.origin)
        if not room:
            self._engine.aside(ready.sandbox.close)

    def drop(self, image: str) -> None:
        """Remove what waits for a snapshot that nobody holds any more. Never raises."""
        with self._guard:
            waiting = self._waiting.pop(image, None)
        if waiting is None or waiting.sandbox.cancel():
            return
        try:
            waiting.sandbox.result().close()
        except Lost:
            return
