"""Has a function called for the signals that ask a program to end."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def handle_end_signals(handle: Callable[[], None]) -> Iterator[None]:
    """While the block runs, SIGINT (Ctrl-C) and SIGTERM call `handle` in place of what they did before."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        handle()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
