"""The calls of one instance: each answered from the cache, or made once, kept, and accounted for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from stepdown.builder.cache.question import Question
from stepdown.builder.cache.responses import Answer, Cache
from stepdown.builder.config.pool import WORKLOAD, Model
from stepdown.builder.errors import StepdownError
from stepdown.builder.models import Completion
from stepdown.builder.records import Call, Instance, Prefix, Receipt, Response, Sample
from stepdown.builder.run.budget import BudgetGuard
from stepdown.harnesses.base import Harness


class Provider(Protocol):
    """Where responses are bought: `models.Client`. Raises Technical, RunStopped or Interrupted."""

    def complete(self, model: Model, prefix: Prefix, sample: Sample) -> Completion: ...


class NoAnswer(StepdownError):
    """The workload's pseudo-model has no answer for this instance."""


OnCall = Callable[[Model, Response, bool], None]
"""Told of every call: the model, its response, and whether it was made now."""


class QuestionLocks:
    """Lets one thread at a time ask a question, so that others find its answer instead of paying for it again."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._question_locks: dict[str, threading.Lock] = {}

    def of(self, key: str) -> threading.Lock:
        """Held while the question of this key is asked."""
        with self._guard:
            return self._question_locks.setdefault(key, threading.Lock())


class Calls:
    """Asks models about one instance. Used by one thread; `take_receipt` says what it took."""

    def __init__(
        self,
        instance: Instance,
        harness: Harness,
        provider: Provider,
        cache: Cache,
        on_call: OnCall | None = None,
        budget: BudgetGuard | None = None,
        locks: QuestionLocks | None = None,
    ) -> None:
        """`locks` are shared by the threads that ask about one instance at once, where there are several."""
        self._instance, self._harness = instance, harness
        self._provider, self._cache, self._on_call = provider, cache, on_call
        self._budget = budget or BudgetGuard()
        self._question_locks = locks
        self._receipt = Receipt()

    def question(self, model: Model, prefix: Prefix, step: int, sample: Sample) -> Question:
        """A question about this instance, as the cache keys it."""
        return Question(
            workload=self._harness.name,
            harness_version=self._harness.version,
            instance=self._instance.id,
            step=step,
            model=model,
            prefix=prefix,
            sample=sample,
        )

    def fetch(self, question: Question) -> Answer:
        """The answer to a question: the cache's, or a new one, which is kept before this returns."""
        if self._question_locks is None:
            answer = self._cache.get_or_ask(question, self._buy)
        else:
            with self._question_locks.of(question.key()):
                answer = self._cache.get_or_ask(question, self._buy)
        entry, response = answer.entry, answer.response
        # A call that this run paid for and was killed before it could record stands in the cache under its name.
        paid = entry.run == self._cache.run
        self._receipt.calls.append(Call(entry.key, question.model.name, response.usage, paid))
        if self._on_call:
            self._on_call(question.model, response, answer.fresh)
        return answer

    def _buy(self, question: Question) -> Response:
        """A new response. Raises BudgetReached where none may be paid for."""
        with self._budget.call(question.model) as pay:
            response = self._request(question)
            pay(response.usage)
        return response

    def _request(self, question: Question) -> Response:
        model = question.model
        if not model.model.startswith(WORKLOAD):
            completion = self._provider.complete(model, question.prefix, sample=question.sample)
            self._receipt.attempts += completion.attempts
            return completion.response
        name = model.model.removeprefix(WORKLOAD)
        response = self._harness.answer(name, self._instance, question.prefix, question.sample)
        if response is None:
            raise NoAnswer(f"the workload has no {name} answer for this instance")
        return response

    def note_failed(self, attempts: Sequence[str]) -> None:
        """Errors of a call that never came to a response."""
        self._receipt.attempts += attempts

    def take_receipt(self) -> Receipt:
        """What was needed and paid for since the last receipt."""
        taken, self._receipt = self._receipt, Receipt()
        return taken
