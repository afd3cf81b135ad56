"""The calls of one instance: each is answered from the cache, or made once, kept and counted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from stepdown.builder.cache.question import Question
from stepdown.builder.cache.responses import Answer, Answers
from stepdown.builder.config.pool import WORKLOAD, Model
from stepdown.builder.errors import Technical
from stepdown.builder.models import Completion
from stepdown.builder.records import Call, Instance, Prefix, Reasoning, Receipt, Response, Sample
from stepdown.builder.run.budget import BudgetGuard
from stepdown.harnesses.base import Harness
from stepdown.harnesses.checked import answered


class Provider(Protocol):
    """Where responses are bought: `models.Client`. Raises Technical, RunStopped or Interrupted."""

    def complete(
        self, model: Model, prefix: Prefix, sample: Sample, reasoning: Mapping[int, Reasoning], grows: bool
    ) -> Completion: ...


class NoAnswer(Technical):
    """The workload's pseudo-model has no answer for this instance: that says nothing about its tier."""


OnCall = Callable[[Model, Response, bool], None]
"""Told of every answer: the model, its response, and whether the call was made just now."""


class QuestionLocks:
    """Lets only one thread at a time ask a question. The others then find its answer and do not pay for it again."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._question_locks: dict[str, threading.Lock] = {}

    def of(self, key: str) -> threading.Lock:
        """Held while the question of this key is asked."""
        with self._guard:
            return self._question_locks.setdefault(key, threading.Lock())


class Calls:
    """Asks models about one instance. Used by one thread. `take_receipt` says which calls were made."""

    def __init__(
        self,
        instance: Instance,
        harness: Harness,
        provider: Provider,
        cache: Answers,
        on_call: OnCall | None = None,
        budget: BudgetGuard | None = None,
        locks: QuestionLocks | None = None,
    ) -> None:
        """`locks` are shared by all threads that ask about this instance; None where there is one thread only."""
        self._instance, self._harness = instance, harness
        self._provider, self._cache, self._on_call = provider, cache, on_call
        self._budget = budget or BudgetGuard()
        self._question_locks = locks
        self._receipt = Receipt()

    def question(
        self,
        model: Model,
        prefix: Prefix,
        step: int,
        sample: Sample,
        reasoning: Mapping[int, Reasoning] | None = None,
        grows: bool = False,
    ) -> Question:
        """A question about this instance, as the cache keys it; `reasoning` is the model's own behind its earlier
        steps, by the place of their messages. `grows`: later questions go on from this prefix.
        """
        return Question(
            workload=self._harness.name,
            harness_version=self._harness.version,
            instance=self._instance.id,
            step=step,
            model=model,
            prefix=prefix,
            sample=sample,
            reasoning=reasoning or {},
            grows=grows,
        )

    def fetch(self, question: Question) -> Answer:
        """The answer to a question: the cache's, or a new one, which is kept before this returns."""
        if self._question_locks is None:
            answer = self._cache.get_or_ask(question, self._buy)
        else:
            with self._question_locks.of(question.key()):
                answer = self._cache.get_or_ask(question, self._buy)
        entry, response = answer.entry, answer.response
        # Where the run paid for a call and was killed before it recorded it, the cache still says that this run paid.
        paid = entry.run == self._cache.run
        self._receipt.calls.append(
            Call(
                entry.key,
                question.model.name,
                response.usage,
                paid,
                response.reported_usd,
                response.usage_is_estimated,
            )
        )
        if self._on_call:
            self._on_call(question.model, response, answer.fresh)
        return answer

    def _buy(self, question: Question) -> Response:
        """Pay for a new response. Raises BudgetReached where nothing more may be spent."""
        with self._budget.call(question.model) as pay:
            response = self._request(question)
            pay(response.usage)
        return response

    def _request(self, question: Question) -> Response:
        model = question.model
        if not model.model.startswith(WORKLOAD):
            completion = self._provider.complete(
                model, question.prefix, question.sample, question.reasoning, question.grows
            )
            self._receipt.attempts += completion.attempts
            return completion.response
        name = model.model.removeprefix(WORKLOAD)
        response = answered(self._harness, name, self._instance, question.prefix, question.sample)
        if response is None:
            raise NoAnswer(f"the workload has no {name} answer for this instance")
        return response

    def note_failed(self, attempts: Sequence[str]) -> None:
        """Keep the errors of a call that gave no response."""
        self._receipt.attempts += attempts

    def take_receipt(self) -> Receipt:
        """Return the calls and errors since the last receipt, and begin a new one."""
        taken, self._receipt = self._receipt, Receipt()
        return taken
