"""Which models a call may go to, in order: the policy's choice first, then what stands in for it in an outage."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepdown.builder.common.faults import said
from stepdown.builder.config.pool import Model, Pool
from stepdown.builder.errors import BadInput, StepdownError
from stepdown.routing.policies.contract import Choice, NoChoice, Offer, Policy, View, checked
from stepdown.routing.serve.conversations import SentPrefixes, chain

AUTO = "auto"
"""The name of a model that stands for the policy's choice."""


class UnknownModel(Exception):
    """The request names neither `auto` nor a model of the pool."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where a call goes."""

    candidates: Sequence[Model]
    """The chosen model, then those that are asked where it is out: its tier's others, then those of dearer tiers, then
    cheaper ones. One alone where the client named it."""
    choice: Choice
    prefix: Sequence[str]
    """Digests of the call's messages."""


class Chooser:
    """Asks the policy. It is used by one thread at a time."""

    def __init__(self, policy: Policy, pool: Pool) -> None:
        self.policy, self.pool = policy, pool
        self.sent = SentPrefixes()
        self._tiers = tuple(tier.name for tier in pool.tiers)
        self._tier_of = {model.name: index for index, model in pool.models()}

    def tier_of(self, model: str) -> str:
        return self._tiers[self._tier_of[model]]

    def route(self, body: Mapping[str, Any], spent: float, budget: float | None) -> Route:
        """Where a request goes. Raises UnknownModel, and BadInput where the policy breaks."""
        named = body.get("model")
        prefix = chain(body["messages"], body.get("tools") or ())
        if named in self.pool.by_name:
            model = self.pool.by_name[named]
            return Route([model], Choice(self.tier_of(model.name), model.name, reason="the client named it"), prefix)
        if named != AUTO:
            raise UnknownModel(f"no model {named!r}: {', '.join((AUTO, *self.pool.by_name))}")
        choice = self._choose(self._view(body, prefix, spent, budget))
        return Route(self._candidates(choice), choice, prefix)

    def _view(self, body: Mapping[str, Any], prefix: Sequence[str], spent: float, budget: float | None) -> View:
        now = time.time()
        offers = []
        for index, model in self.pool.models():
            held, age = self.sent.held(model.name, prefix, now)
            offers.append(Offer(model.name, self._tiers[index], model.price, held, age))
        step = 1 + sum(1 for message in body["messages"] if message.get("role") == "assistant")
        return View(
            messages=body["messages"],
            tools=body.get("tools") or (),
            step=step,
            tiers=self._tiers,
            models=tuple(offers),
            spent_usd=spent,
            budget_usd=budget,
        )

    def _choose(self, view: View) -> Choice:
        try:
            return checked(self.policy.choose(view), view, self.policy.name)
        except NoChoice as none:
            return Choice(self._tiers[-1], reason=f"no answer of the policy: {none}")
        except StepdownError:
            raise
        except Exception as error:  # whatever code of anybody's raises
            raise BadInput(f"policy {self.policy.name!r} broke: {said(error)}") from None

    def _candidates(self, choice: Choice) -> list[Model]:
        chosen = self._tiers.index(choice.tier)
        order = [chosen, *range(chosen + 1, len(self._tiers)), *range(chosen - 1, -1, -1)]
        models = [model for index in order for model in self.pool.tiers[index].models]
        if choice.model is not None:
            first = self.pool.by_name[choice.model]
            models = [first, *(model for model in models if model is not first)]
        return models
