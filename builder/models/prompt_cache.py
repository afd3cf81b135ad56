"""Where a provider keeps prompts only if it is asked to: which parts of a request it is asked to keep.

Anthropic's models read a prompt from their cache up to a *breakpoint*, a block marked with `cache_control`, if an
earlier request within five minutes had the same bytes up to there. A request may have four breakpoints. What is
written costs a quarter more than plain input, what is read a tenth of it. Other providers (OpenAI, DeepSeek, Gemini,
Moonshot, local servers) keep prompts by themselves and need only that prefixes stay the same, byte by byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from stepdown.builder.config.pool import Model
from stepdown.builder.records import Message

MOST_BREAKPOINTS = 4
"""Of one request; Anthropic refuses a fifth."""

MARK = "cache_control"
"""The field of a marked message, part or tool."""
_EPHEMERAL = {"type": "ephemeral"}
_BY_LITELLM = frozenset({"bedrock", "vertex_ai", "azure_ai"})
"""Others that serve Anthropic's models, to which LiteLLM hands marks on."""

Form = Literal["message", "part"]
"""Where a mark stands: beside a message's content, for LiteLLM to place, or in the content's last part."""


def mark_form(name: str) -> Form | None:
    """How the model of this (LiteLLM's) name is asked to keep prompts; None where it need not or can not be asked.

    >>> mark_form("anthropic/claude-opus-4-6"), mark_form("openrouter/anthropic/claude-opus-4.6")
    ('message', 'part')
    >>> mark_form("openrouter/deepseek/deepseek-v3.2") is mark_form("openai/claude-behind-a-gateway") is None
    True
    """
    provider, _, rest = name.partition("/")
    if provider == "anthropic" or (not rest and name.startswith("claude-")):
        return "message"
    if provider in _BY_LITELLM and "claude" in rest:
        return "message"
    return "part" if name.startswith("openrouter/anthropic/") else None


def is_asked(model: Model) -> bool:
    """Whether the model's provider is asked to keep prompts."""
    return _form(model) is not None


def _form(model: Model) -> Form | None:
    return mark_form(model.model) if model.prompt_cache == "auto" else None


def marked(model: Model, request: Mapping[str, Any], grows: bool) -> dict[str, Any]:
    """The request with breakpoints, where the model's provider wants them and its `prompt_cache` allows them.

    The system message is marked, which other instances may have too, and the last message before the latest turn of a
    model, which all trials of a step share and the call before this one has left. `grows`: later requests go on from
    this one's messages. Then the last message is marked as well, and the tools. Else it is not: a prompt that is
    written and never read costs a quarter more.
    """
    form = _form(model)
    if form is None:
        return dict(request)
    messages: Sequence[Message] = request["messages"]
    places = _stable_places(messages, grows)
    out = {
        **request,
        "messages": [_marked(one, form) if place in places else one for place, one in enumerate(messages)],
    }
    if grows and form == "message" and request.get("tools"):
        # OpenRouter takes marks in text only; that of the system message covers the tools, which come before it.
        *others, last = request["tools"]
        out["tools"] = [*others, {**last, MARK: _EPHEMERAL}]
    return out


def unmarked(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request without breakpoints: the inverse of `marked`."""
    out = {**request, "messages": [_unmarked(one) for one in request["messages"]]}
    if request.get("tools"):
        out["tools"] = [_unmarked(one) for one in request["tools"]]
    return out


def _stable_places(messages: Sequence[Message], grows: bool) -> set[int]:
    """The places of the messages to mark, three at most."""
    system = [place for place, one in enumerate(messages) if one["role"] in {"system", "developer"}]
    turns = [place for place, one in enumerate(messages) if one["role"] == "assistant"]
    ends: list[Sequence[int]] = [system, range(turns[-1]) if turns else ()]
    if grows:
        ends.append(range(len(messages)))
    found = (next((place for place in reversed(end) if _can_be_marked(messages[place])), None) for end in ends)
    return {place for place in found if place is not None}


def _can_be_marked(message: Message) -> bool:
    """Whether it has a text: a mark on an empty one is refused. Not a model's turn, whose calls follow its text."""
    content = message.get("content")
    return message["role"] != "assistant" and isinstance(content, str) and bool(content.strip())


def _unmarked(one: Mapping[str, Any]) -> dict[str, Any]:
    """A message or a tool without its mark."""
    bare = {name: value for name, value in one.items() if name != MARK}
    match bare.get("content"):
        case [{"text": text, "cache_control": _}]:
            bare["content"] = text
    return bare


def _marked(message: Message, form: Form) -> Message:
    if form == "message":
        return {**message, MARK: _EPHEMERAL}
    return {**message, "content": [{"type": "text", "text": message["content"], MARK: _EPHEMERAL}]}
