"""Executes one task, every call by the model that a policy chooses, to the workload's own verdict."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from stepdown.builder.cache.question import Question
from stepdown.builder.cache.responses import Answer, Cache
from stepdown.builder.common.faults import said
from stepdown.builder.config.pool import Model
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.engine.calls import Calls, OnCall, Provider
from stepdown.builder.engine.replay import Replayer
from stepdown.builder.errors import BadInput, StepdownError
from stepdown.builder.records import Instance, Outcome, Prefix, Ruling, Sample, Step
from stepdown.builder.run.budget import BudgetGuard
from stepdown.harnesses.base import Harness
from stepdown.judges.panel import rule_on_case
from stepdown.routing.live.prompt_caches import PromptCaches
from stepdown.routing.live.records import LiveStep
from stepdown.routing.live.store import LiveStore
from stepdown.routing.policies.contract import Choice, NoChoice, Offer, Policy, View, checked

MOST_CALLS = 250
"""Of one task, where nothing else is said: a policy's agent that never halts must end some day."""
DRAW = Sample("live", 0)
"""Policies that ask one model the same question are given the same answer: what differs between them is the policy."""


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """What a live run depends on, beside its policies, pool and workloads."""

    cache_life: float = 300.0
    """Seconds for which a provider keeps a prompt."""
    penalty: float = 0.60
    """USD added to the bill for each unresolved task (paper)."""
    most_calls: int = MOST_CALLS


@dataclass(frozen=True, slots=True)
class Apparatus:
    """What all tasks of a live run share."""

    protocol: ProtocolConfig
    settings: LiveSettings
    store: LiveStore
    cache: Cache
    provider: Provider
    budget: BudgetGuard
    stop: threading.Event
    on_call: OnCall | None = None
    clock: Callable[[], float] = time.time
    usd_budget: float | None = None
    """What all tasks of a run may cost; None: no limit."""

    @property
    def usd_left(self) -> float | None:
        return None if self.usd_budget is None else max(0.0, self.usd_budget - self.budget.spent.usd)


class _Timed(Calls):
    """Calls that remember when the last one was begun, how long it took, and whether it was made just now."""

    def __init__(self, *parts: Any, clock: Callable[[], float]) -> None:
        super().__init__(*parts)
        self._clock = clock
        self.last = (0.0, 0.0, False)

    def fetch(self, question: Question) -> Answer:
        at, began = self._clock(), time.monotonic()
        answer = super().fetch(question)
        self.last = (at, time.monotonic() - began, answer.fresh)
        return answer


class Driver:
    """Executes one task under one policy. Steps that the store has are made again as they were: the same model, the
    cached answer, at the time and price of then.
    """

    def __init__(self, policy: Policy, instance: Instance, harness: Harness, shared: Apparatus) -> None:
        self._policy, self._instance, self._shared = policy, instance, shared
        self._pool = shared.protocol.pool
        self._tiers = tuple(tier.name for tier in self._pool.tiers)
        self._tier_of = {model.name: self._tiers[index] for index, model in self._pool.models()}
        self._made = shared.store.steps(policy.name, *instance.key)
        self._caches = PromptCaches(shared.settings.cache_life)
        self._spent = 0.0
        self._choices: dict[int, tuple[Model, str, bool]] = {}
        self._calls = _Timed(
            instance, harness, shared.provider, shared.cache, shared.on_call, shared.budget, clock=shared.clock
        )
        panel = shared.protocol.judge
        judge = (
            partial(rule_on_case, panel=panel, source=self._calls, subject="/".join(instance.key)) if panel else None
        )
        self._replayer = Replayer(instance, harness, self._pool, self._calls, judge, shared.stop)

    def execute(self) -> Outcome:
        """The task's outcome, which is kept before this returns. Raises Interrupted, RunStopped, BudgetReached, and
        BadInput where the policy breaks.
        """
        self._caches, self._spent = PromptCaches(self._shared.settings.cache_life), 0.0
        outcome = self._replayer.route(self._choose, self._keep, DRAW, self._shared.settings.most_calls)
        ruling = Ruling(outcome.verdict, outcome.reason, outcome.grading)
        self._shared.store.end(self._policy.name, self._instance, ruling)
        return outcome

    def _choose(self, prefix: Prefix, steps: Sequence[Step]) -> str:
        """The name of the model for the next call: that of then, where it was made before."""
        number = len(steps) + 1
        if number == 1:  # an environment that was lost is begun anew
            self._caches, self._spent = PromptCaches(self._shared.settings.cache_life), 0.0
        if number <= len(self._made):
            before = self._made[number - 1]
            self._choices[number] = (self._pool.by_name[before.model], before.reason, before.fell_back)
            return before.model
        model, reason, fell_back = self._decide(self._view(prefix, number))
        self._choices[number] = (model, reason, fell_back)
        return model.name

    def _decide(self, view: View) -> tuple[Model, str, bool]:
        strong = self._pool.tiers[-1].models[0]
        try:
            choice = checked(self._policy.choose(view), view, self._policy.name)
        except NoChoice as none:
            return strong, str(none), True
        except StepdownError:
            raise
        except Exception as error:  # whatever code of anybody's raises
            raise BadInput(
                f"policy {self._policy.name!r} broke at {view.instance}/{view.step}: {said(error)}"
            ) from None
        return self._named(choice), choice.reason, False

    def _named(self, choice: Choice) -> Model:
        if choice.model is not None:
            return self._pool.by_name[choice.model]
        return self._pool.tiers[self._tiers.index(choice.tier)].models[0]

    def _view(self, prefix: Prefix, number: int) -> View:
        now = self._shared.clock()
        offers = []
        for tier in self._pool.tiers:
            for model in tier.models:
                held, age = self._caches.held(model.name, prefix, now)
                offers.append(Offer(model.name, tier.name, model.price, held, age))
        return View(
            messages=prefix.messages,
            tools=prefix.tools,
            step=number,
            tiers=self._tiers,
            models=tuple(offers),
            instance="/".join(self._instance.key),
            spent_usd=self._spent,
            budget_usd=self._shared.usd_left,
        )

    def _keep(self, step: Step, number: int) -> None:
        """Charge and keep a step that was made; one that is kept already is charged as it was."""
        model, reason, fell_back = self._choices[number]
        known = self._made[number - 1] if number <= len(self._made) else None
        at, seconds, fresh = (known.at, known.seconds, known.paid) if known else self._calls.last
        usage = self._caches.charge(model.name, step.prefix, step.response.usage, at)
        usd = model.price.cost(usage)
        self._spent += usd
        if known is None:
            tier = self._tier_of[model.name]
            made = LiveStep(number, model.name, tier, at, round(seconds, 6), usage, usd, fresh, reason, fell_back)
            self._shared.store.add_step(self._policy.name, self._instance, made)
            self._made = (*self._made, made)
