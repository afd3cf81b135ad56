"""Does many independent pieces of work at once. Threads do it here; a cluster would be another class of `Workers`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Workers(Protocol):
    """Something that does work on many items at once."""

    def run(self, items: Iterable[T], work: Callable[[T], None]) -> None:
        """Do `work` for every item. Whenever a worker is free it takes the next item.

        After the first error no further item is taken; items that were begun are finished, then the error is raised.
        """


class Threads:
    """`count` threads. Once `stop` is set, no further item is taken."""

    def __init__(self, count: int, stop: threading.Event) -> None:
        self._count, self._stop = count, stop

    def run(self, items: Iterable[T], work: Callable[[T], None]) -> None:
        iterator, taking = iter(items), threading.Lock()
        errors: list[BaseException] = []

        def loop() -> None:
            try:
                while not self._stop.is_set():
                    with taking:
                        item = next(iterator, None)
                    if item is None:
                        return
                    work(item)
            except BaseException as error:
                errors.append(error)
                self._stop.set()

        threads = [threading.Thread(target=loop, name=f"worker-{n}", daemon=True) for n in range(self._count)]
        for thread in threads:
            thread.start()
        try:
            self._wait_for(threads)
        except KeyboardInterrupt:  # nobody handles the signal otherwise: what is in hand must not outlive the run
            self._stop.set()
            self._wait_for(threads)
            raise
        if errors:
            raise errors[0]

    def _wait_for(self, threads: Iterable[threading.Thread]) -> None:
        """In short waits, so that a signal is handled while the workers finish."""
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
