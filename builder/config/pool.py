"""The pool: the models of every tier in cascade order, what each is, and what it costs by list price."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from stepdown.builder.actions import ADAPTER_VERSION, Actions
from stepdown.builder.common.text import nearest
from stepdown.builder.config.price import Price
from stepdown.builder.config.validation import JsonObject, Strict
from stepdown.builder.digests import canonical_json, digest

LOCAL = "local/"
"""Models of this prefix run in the embedded llama.cpp runtime."""
WORKLOAD = "workload/"
"""Models of this prefix are pseudo-models that the workload's harness answers for."""

GENERATION_PARAMETERS = frozenset(
    {
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "max_tokens",
        "max_completion_tokens",
        "seed",
        "stop",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
        "logit_bias",
        "reasoning_effort",
        "reasoning",
        "thinking",
        "verbosity",
        "parallel_tool_calls",
    }
)
"""What a pool may ask of a model: how it generates, never who answers."""


class Weights(Strict):
    """The weight file of a local model: part of an installed package, or a file at a path."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 digest of the file. It is part of the model's identity and is checked before the model is loaded."""
    package: str | tuple[str, ...] | None = None
    """Import name of the installed package that holds the file. The package is located, not imported. A list names
    packages that hold one part each; the parts are joined in this order. Not set: `file` is a path."""
    file: str
    """Path of the GGUF file, inside `package` where that is set. A name with `*` stands for the parts of a split file;
    they are joined in the order of their names."""
    n_ctx: int = Field(2048, ge=128)
    """How many tokens of context the model is run with."""


class Model(Strict):
    """One model of the pool."""

    name: str = Field(min_length=1)
    """The model's name in configs, ledger and evidence. It must be unique in the pool."""
    model: str = Field(min_length=1)
    """LiteLLM's name for the model (`openrouter/deepseek/deepseek-v3.2`), or `local/NAME` for a model that runs on this
    machine, or `workload/NAME` for a pseudo-model that the workload's harness answers for."""
    revision: str | None = None
    """A dated snapshot or revision, where the provider has them. It is part of the model's identity."""
    actions: Actions = "tools"
    """How the model is given tools: `tools` natively; `json_schema` listed in the prompt, with an answer that must
    follow a schema; `text` as text, with one fenced block in the answer as the action."""
    parameters: JsonObject = Field(default_factory=dict)
    """Generation parameters: `temperature`, `top_p`, `max_tokens`, `seed`, `reasoning_effort` and the like."""
    price: Price = Price()
    """The list price. A budget in US dollars needs it for every model of a provider."""
    weights: Weights | None = None
    """The weight file of a `local/` model; only such a model has one."""
    prompt_cache: Literal["auto", "off"] = Field("auto", exclude_if=lambda value: value == "auto")
    """Whether the provider is asked to keep prompts, so that the next call reads what it shares with the last one:
    `auto` asks where a provider wants to be asked (Anthropic's models), `off` never. No answer depends on it."""

    @field_validator("prompt_cache", mode="before")
    @classmethod
    def _off_is_a_word(cls, value: object) -> object:
        return "off" if value is False else value  # what YAML makes of a bare `off`

    @field_validator("parameters")
    @classmethod
    def _only_generation(cls, value: dict[str, Any]) -> dict[str, Any]:
        # What is not named here may make another model answer, or none: fallbacks, mocks, routers, bodies of one's own.
        if found := sorted(value.keys() - GENERATION_PARAMETERS):
            known = ", ".join(sorted(GENERATION_PARAMETERS))
            meant = nearest(found[0], sorted(GENERATION_PARAMETERS))
            hint = f": did you mean `{meant}`?" if meant else ""
            problem = f"{found[0]!r} is no generation parameter{hint} ({known}); addresses and keys go to `operation`"
            raise ValueError(problem)
        return value

    @model_validator(mode="after")
    def _weights_are_local(self) -> Model:
        if (self.weights is not None) != self.model.startswith(LOCAL):
            raise ValueError("`weights` belong to a `local/` model, and a `local/` model needs them")
        return self

    @cached_property
    def identity(self) -> str:
        """Digest of what the model *is*: its name at the provider, revision or weights, and request adapter.

        Not its name in this pool, price, limits, prompt caching or address: those may change without making it another
        model.
        """
        weights = [self.weights.sha256, self.weights.n_ctx] if self.weights else None
        return digest([self.model, self.revision, weights, self.actions, ADAPTER_VERSION[self.actions]])

    @cached_property
    def asked(self) -> str:
        """Identity and parameters as canonical JSON: what of the model a cache key is made of."""
        return canonical_json([self.identity, self.parameters])[1:-1]


class Tier(Strict):
    """A tier: a band of models of like capability."""

    name: str = Field(min_length=1)
    """The tier's name: `target_tier` in rows. Unique in the pool."""
    id: int = Field(ge=0)
    """The tier's number: `target_tier_id` in rows. Numbers grow from the cheapest tier to the strong one."""
    models: tuple[Model, ...] = Field(min_length=1)
    """The tier's models in cascade order: the first is probed first."""


class Pool(Strict):
    """The models of every tier, cheapest tier first; the last tier is the strong one."""

    version: str = Field(min_length=1)
    """A name for this state of the pool; manifests and releases carry it."""
    tiers: tuple[Tier, ...]
    """At least two tiers, the cheapest first. The last one is the strong tier."""

    @model_validator(mode="after")
    def _consistent(self) -> Pool:
        if len(self.tiers) < 2:
            raise ValueError("a pool needs a strong tier (the last) and at least one cheaper tier before it")
        ids = [tier.id for tier in self.tiers]
        if ids != sorted(set(ids)):
            raise ValueError("tier ids must be distinct and grow from the cheapest tier to the strong one")
        if len({tier.name for tier in self.tiers}) < len(self.tiers):
            raise ValueError("two tiers have one name")
        seen: dict[str, str] = {}
        for tier in self.tiers:
            for model in tier.models:
                for key in {model.name, f"{model.identity}{digest(model.parameters)}"}:
                    if key in seen:
                        raise ValueError(f"model {model.name!r} is in tier {tier.name!r} and in tier {seen[key]!r}")
                    seen[key] = tier.name
        return self

    @property
    def strong(self) -> int:
        """Index of the strong tier."""
        return len(self.tiers) - 1

    def models(self) -> Iterator[tuple[int, Model]]:
        """Every model with the index of its tier, cheapest first."""
        for index, tier in enumerate(self.tiers):
            for model in tier.models:
                yield index, model

    @cached_property
    def by_name(self) -> dict[str, Model]:
        return {model.name: model for _, model in self.models()}
