"""Does many independent pieces of work at once, in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


class Threads:
    """`count` threads. Whenever one is free it takes the next item; once `stop` is set, no further one is taken."""

    def __init__(self, count: int, stop: threading.Event) -> None:
        self._count, self._stop = count, stop

    def run(self, items: Iterable[T], work: Callable[[T], None]) -> None:
        """Do `work` for every item.

        After the first error no further item is taken; items that were begun are finished, then the error is raised.
        """
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
