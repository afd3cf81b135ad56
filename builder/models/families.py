"""Which models are asked directly: those of providers that take the OpenAI form just as a config states it.

All others go by LiteLLM: providers with a form of their own, and models or parameters of which LiteLLM says something
in another way. So what is sent does not depend on the road, which a test holds against LiteLLM.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepdown.builder.config.pool import LOCAL, Model

Body = dict[str, Any]

_THINKING_KIMI = re.compile(r"kimi-k(2\.[5-9]|[3-9])")


def _unchanged(body: Body) -> Body:
    return body


@dataclass(frozen=True, slots=True)
class Family:
    """The models of one provider, whose LiteLLM names begin alike."""

    base: str | None = None
    """The provider's own address; None where it has none."""
    base_variables: Sequence[str] = ()
    """Variables that name another, the first that is set."""
    key_variables: Sequence[str] = ()
    """Variables that hold the key, the first that is set, where a config names none."""
    needs_key: bool = True
    reworded: frozenset[str] = frozenset()
    """Parameters that LiteLLM turns into something else."""
    elsewhere: re.Pattern[str] | None = None
    """Names of models that LiteLLM may ask in another form."""
    adapted: Callable[[Body], Body] = _unchanged
    """The body as the provider wants it."""

    def takes(self, model: Model) -> bool:
        """Whether the model's requests can be sent as they are."""
        name = model.model.partition("/")[2]
        asked = {*model.parameters, *(["response_format"] if model.actions == "json_schema" else [])}
        return not (self.elsewhere and self.elsewhere.search(name)) and not self.reworded & asked

    def address(self) -> str | None:
        """The provider's address, as the environment or its documentation has it."""
        return next(filter(None, map(os.environ.get, self.base_variables)), self.base)


def family_of(model: Model) -> Family | None:
    """The family of a model that is asked directly; None of one that goes by LiteLLM.

    >>> family_of(Model(name="m", model="openrouter/qwen/qwen3-coder")).base
    'https://openrouter.ai/api/v1'
    >>> family_of(Model(name="m", model="anthropic/claude-opus-4-6")) is None
    True
    """
    if model.model.startswith(LOCAL):
        return _EMBEDDED
    family = FAMILIES.get(model.model.partition("/")[0])
    return family if family and family.takes(model) else None


def _with_cost(body: Body) -> Body:
    """OpenRouter says what a call cost where it is asked to."""
    return {**body, "usage": {"include": True}}


def _with_max_tokens(body: Body) -> Body:
    """The limit of an answer under its older name, the only one that some providers know."""
    if "max_completion_tokens" not in body:
        return body
    others = {name: value for name, value in body.items() if name != "max_completion_tokens"}
    return {**others, "max_tokens": body["max_completion_tokens"]}


def _at_moonshot(body: Body) -> Body:
    """Kimi takes a temperature of at most 1, and none where it thinks."""
    body = _with_max_tokens(body)
    if "temperature" not in body:
        return body
    if _THINKING_KIMI.search(body["model"]):
        return {name: value for name, value in body.items() if name != "temperature"}
    return {**body, "temperature": min(body["temperature"], 1)}


def _at_vllm(body: Body) -> Body:
    """vLLM has failed on `strict` tools, and on schemas that allow no other properties."""
    if "tools" not in body:
        return body
    return {**body, "tools": [{**tool, "function": _opened(tool["function"])} for tool in body["tools"]]}


def _opened(function: Mapping[str, Any]) -> Mapping[str, Any]:
    opened: Mapping[str, Any] = _without_closing({name: value for name, value in function.items() if name != "strict"})
    return opened


def _without_closing(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_closing(value) for value in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        name: _without_closing(value)
        for name, value in schema.items()
        if not (name == "additionalProperties" and value is False)
    }


_EMBEDDED = Family(needs_key=False)
"""Models that run here: their server is started for them, with a key of its own."""
FAMILIES: Mapping[str, Family] = {
    "dashscope": Family(
        "https://dashscope.aliyuncs.com/compatible-mode/v1", ("DASHSCOPE_API_BASE",), ("DASHSCOPE_API_KEY",)
    ),
    "deepinfra": Family(
        "https://api.deepinfra.com/v1/openai",
        ("DEEPINFRA_API_BASE",),
        ("DEEPINFRA_API_KEY",),
        adapted=_with_max_tokens,
    ),
    "deepseek": Family(
        "https://api.deepseek.com/beta",
        ("DEEPSEEK_API_BASE",),
        ("DEEPSEEK_API_KEY",),
        reworded=frozenset({"thinking", "reasoning_effort"}),
    ),
    "groq": Family(
        "https://api.groq.com/openai/v1",
        ("GROQ_API_BASE",),
        ("GROQ_API_KEY",),
        reworded=frozenset({"response_format"}),  # a tool stands in for it where the model takes none
        adapted=_with_max_tokens,
    ),
    "hosted_vllm": Family(
        None,
        ("HOSTED_VLLM_API_BASE",),
        ("HOSTED_VLLM_API_KEY",),
        needs_key=False,
        reworded=frozenset({"thinking"}),
        adapted=_at_vllm,
    ),
    "lm_studio": Family(None, ("LM_STUDIO_API_BASE",), ("LM_STUDIO_API_KEY",), needs_key=False),
    "minimax": Family("https://api.minimax.io/v1", ("MINIMAX_API_BASE",), ("MINIMAX_API_KEY",)),
    "moonshot": Family(
        "https://api.moonshot.ai/v1", ("MOONSHOT_API_BASE",), ("MOONSHOT_API_KEY",), adapted=_at_moonshot
    ),
    "novita": Family("https://api.novita.ai/v3/openai", ("NOVITA_API_BASE",), ("NOVITA_API_KEY",)),
    "openai": Family(
        "https://api.openai.com/v1",
        ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        ("OPENAI_API_KEY",),
        # OpenAI answers these with tools in its newer form only; LiteLLM knows which, and their parameters' limits.
        elsewhere=re.compile(
            r"(^|/)o\d|gpt-([5-9]|\d\d)|codex|computer-use|daybreak|rosalind|^chat-latest|^responses/"
        ),
    ),
    "openrouter": Family(
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_BASE",),
        ("OPENROUTER_API_KEY", "OR_API_KEY"),
        adapted=_with_cost,
    ),
    "together_ai": Family(
        "https://api.together.ai/v1",
        ("TOGETHER_AI_API_BASE",),
        ("TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHERAI_API_KEY"),
    ),
}
"""By the first part of LiteLLM's names."""
