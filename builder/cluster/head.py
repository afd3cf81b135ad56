"""Answers what nodes ask: the head alone writes the ledger and the cache, and lets calls begin.

Nothing here waits for anything but the disk: whoever would have to wait is told so, and asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from stepdown.builder.cache.responses import entry_of
from stepdown.builder.cluster.dispatch import MOST_DEATHS, Dispatch
from stepdown.builder.cluster.messages import (
    NO_ATTEMPT,
    AskPermit,
    AttemptFinished,
    CallUnpaid,
    FindAnswer,
    FoundAnswer,
    HeadReply,
    HeadState,
    KeepAnswer,
    LedgerCall,
    NodeRequest,
    PauseModel,
    ProgressNote,
    RequestEnded,
    WriteTrial,
)
from stepdown.builder.cluster.permits import Permits
from stepdown.builder.engine.context import Job
from stepdown.builder.engine.executor import RunHoldings
from stepdown.builder.errors import Interrupted, RunStopped, StepdownError
from stepdown.builder.records import Response
from stepdown.builder.run.ledger import InstanceState

_LEDGER_CALLS = (
    "trials",
    "book_ahead",
    "hint",
    "record_hint",
    "shapes",
    "keep_shapes",
    "set_seed",
    "finish",
    "drop",
    "block",
)
_TOLD = frozenset({"on_lock", "on_error", "on_blocked", "notify", "hit"})


class GivenUp(Interrupted):
    """The head has given up the attempt that asks, and handed its instance to another process."""


class Head:
    """A run's one ledger, cache, budget and progress, for the processes on the nodes. Threads share one."""

    def __init__(self, holdings: RunHoldings, dispatch: Dispatch) -> None:
        self._dispatch, self._ledger, self._store = dispatch, holdings.run.ledger, holdings.store
        self._budget, self._exam = holdings.budget, holdings.exam
        self._progress, self._stop = holdings.progress, holdings.stop
        self._models = holdings.run.config.protocol.models
        self._permits = Permits(self._models, holdings.run.config.operation)
        self._processes: set[str] = set()
        ledger = holdings.run.ledger
        self._ledger_calls: Mapping[str, Callable[..., Any]] = {
            "stored": ledger.trajectories.stored,
            **{name: getattr(ledger, name) for name in _LEDGER_CALLS},
        }

    def state(self) -> HeadState:
        """What every process is told again and again."""
        return HeadState(self._budget.reached, self._permits.pauses())

    def answer(self, process: str, asked: NodeRequest) -> HeadReply | None:
        """The reply to a process's request; None where none is waited for."""
        attempt, request = asked.attempt, asked.request
        self._processes.add(process)
        try:
            value = self._limit(process, request) if attempt == NO_ATTEMPT else self._handle(attempt, request)
        except StepdownError as error:
            return HeadReply(asked.number, None, error)
        return HeadReply(asked.number, value) if asked.number else None

    def _limit(self, process: str, request: Any) -> Any:
        """What belongs to a process, and to none of its attempts."""
        if isinstance(request, ProgressNote):
            return self._note(NO_ATTEMPT, request)
        if isinstance(request, RequestEnded):
            return self._permits.end(request)
        if isinstance(request, PauseModel):
            return self._permits.pause(request)
        assert isinstance(request, AskPermit)
        return self._permits.admit(process, request, len(self._processes))

    def _handle(self, attempt: int, request: Any) -> Any:
        """What belongs to an attempt."""
        if isinstance(request, ProgressNote):
            return self._note(attempt, request)
        if isinstance(request, AttemptFinished):
            return self._dispatch.finish(attempt, request.error)
        if isinstance(request, CallUnpaid):
            if self._dispatch.end_call(attempt, request.model):
                self._budget.end(None)
            return None
        if isinstance(request, KeepAnswer):
            return self._keep(attempt, request)
        if self._dispatch.job_of(attempt) is None:
            raise GivenUp("the instance was handed to another process")
        if isinstance(request, FindAnswer):
            return self._look(attempt, request)
        if isinstance(request, WriteTrial):
            return self._record(attempt, request)
        assert isinstance(request, LedgerCall)
        return self._ledger_calls[request.method](*request.arguments)

    def _look(self, attempt: int, look: FindAnswer) -> FoundAnswer:
        values = [] if look.none_serves else [self._store.get(key) for key in look.keys]
        if any(value is not None for value in values):
            return FoundAnswer(values, begun=False)
        if not self._budget.try_begin():
            return FoundAnswer((), begun=False)
        self._dispatch.begin_call(attempt, look.model)
        return FoundAnswer((), begun=True)

    def _keep(self, attempt: int, keep: KeepAnswer) -> str:
        """Book and keep a paid answer. One of an attempt that was given up is kept too, unless the question has an
        answer by now: whoever works on the instance may have acted upon that.
        """
        model = self._models[keep.model]
        is_ours = self._dispatch.end_call(attempt, keep.model)
        if is_ours:
            self._budget.end(model.price.cost(keep.usage))
            self._progress.on_call(model, Response(usage=keep.usage), True)
        key, *exact = keep.keys
        if exact and entry_of(key, self._store.get(key)) is not None:
            key = exact[0]
        if is_ours or self._store.get(key) is None:
            self._store.put(key, keep.entry)
        return key

    def _record(self, attempt: int, record: WriteTrial) -> int:
        trial = self._ledger.record(record.entry)
        self._dispatch.note_progress(attempt)
        if self._exam.note(record.entry.grading):
            self._stop.set()
        return trial

    def _note(self, attempt: int, told: ProgressNote) -> None:
        if told.what not in _TOLD:
            raise ValueError(f"nodes do not tell of {told.what!r}")
        if told.what == "hit":
            self._progress.on_hit()
        elif told.what == "on_blocked":
            if (job := self._dispatch.job_of(attempt)) is not None:
                self._progress.on_blocked(job.instance, *told.arguments)
        elif told.what == "on_lock":
            if self._dispatch.note_lock(attempt):
                self._progress.on_lock()
        elif attempt == NO_ATTEMPT or self._dispatch.job_of(attempt) is not None:
            getattr(self._progress, told.what)(*told.arguments)

    def give_up(self, process: str, attempts: Iterable[int]) -> None:
        """Hand out again what a process had in hand. Its calls in hand count as paid: they may have been, and no budget
        of calls is exceeded. What they cost is not known, and is not counted.
        """
        lost = self._dispatch.give_up(attempts)
        for _ in range(lost.calls):
            self._budget.end(0.0)
        self._progress.on_lost(lost.steps)
        for job in lost.deadly:
            self._give_up_on(job)
        self._permits.end_all(process)
        self._processes.discard(process)

    def _give_up_on(self, job: Job) -> None:
        """Leave out an instance that processes die of: it waits for a resume, where it has no labels yet."""
        reason = f"{MOST_DEATHS} processes in a row died with it in hand"
        if job.record.state is not InstanceState.OPEN:
            return self._dispatch.fail(RunStopped(f"{job.instance.benchmark}/{job.instance.id}: {reason}"))
        self._ledger.block(job.record.id, reason)
        self._progress.on_blocked(job.instance, reason)
        self._dispatch.note_done(job)
        return None
