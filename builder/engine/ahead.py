"""Trials executed before a search asks for them, by threads that are free. One that it never asks for was in vain."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from stepdown.builder.engine.trials import Executed
from stepdown.builder.records import Outcome, Trajectory, Trial

_Place = tuple[int, int, str, int]
"""What tells a trial of one search from the others: step, tier, model, sample."""

Known = Callable[[Trial], Outcome | None]
"""The outcome of a trial that the search has asked for; None of one that it has not, or not yet."""
Foresee = Callable[[Known, int], Iterable[tuple[Trajectory, Trial]]]
"""The trials that the search asks for next as far as can be told, in order, not more than so many."""
ExecuteAhead = Callable[[Trajectory, Trial, threading.Event], Executed]
"""Executes a trial; once the event is set, no further step of it is begun."""


def _place(trial: Trial) -> _Place:
    return trial.step, trial.tier, trial.model, trial.sample.number


@dataclass(frozen=True, slots=True)
class _Begun:
    """A trial that was begun ahead, from a current trajectory."""

    current: Trajectory
    future: Future[Executed | None]
    abandoned: threading.Event = field(default_factory=threading.Event)

    def abandon(self) -> None:
        self.abandoned.set()
        self.future.cancel()


class RunningAhead:
    """Executes up to `count` trials that a search is about to ask for. A context manager: what is in hand at its end is
    given up and waited for.

    The search takes what was executed as if it had been executed at that moment, so all that follows is the same.
    """

    def __init__(self, count: int, foresee: Foresee, execute: ExecuteAhead) -> None:
        self._count, self._foresee, self._execute = count, foresee, execute
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(count)
        self._known: dict[_Place, Outcome] = {}
        self._asked: set[_Place] = set()
        self._begun: dict[_Place, _Begun] = {}

    def take(self, current: Trajectory, trial: Trial) -> Executed | None:
        """What was executed ahead for a trial that the search asks for now; None where it is still to be executed.

        Before this waits, what is foreseen after it is begun.
        """
        with self._lock:
            self._asked.add(_place(trial))
            begun = self._begun.pop(_place(trial), None)
            self._begin_foreseen()
        if begun is None:
            return None
        if begun.current is not current:
            begun.abandon()
            return None
        if begun.future.cancel():  # no thread was free for it: the search's own is
            return None
        return begun.future.result()

    def note(self, trial: Trial, outcome: Outcome) -> None:
        """The search has the outcome of a trial; with a trajectory where it is accepted only."""
        with self._lock:
            self._asked.discard(_place(trial))
            self._known[_place(trial)] = outcome

    def _begin_foreseen(self) -> None:
        """Begin what is foreseen, and give up what no more is."""
        foreseen: dict[_Place, _Begun] = {}
        for current, trial in self._foresee(lambda one: self._known.get(_place(one)), self._count + len(self._asked)):
            place = _place(trial)
            if place in self._asked or len(foreseen) == self._count:
                continue
            begun = self._begun.get(place)
            foreseen[place] = begun if begun and begun.current is current else self._begin(current, trial)
        for place, begun in self._begun.items():
            if foreseen.get(place) is not begun:
                begun.abandon()
        self._begun = foreseen

    def _begin(self, current: Trajectory, trial: Trial) -> _Begun:
        abandoned = threading.Event()
        return _Begun(current, self._threads.submit(self._work, current, trial, abandoned), abandoned)

    def _work(self, current: Trajectory, trial: Trial, abandoned: threading.Event) -> Executed | None:
        """What the trial came to; None where something kept it from its end: the search meets that if it needs the
        trial, and nothing that was paid for is paid again.
        """
        try:
            return None if abandoned.is_set() else self._execute(current, trial, abandoned)
        except Exception:
            return None

    def __enter__(self) -> RunningAhead:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            for begun in self._begun.values():
                begun.abandon()
        self._threads.shutdown()
