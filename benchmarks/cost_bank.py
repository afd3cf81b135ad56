"""Planted trajectories of SWE-bench's shape, by models that are billed like those of the paper's pool.

A prefix grows from 4,000 tokens at the first step to 30,000 at the twelfth. What a call's prompt reads from its
provider's cache follows from the requests before it: Anthropic's models keep what stepdown's own breakpoints ask for,
the others whatever they were shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from stepdown.builder.actions import rendered
from stepdown.builder.common.tokens import CHARACTERS_PER_TOKEN, USUAL_ANSWER
from stepdown.builder.config.pool import Model
from stepdown.builder.models.prompt_cache import mark_form, marked
from stepdown.builder.records import Instance, Message, Prefix, Response, Sample, Usage
from stepdown.harnesses.base import Checkpoint, Episode
from stepdown.harnesses.planted import Planted
from stepdown.harnesses.planted.episode import PlantedEpisode, PlantedState
from tests.prompt_billing import LEAST, LIFE, Counted, PromptBilling, blocks

STEPS = 12
FIRST_TOKENS, LAST_TOKENS = 4_000, 30_000
"""Of the prefix at the first step and at the last."""
SYSTEM_TOKENS = 1_200
"""Of the system message, which all instances have alike."""
SECONDS_PER_CALL = 10.0
"""That a call and the command after it take: what is not used for five minutes is not kept."""


def padded(text: str, tokens: int) -> str:
    """The text, made so long by words that stay the same.

    >>> len(padded("Step 1 of 12 ", 10))
    40
    """
    return text + ("x" * max(0, tokens * CHARACTERS_PER_TOKEN - len(text)))


class BilledEpisode(PlantedEpisode):
    """A planted episode whose messages are as long as those of a SWE-bench task."""

    def _start(self, instance: str) -> Prefix:
        system = {"role": "system", "content": padded("Make the steps in order. ", SYSTEM_TOKENS)}
        task = padded(f"Planted instance {instance}. ", FIRST_TOKENS - SYSTEM_TOKENS - 9)
        return Prefix.start([system, {"role": "user", "content": task}, self._order(1)])

    def _order(self, step: int) -> Message:
        order = super()._order(step)
        if step == 1:
            return order
        grown = (LAST_TOKENS - FIRST_TOKENS) // (STEPS - 1) - 8
        return {**order, "content": padded(f"{order['content']} ", grown)}


@dataclass
class AutomaticCaching:
    """A provider that keeps every prompt by itself, block by block, and bills what it has not at the price of input."""

    clock: Mapping[str, float]
    _used: dict[tuple[str, str], float] = field(default_factory=dict)

    def count(self, model: str, body: Mapping[str, Any]) -> Counted:
        now, chain, tokens, read = self.clock["now"], "", 0, 0
        for place, block in blocks(body):
            text = str(block["text"])
            chain = hashlib.sha256(f"{chain}{place}{text}".encode()).hexdigest()
            tokens += -(-len(text) // CHARACTERS_PER_TOKEN)
            if tokens >= LEAST and now - self._used.get((model, chain), -LIFE - 1) <= LIFE:
                read = tokens
            self._used[model, chain] = now
        return Counted(plain=tokens - read, read=read, written=0)


class CostBank(Planted):
    """The workload. Its models go by the names that the paper's pool has at providers, see `billed_as`."""

    def __init__(self, billed_as: Mapping[str, str], prompt_cache: bool = True, **options: Any) -> None:
        """`billed_as` has of every pseudo-model the name that says how its provider keeps prompts."""
        super().__init__(**options)
        self._models = {name: Model(name=name, model=given) for name, given in billed_as.items()}
        self._keeps = prompt_cache
        self._clock = {"now": 0.0}
        self._asked, self._automatic = PromptBilling(lambda: self._clock["now"]), AutomaticCaching(self._clock)

    @contextmanager
    def open(self, instance: Instance, at: Checkpoint | None = None) -> Iterator[Episode]:
        assert at is None or isinstance(at, PlantedState)
        yield BilledEpisode(instance.id, instance.task["tiers"], self._laws, at)

    def answer(self, name: str, instance: Instance, prefix: Prefix, sample: Sample) -> Response | None:
        response = super().answer(name, instance, prefix, sample)
        if response is None:
            return None
        self._clock["now"] += SECONDS_PER_CALL
        counted = self._count(self._models[name], prefix)
        usage = Usage(counted.total, counted.read, counted.written, USUAL_ANSWER)
        return replace(
            response, usage=usage if self._keeps else Usage(prompt=usage.prompt, completion=usage.completion)
        )

    def _count(self, model: Model, prefix: Prefix) -> Counted:
        request = rendered(model.actions, prefix)
        grows = sum(message["role"] == "assistant" for message in prefix.messages) + 1 < STEPS
        body = messages_body(model, marked(model, {"messages": request.messages}, grows)["messages"])
        return self._automatic.count(model.name, body) if mark_form(model.model) is None else self._asked.count(body)


def messages_body(model: Model, messages: list[Message]) -> dict[str, Any]:
    """Plain chat in the form of Anthropic's Messages API, each mark on the block of its message."""

    def block(message: Message) -> dict[str, Any]:
        content = message["content"]
        if isinstance(content, list):  # as OpenRouter wants it
            (part,) = content
            return dict(part)
        mark = {name: message[name] for name in ("cache_control",) if name in message}
        return {"type": "text", "text": content, **mark}

    return {
        "model": model.name,
        "system": [block(one) for one in messages if one["role"] == "system"],
        "messages": [{"role": one["role"], "content": [block(one)]} for one in messages if one["role"] != "system"],
    }
