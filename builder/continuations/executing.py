"""Executes cells: a checkpoint's environment goes on live, and one model, shown a variant of the messages, decides."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from stepdown.builder.cache.question import Question
from stepdown.builder.config.pool import Model
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.continuations.cells import Cell, CellKey
from stepdown.builder.continuations.checkpoints import FrozenCheckpoint, steps_json
from stepdown.builder.continuations.plan import ContinuationLimits, Plan
from stepdown.builder.continuations.variants import Shown
from stepdown.builder.engine.calls import Calls, OnCall, QuestionLocks
from stepdown.builder.engine.paid_work import PaidWork
from stepdown.builder.engine.replay import Replayer
from stepdown.builder.engine.volatile import InstanceMask
from stepdown.builder.records import (
    Instance,
    Outcome,
    Prefix,
    Reasoning,
    Ruling,
    Sample,
    Step,
    Trial,
    Usage,
    Verdict,
    outcome_state,
)
from stepdown.harnesses.base import Harness
from stepdown.judges.panel import rule_on_case

NAMESPACE = "continue"
"""Draws of continuations share no answer with a search."""


@dataclass(frozen=True, slots=True)
class Continuing:
    """What all cells of a plan share."""

    plan: Plan
    protocol: ProtocolConfig
    paid: PaidWork
    stop: threading.Event
    locks: QuestionLocks
    """Two cells whose variants come to the same messages ask the same question, which is paid for once."""
    on_call: OnCall | None = None
    on_step: Callable[[], None] = lambda: None


def capped(model: Model, tokens: int) -> Model:
    """The model with an answer of so many tokens at most; what its own parameters say less stays."""
    name = "max_completion_tokens" if "max_completion_tokens" in model.parameters else "max_tokens"
    own = model.parameters.get(name)
    least = min(own, tokens) if isinstance(own, int) else tokens
    # Made anew, since a copy would keep the identity that was computed of the other parameters.
    return Model.model_validate({**model.model_dump(), "parameters": {**model.parameters, name: least}})


class _ShownCalls(Calls):
    """Calls in which decisions are asked about a variant of their prefix. What is no decision is asked as it is."""

    def __init__(self, *parts: Any, tokens: int, last: int) -> None:
        """`tokens` is the most that a decision may have, `last` the step after which none follows."""
        super().__init__(*parts)
        self._tokens, self._last = tokens, last
        self.shown: Shown | None = None

    def question(
        self,
        model: Model,
        prefix: Prefix,
        step: int,
        sample: Sample,
        reasoning: Mapping[int, Reasoning] | None = None,
        grows: bool = False,
    ) -> Question:
        if sample.namespace != NAMESPACE or self.shown is None:
            return super().question(model, prefix, step, sample, reasoning, grows)
        places = self.shown.places(reasoning or {})
        grows = self._harness.multi_step and step < self._last
        return super().question(capped(model, self._tokens), self.shown.of(prefix), step, sample, places, grows)


class ModelAtCheckpoint:
    """One model's continuations of one checkpoint. Used by one thread; what can be is replayed once for all of them."""

    def __init__(
        self, frozen: FrozenCheckpoint, model: str, instance: Instance, harness: Harness, shared: Continuing
    ) -> None:
        self._frozen, self._model, self._shared = frozen, shared.protocol.pool.by_name[model], shared
        limits, paid = shared.plan.limits, shared.paid
        self._calls = _ShownCalls(
            instance,
            harness,
            paid.provider,
            paid.cache,
            shared.on_call,
            paid.budget,
            shared.locks,
            tokens=limits.tokens,
            last=frozen.step - 1 + limits.decisions,
        )
        panel = shared.protocol.judge
        judge = (
            partial(rule_on_case, panel=panel, source=self._calls, subject="/".join(instance.key)) if panel else None
        )
        mask = InstanceMask(harness, known=frozen.shapes)
        self._trajectory = frozen.trajectory(mask.mask)
        self._replayer = Replayer(instance, harness, shared.protocol.pool, self._calls, judge, shared.stop, mask)

    def execute(self, key: CellKey) -> tuple[Cell, dict[str, Any]]:
        """Execute a cell to its end: what it came to, and the record of that. Raises Interrupted, RunStopped and
        BudgetReached.
        """
        limits, step = self._shared.plan.limits, self._frozen.step
        self._calls.shown = self._variant(key)
        trial = Trial(
            step=step,
            tier=self._shared.protocol.pool.strong,
            model=key.model,
            limit=step - 1 + limits.decisions,
            sample=Sample(NAMESPACE, key.draw),
        )
        asked = 0

        def made(one: Step, number: int) -> Ruling | None:
            nonlocal asked
            if number == step:  # an environment that was lost is begun anew
                asked = 0
            asked += len(one.response.tool_calls)
            self._shared.on_step()
            return Ruling(Verdict.INCOMPLETE, _at_limit(limits, "tool_calls")) if asked > limits.tool_calls else None

        outcome = self._replayer.go_on(self._trajectory, trial, made)
        self._calls.take_receipt()
        limited = "tool_calls" if asked > limits.tool_calls else ""
        if not limited and outcome.verdict is Verdict.INCOMPLETE and len(outcome.trajectory) == trial.limit:
            limited = "decisions" if outcome.reason == f"stopped at the limit of {trial.limit} calls" else ""
        return self._ended(key, outcome, limited)

    def _variant(self, key: CellKey) -> Shown:
        plan = self._shared.plan
        feedback = next(one for one in plan.feedback if one.name == key.feedback)
        return Shown(
            checkpoint=self._trajectory[-1].prefix,
            replaced=tuple(self._frozen.replaced[key.context]),
            said="\n\n".join(part for part in (feedback.text, plan.instruction) if part.strip()),
            longest_result=plan.limits.tool_result,
        )

    def _ended(self, key: CellKey, outcome: Outcome, limited: str) -> tuple[Cell, dict[str, Any]]:
        frozen, limits = self._frozen, self._shared.plan.limits
        cell = Cell(
            checkpoint=key.checkpoint,
            parent=frozen.parent,
            stage=frozen.stage,
            condition=frozen.condition,
            context=key.context,
            feedback=key.feedback,
            model=key.model,
            draw=key.draw,
            # A workload that tells no states has none that is unsafe.
            state=outcome.state or outcome_state(outcome.verdict),
            limited=limited,
        )
        steps = outcome.trajectory[frozen.step - 1 :]
        usage = sum((step.response.usage for step in steps), Usage())
        return cell, {
            **cell.to_json(),
            "benchmark": frozen.benchmark,
            "instance": frozen.instance,
            "step": frozen.step,
            "verdict": outcome.verdict.value,
            "reason": _at_limit(limits, limited) if limited else outcome.reason,
            "grading": outcome.grading,
            "decisions": len(steps),
            "tool_calls": sum(len(step.response.tool_calls) for step in steps),
            "usage": [usage.prompt, usage.cache_read, usage.cache_write, usage.completion],
            "usd": self._model.price.cost(usage),
            "steps": [_without_extra(one) for one in steps_json(steps, self._trajectory[-1].prefix)],
        }


def _at_limit(limits: ContinuationLimits, limited: str) -> str:
    if limited == "tool_calls":
        return f"stopped at the limit of {limits.tool_calls} tool calls"
    return f"stopped at the limit of {limits.decisions} decisions"


def _without_extra(step: dict[str, Any]) -> dict[str, Any]:
    """A step as it is published: reasoning and a provider's own fields stay in the cache."""
    response = {name: value for name, value in step["response"].items() if name != "extra"}
    return {"added": step["added"], "response": response}
