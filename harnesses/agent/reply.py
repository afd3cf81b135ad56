"""A response as an OpenAI-compatible server sends it: one body, or a stream of events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stepdown.builder.common import tokens
from stepdown.builder.records import Response, Stop
from stepdown.harnesses.agent.request import ChatRequest

_CREATED = 1767225600
"""What every answer is dated: a program that shows it shows the same at every replay."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What one request is answered with. `number` counts the answers of an episode, `first_call` its tool calls."""

    response: Response
    number: int
    first_call: int


def body(request: ChatRequest, reply: Reply) -> dict[str, Any]:
    """The whole answer."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.response.content}
    if calls := _calls(reply):
        message |= {"content": reply.response.content or None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply.response)}
    return {**_head(request, reply, "chat.completion"), "choices": [choice], "usage": _usage(request, reply.response)}


def events(request: ChatRequest, reply: Reply) -> Iterator[bytes]:
    """The answer as server-sent events, the last of them `[DONE]`."""
    head = _head(request, reply, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event({**head, "choices": [choice], **({"usage": None} if request.include_usage else {})})

    yield chunk({"role": "assistant", "content": ""})
    if reply.response.content:
        yield chunk({"content": reply.response.content})
    for index, call in enumerate(_calls(reply)):
        opened = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        yield chunk({"tool_calls": [opened]})
        yield chunk({"tool_calls": [{"index": index, "function": {"arguments": call["function"]["arguments"]}}]})
    yield chunk({}, _finish(reply.response))
    if request.include_usage:
        yield _event({**head, "choices": [], "usage": _usage(request, reply.response)})
    yield b"data: [DONE]\n\n"


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def _head(request: ChatRequest, reply: Reply, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{reply.number}", "object": kind, "created": _CREATED, "model": request.model}


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {"id": f"call_{number}", "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for number, call in enumerate(reply.response.tool_calls, reply.first_call)
    ]


def _finish(response: Response) -> str:
    if response.stop is Stop.LENGTH:
        return "length"
    return "tool_calls" if response.tool_calls else "stop"


def _usage(request: ChatRequest, response: Response) -> dict[str, Any]:
    """Tokens as the model's provider counted them, else as they are estimated: programs go by them."""
    usage = response.usage
    said = response.content + "".join(call.name + call.arguments for call in response.tool_calls)
    prompt = usage.prompt or tokens.of_request(request.messages, request.tools)
    completion = usage.completion or tokens.approximate(said)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    }
