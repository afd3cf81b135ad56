"""The protocol of a policy (paper, section 5.3): what it is shown before one LLM call, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from stepdown.builder.config.price import Price
from stepdown.builder.errors import BadInput, StepdownError
from stepdown.builder.records import Message, Tool

_NO_PRICE = Price()


@dataclass(frozen=True, slots=True)
class Offer:
    """One model that may be chosen."""

    name: str
    tier: str
    price: Price = _NO_PRICE
    """List price, USD per million tokens."""
    cached_tokens: int = 0
    """How many tokens of this prefix the model's provider should still hold in its prompt cache."""
    cache_age: float | None = None
    """Seconds since that prefix was last sent to the model; None where it never was."""


@dataclass(frozen=True, slots=True)
class View:
    """What a policy sees: all that is known before a call is made, and nothing of what came of it."""

    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    step: int = 1
    """The number of this call in its trajectory, from 1."""
    tiers: Sequence[str] = ()
    """Names, the cheapest first; the last is the strong one."""
    models: Sequence[Offer] = ()
    """In the pool's order; empty where only a tier is asked for."""
    instance: str = ""
    """`benchmark/instance_id` where the task is one of a benchmark's; else empty."""
    spent_usd: float = 0.0
    """What this task's calls have cost so far."""
    budget_usd: float | None = None
    """What they may cost; None where there is no such limit."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A policy's answer."""

    tier: str
    model: str | None = None
    """One of the models on offer; None leaves it to whoever asks, who takes the tier's first."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """By tier, where the policy has them: the probability that this tier is the cheapest that is enough."""
    reason: str = ""


class NoChoice(StepdownError):
    """A policy has no answer for one call. A score counts the row as failed; a search goes on without a hint; whoever
    has to make the call takes the strong tier.
    """


class Unreachable(NoChoice):
    """What a policy asks can not be asked now: this says nothing of the call. A score stops, and goes on when the same
    command is given again; whoever else asks does as with any NoChoice.
    """


class Policy(Protocol):
    """Chooses a tier for each call. `version` changes whenever its choices may."""

    name: str
    version: str

    def choose(self, view: View) -> Choice:
        """The tier, or the model, for the next call. The same view gives the same choice.

        Raises NoChoice where it has no answer for this call, and BadInput where the view's tiers are none that it
        knows.
        """


def checked(choice: Choice, view: View, policy: str) -> Choice:
    """The choice, of whatever code it came from. Raises BadInput where it names no tier or model of the view."""
    if not isinstance(choice, Choice):
        raise BadInput(f"policy {policy!r} answered {type(choice).__name__}, not a Choice")
    if not isinstance(choice.reason, str):
        raise BadInput(f"policy {policy!r} gave a reason that is {type(choice.reason).__name__}, not a text")
    if choice.tier not in view.tiers:
        raise BadInput(f"policy {policy!r} chose the tier {choice.tier!r}; there are {', '.join(view.tiers)}")
    if choice.model is not None and not any(
        offer.name == choice.model and offer.tier == choice.tier for offer in view.models
    ):
        raise BadInput(f"policy {policy!r} chose the model {choice.model!r}, which tier {choice.tier!r} does not offer")
    return choice
