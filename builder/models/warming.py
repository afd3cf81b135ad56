"""Lets the first of several calls that share a prompt write it to the provider's cache, so that the others read it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stepdown.builder.records import Prefix

LIFE = 300.0
"""Seconds that a provider keeps a prompt after its last use."""
_LOOK = 0.2
"""Seconds. While a call waits it looks so often whether the run is to stop."""

_Shared = tuple[str, ...]


class PromptWarming:
    """The prompts of one model that calls are writing, and those that were written lately. Threads share one.

    A provider can give a prompt to other calls only once the answer of the call that wrote it has begun. Calls that
    come at once would all pay for writing what they share.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._cold: set[_Shared] = set()
        """Being written."""
        self._used: dict[_Shared, float] = {}
        """When each prompt was last written or read, the longest ago first."""

    @contextmanager
    def turn(self, prefix: Prefix, wait: Callable[[float], None]) -> Iterator[None]:
        """Held while a call of this prefix is made; entered once no other call is writing what it shares with it.

        `wait` raises where the run is to stop. A call that fails has written nothing: the next one takes its turn.
        """
        shared = _shared_by_trials(prefix)
        with self._changed:
            while shared in self._cold:
                self._changed.wait(_LOOK)
                wait(0)
            writes = not self._is_warm(shared)
            if writes:
                self._cold.add(shared)
        try:
            yield
            with self._changed:
                self._note_used(shared)
        finally:
            if writes:
                with self._changed:
                    self._cold.discard(shared)
                    self._changed.notify_all()

    def _is_warm(self, shared: _Shared) -> bool:
        used = self._used.get(shared)
        return used is not None and self._clock() - used < LIFE

    def _note_used(self, shared: _Shared) -> None:
        self._used.pop(shared, None)
        self._used[shared] = self._clock()
        while self._clock() - next(iter(self._used.values())) >= LIFE:
            del self._used[next(iter(self._used))]


def _shared_by_trials(prefix: Prefix) -> _Shared:
    """Names the part of a prefix that all trials of a step have: what stands before the last model's turn, or all."""
    turns = [place for place, one in enumerate(prefix.messages) if one["role"] == "assistant"]
    end = turns[-1] if turns else len(prefix.messages)
    return (prefix.tools_digest, *prefix.message_digests[:end])
