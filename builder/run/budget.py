"""What a run has paid and may still pay. No call is begun once a budget is reached; what was begun is kept.

The ledger books a call with the trial that asked for it, so a process that is killed leaves calls behind that it paid
and did not book. The run's total is therefore also kept in a file of its own, rewritten in place at every call.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from stepdown.builder.config.operation import Budget
from stepdown.builder.config.pool import Model
from stepdown.builder.errors import BadInput, BudgetReached, Interrupted
from stepdown.builder.records import Usage
from stepdown.builder.run.spent import FILE_NAME, Spent

_WIDTH = 80
"""Bytes of the file, the same for any total: one write replaces it, and a kill cannot leave half of one."""
_LOOK = 0.2
"""Seconds between two looks at `stop` while a call waits for others to end."""


class _InHand:
    """One call that is being made. A class, since a context manager made of a generator costs time at every call."""

    __slots__ = ("_guard", "_model", "_usd")

    def __init__(self, guard: BudgetGuard, model: Model) -> None:
        self._guard, self._model = guard, model
        self._usd: float | None = None

    def pay(self, usage: Usage) -> None:
        """The call's usage, once it has been answered."""
        self._usd = self._model.price.cost(usage)

    def __enter__(self) -> Callable[[Usage], None]:
        self._guard.begin()
        return self.pay

    def __exit__(self, *_: object) -> None:
        self._guard.end(self._usd)


class BudgetGuard:
    """A run's budget and what was spent of it. Threads share one; a context manager while the run works.

    Of `calls` none is exceeded: a call that might be one too many waits until those in hand have ended. What a call
    costs is known when it has ended, so `usd` is exceeded by the calls in hand at most. `wall_clock` sets `stop`; it
    runs from the first time that the run works on, whatever it does then.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        already: Spent | None = None,
        folder: Path | None = None,
        stop: threading.Event | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`already` is what earlier processes of the run paid; the total is kept in `folder`. `clock` tells seconds."""
        self._budget = budget or Budget()
        already = already or Spent()
        self._calls, self._usd = already.calls, already.usd
        self._folder = folder
        self._stop = stop or threading.Event()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._waiting = 0
        self._in_hand = 0
        self._file: int | None = None
        self._clock = clock
        self._began: float | None = None
        self._timer: threading.Timer | None = None
        self._time_is_up = False
        self._stopped_by: BudgetReached | None = None

    @property
    def spent(self) -> Spent:
        return Spent(self._calls, self._usd)

    @property
    def stopped_by(self) -> BudgetReached | None:
        """The budget that ended the run's work; None where none did."""
        return self._stopped_by

    def __enter__(self) -> BudgetGuard:
        if self._folder is not None:
            path = self._folder / FILE_NAME
            try:
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
                self._write_total()
                os.ftruncate(self._file, _WIDTH)
            except OSError as error:
                raise BadInput(f"what is paid can not be kept: {error.strerror}", file=path) from None
        if self._budget.wall_clock is not None:
            if self._began is None:
                self._began = self._clock()
            left = max(0.0, self._began + self._budget.wall_clock - self._clock())
            self._timer = threading.Timer(min(left, threading.TIMEOUT_MAX), self._end)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def call(self, model: Model) -> _InHand:
        """Held while a call is made; what it gives is told the call's usage. Entering raises BudgetReached instead of
        beginning a call, and Interrupted where the run was asked to stop while the call waited.
        """
        return _InHand(self, model)

    @property
    def reached(self) -> BudgetReached | None:
        """The budget that is reached; None where calls may be begun."""
        with self._lock:
            return self._reached()

    def check(self) -> None:
        """Raises BudgetReached where a budget is reached: for what waits between a call's start and its request."""
        with self._lock:
            self._refuse_where_reached()

    def begin(self) -> None:
        """Count a call as in hand, as soon as it may begin."""
        most = self._budget.calls
        with self._lock:
            self._refuse_where_reached()
            while most is not None and self._calls + self._in_hand >= most:
                self._wait()
            self._in_hand += 1

    def try_begin(self) -> bool:
        """`begin` for whoever can not be kept waiting: whether the call may begin now, and is counted as in hand."""
        most = self._budget.calls
        with self._lock:
            self._refuse_where_reached()
            if most is not None and self._calls + self._in_hand >= most:
                return False
            self._in_hand += 1
            return True

    def _wait(self) -> None:
        """Wait for a call in hand to end."""
        if self._stop.is_set():
            raise Interrupted("the run was asked to stop")
        self._waiting += 1
        self._changed.wait(_LOOK)
        self._waiting -= 1
        self._refuse_where_reached()

    def _refuse_where_reached(self) -> None:
        reached = self._reached()
        if reached is None:
            return
        if not self._stop.is_set():  # else a person was first
            self._stopped_by = reached
        raise reached

    def _reached(self) -> BudgetReached | None:
        budget = self._budget
        if budget.calls is not None and self._calls >= budget.calls:
            return BudgetReached("calls", f"{self._calls} of {budget.calls} calls")
        if budget.usd is not None and self._usd >= budget.usd:
            return BudgetReached("usd", f"${self._usd:.4f} of ${budget.usd:g}")
        if self._time_is_up:
            return BudgetReached("wall_clock", f"{budget.wall_clock:g} seconds")
        return None

    def end(self, usd: float | None) -> None:
        """A call is no more in hand; `usd` is what it cost, None where nothing was paid for."""
        with self._lock:
            self._in_hand -= 1
            if usd is not None:
                self._calls, self._usd = self._calls + 1, self._usd + usd
                self._write_total()
            if self._waiting:
                self._changed.notify_all()

    def _write_total(self) -> None:
        if self._file is not None:
            text = f'{{"calls": {self._calls}, "usd": {self._usd:.9f}}}'
            os.pwrite(self._file, text.ljust(_WIDTH - 1).encode() + b"\n", 0)

    def _end(self) -> None:
        with self._lock:
            self._time_is_up = True
            if not self._stop.is_set():
                self._stopped_by = self._reached()
                self._stop.set()
            self._changed.notify_all()
