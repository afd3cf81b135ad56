"""Routers written for TwinRouterBench: objects with `select(ctx)`, which names a model, as policies.

The context has that benchmark's field names. Where only tiers are asked for, as by a score, the tiers' names stand in
for the models'.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepdown.builder.digests import exact_json
from stepdown.builder.errors import BadInput
from stepdown.routing.policies.contract import Choice, View

_LIFE, _MOST_STEPS, _SECONDS = 300, 250, 30.0


@dataclass(frozen=True)
class ModelCacheView:
    """What one model's cache should hold."""

    model_id: str
    last_call_ts: float | None
    prefix_token_count: int
    prefix_hash: str | None


@dataclass(frozen=True)
class CacheStateSnapshot:
    """The caches of all models, at one moment."""

    wallclock_ttl_sec: int
    now_ts: float
    by_model: Mapping[str, ModelCacheView]

    def get(self, model_id: str) -> ModelCacheView | None:
        return self.by_model.get(model_id)


@dataclass(frozen=True)
class RunConfig:
    """What a run allows."""

    max_steps: int
    budget_usd: float
    wallclock_ttl_sec: int
    select_timeout_sec: float


@dataclass(frozen=True)
class RouterContext:
    """What such a router is shown."""

    instance_id: str
    step_index: int
    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...]
    available_models: tuple[str, ...]
    cache_state: CacheStateSnapshot
    budget_so_far_usd: float
    run_config: RunConfig


class Selecting:
    """A policy made of a router with `select(ctx)`."""

    def __init__(self, router: Any, name: str) -> None:
        self._router = router
        self.name = str(getattr(router, "name", None) or getattr(router, "label", None) or name)
        self.version = str(getattr(router, "version", "unknown"))

    def choose(self, view: View) -> Choice:
        """Raises BadInput where the router names no model on offer."""
        tier_of = {offer.name: offer.tier for offer in view.models} or {tier: tier for tier in view.tiers}
        decided = self._router.select(context_of(view))
        model = decided if isinstance(decided, str) else getattr(decided, "model_id", None)
        if model not in tier_of:
            raise BadInput(f"router {self.name!r} chose {model!r}; on offer are {', '.join(tier_of)}")
        reason = str(getattr(decided, "rationale", None) or "")
        return Choice(tier_of[model], model if view.models else None, reason=reason)


def context_of(view: View) -> RouterContext:
    """The view in that benchmark's words; steps count from 0 there."""
    now = time.time()
    caches = {
        offer.name: ModelCacheView(
            offer.name,
            None if offer.cache_age is None else now - offer.cache_age,
            offer.cached_tokens,
            _prefix_hash(view) if offer.cached_tokens else None,
        )
        for offer in view.models
    }
    budget = float("inf") if view.budget_usd is None else view.budget_usd
    return RouterContext(
        instance_id=view.instance.partition("/")[2] or view.instance,
        step_index=view.step - 1,
        messages=tuple(view.messages),
        tools=tuple(view.tools),
        available_models=tuple(offer.name for offer in view.models) or tuple(view.tiers),
        cache_state=CacheStateSnapshot(_LIFE, now, caches),
        budget_so_far_usd=view.spent_usd,
        run_config=RunConfig(_MOST_STEPS, budget, _LIFE, _SECONDS),
    )


def _prefix_hash(view: View) -> str:
    return hashlib.sha256(exact_json(list(view.messages)).encode()).hexdigest()
