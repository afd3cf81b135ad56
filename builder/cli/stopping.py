"""Ends a command's work when its person asks for it, and says how to go on."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from stepdown.builder.cli import console
from stepdown.builder.cli.main import INTERRUPTED
from stepdown.builder.common.signals import handle_end_signals


@contextmanager
def stop_on_signals(stop: threading.Event, go_on: str) -> Iterator[None]:
    """Ctrl-C ends the work after the calls in hand, and says how to `go_on`; a second one ends it at once."""

    def handle() -> None:
        if stop.is_set():
            console.stderr().show_cursor(True)
            os._exit(INTERRUPTED)
        stop.set()
        console.notify(f"stopping after the calls in hand (once more to stop at once); go on with: {go_on}")

    with handle_end_signals(handle):
        yield
