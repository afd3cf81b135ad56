"""Which family a model is of: models of one family learn from the same data and share their blind spots."""

from __future__ import annotations

import re

_FAMILIES = {
    "openai": r"gpt|chatgpt|o[1-9](?:$|[-_.])|davinci",
    "anthropic": r"claude",
    "google": r"gemini|gemma|palm",
    "meta": r"llama",
    "alibaba": r"qwen|qwq",
    "mistral": r"mistral|mixtral|magistral|ministral|codestral|devstral|pixtral",
    "deepseek": r"deepseek",
    "moonshot": r"kimi|moonshot",
    "zhipu": r"glm|chatglm",
    "xai": r"grok",
    "cohere": r"command|cohere|aya",
    "microsoft": r"phi[-_]?\d|wizardlm",
    "amazon": r"nova|titan",
    "nvidia": r"nemotron",
    "minimax": r"minimax",
    "01": r"yi(?:$|[-_.])",
    "baidu": r"ernie",
    "tencent": r"hunyuan",
    "bytedance": r"doubao|seed[-_]",
    "huggingface": r"smollm|zephyr",
    "ibm": r"granite",
    "ai2": r"olmo|tulu",
    "tii": r"falcon",
    "ai21": r"jamba|jurassic",
    "stepfun": r"step[-_]",
}
_NAMED = {name: re.compile(rf"(?<![a-z])(?:{words})", re.IGNORECASE) for name, words in _FAMILIES.items()}


def family_of(model: str) -> str:
    """The family of a model by its name, as LiteLLM writes it. A name that says nothing is a family of its own.

    >>> family_of("openrouter/openai/gpt-5.4"), family_of("anthropic/claude-opus-4.8"), family_of("openai/my-judge")
    ('openai', 'anthropic', 'my-judge')
    """
    name = model.rpartition("/")[2]
    return next((family for family, words in _NAMED.items() if words.search(name)), name.lower())
