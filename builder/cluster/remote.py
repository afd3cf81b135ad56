"""What work on an instance uses of a run, where the run is at the head: its ledger and its answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from stepdown.builder.actions.rereading import READING
from stepdown.builder.cache.question import Question
from stepdown.builder.cache.responses import Answer, Entry, keys_of, served
from stepdown.builder.cluster.messages import CallUnpaid, FindAnswer, FoundAnswer, KeepAnswer, LedgerCall, WriteTrial
from stepdown.builder.cluster.request_queue import AttemptRequests
from stepdown.builder.errors import Interrupted
from stepdown.builder.records import Lock, Mask, Receipt, Response, Trajectory
from stepdown.builder.run.ledger import TrialEntry, TrialRecord
from stepdown.builder.run.ledger.trajectories import AddedStep, StoredSteps, Text

_LOOK = 0.2
"""Seconds between two looks while the budget has a call waiting."""


class RemoteAnswers:
    """`Cache` and `BudgetGuard` in one: a look begins the call that is needed, keeping its answer ends it."""

    def __init__(self, requests: AttemptRequests, run: str, stop: threading.Event) -> None:
        self._requests, self._run, self._stop = requests, run, stop

    @property
    def run(self) -> str:
        return self._run

    def get_or_ask(self, question: Question, ask: Callable[[Question], Response]) -> Answer:
        """The kept response, else a new one from `ask`, which is on the head's disk when this returns.

        Raises BudgetReached, and Interrupted where the run is to stop while the call waits for the budget.
        """
        keys = keys_of(question)
        if (found := self._look(question, keys)) is not None:
            return Answer(found, fresh=False)
        try:
            response = ask(question)
        except BaseException:
            self._requests.tell(CallUnpaid(question.model.name))
            raise
        entry = Entry(keys[0], question.prefix.exact, response, self._run, READING)
        key = self._requests.ask(KeepAnswer(keys, entry.to_json(), question.model.name, response.usage))
        return Answer(entry._replace(key=key), fresh=True)

    def _look(self, question: Question, keys: Sequence[str]) -> Entry | None:
        """The entry that answers the question; None where a call has been begun to get one."""
        look = FindAnswer(keys, question.model.name)
        while True:
            looked: FoundAnswer = self._requests.ask(look)
            if looked.begun:
                return None
            for key, value in zip(keys, looked.values, strict=False):
                if (entry := served(question, key, value)) is not None:
                    return entry
            if looked.values:
                look = look._replace(none_serves=True)
            elif self._stop.wait(_LOOK):
                raise Interrupted("the run was asked to stop")


class KnownTexts:
    """Which texts the head's ledger holds, as far as a process knows: they are not sent again. Threads share one."""

    _MOST = 100_000

    def __init__(self) -> None:
        self._digests: set[str] = set()

    def without(self, steps: Sequence[AddedStep]) -> tuple[AddedStep, ...]:
        """The steps, named by their digests only where the texts are known."""
        return tuple(
            step._replace(
                messages=tuple(map(self._short, step.messages)), tools=self._short(step.tools) if step.tools else None
            )
            for step in steps
        )

    def _short(self, text: Text) -> Text:
        return (text[0], None) if text[0] in self._digests else text

    def note(self, steps: Sequence[AddedStep]) -> None:
        """The ledger has these steps now."""
        if len(self._digests) >= self._MOST:
            self._digests = set()
        for step in steps:
            self._digests.update(digest for digest, _ in step.messages)
            if step.tools:
                self._digests.add(step.tools[0])


class RemoteTrajectories:
    """Reads back what trials came to."""

    def __init__(self, requests: AttemptRequests) -> None:
        self._requests = requests

    def read(self, trial: int, mask: Mask | None = None) -> Trajectory:
        """The steps that a trial's record holds; their prefixes are made here, under this process's mask."""
        stored: StoredSteps = self._requests.ask(LedgerCall("stored", (trial,)))
        return stored.trajectory(mask)


class RemoteLedger:
    """`LabellingLedger` at the head. What is written stands there when a method returns."""

    def __init__(self, requests: AttemptRequests, known: KnownTexts) -> None:
        self._requests, self._known = requests, known
        self.trajectories = RemoteTrajectories(requests)

    def _call(self, method: str, *arguments: Any) -> Any:
        return self._requests.ask(LedgerCall(method, arguments))

    def trials(self, instance: int) -> list[TrialRecord]:
        found: list[TrialRecord] = self._call("trials", instance)
        return found

    def record(self, entry: TrialEntry) -> int:
        trial_id: int = self._requests.ask(WriteTrial(replace(entry, steps=self._known.without(entry.steps))))
        self._known.note(entry.steps)
        return trial_id

    def book_ahead(self, instance: int, receipt: Receipt) -> None:
        self._call("book_ahead", instance, receipt)

    def hint(self, instance: int, step: int) -> tuple[bool, int | None]:
        found: tuple[bool, int | None] = self._call("hint", instance, step)
        return found

    def record_hint(self, instance: int, step: int, tier: int | None, receipt: Receipt) -> None:
        self._call("record_hint", instance, step, tier, receipt)

    def shapes(self, instance: int) -> tuple[str, ...]:
        found: tuple[str, ...] = self._call("shapes", instance)
        return found

    def keep_shapes(self, instance: int, shapes: Sequence[str]) -> None:
        self._call("keep_shapes", instance, tuple(shapes))

    def set_seed(self, instance: int, trial: int) -> None:
        self._call("set_seed", instance, trial)

    def finish(self, instance: int, final: int, locks: Sequence[Lock]) -> None:
        self._call("finish", instance, final, tuple(locks))

    def drop(self, instance: int, reason: str) -> None:
        self._call("drop", instance, reason)

    def block(self, instance: int, reason: str) -> None:
        self._call("block", instance, reason)
