"""A loopback provider that streams: models scripted by ability, answers cut into chunks as real servers cut them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Request = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """What a model says: text, or calls of (name, arguments); or an error's status."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    status: int = 200
    pause: float = 0.0
    """Seconds between chunks."""
    endless: bool = False


@dataclass
class StreamingProvider:
    """Runs in a thread. `requests` are the bodies it was sent, `left` counts streams that their client left."""

    abilities: Mapping[str, Callable[[Request], Said]]
    requests: list[Request] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)
    url: str = ""

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        said = self.abilities[body["model"]](body)
        if said.status != 200:
            told = {"error": {"message": "scripted", "type": "x", "code": None, "param": None}}
            return web.json_response(told, status=said.status)
        usage = {"prompt_tokens": len(json.dumps(body["messages"])) // 4, "completion_tokens": len(said.text.split())}
        if not body.get("stream"):
            message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
            if said.calls:
                message["tool_calls"] = [_call(place, *call) for place, call in enumerate(said.calls)]
            choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if said.calls else "stop"}
            whole = {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"]}
            return web.json_response({**whole, "choices": [choice], "usage": usage})
        return await self._stream(request, body, said, usage)

    async def _stream(self, request: web.Request, body: Request, said: Said, usage: Any) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await answer.prepare(request)
        try:
            for delta in _deltas(said):
                await answer.write(_event(body["model"], [{"index": 0, "delta": delta, "finish_reason": None}]))
                if said.pause:
                    await asyncio.sleep(said.pause)
            end = "tool_calls" if said.calls else "stop"
            await answer.write(_event(body["model"], [{"index": 0, "delta": {}, "finish_reason": end}]))
            if (body.get("stream_options") or {}).get("include_usage"):
                await answer.write(_event(body["model"], [], usage))
            await answer.write(b"data: [DONE]\n\n")
        except (ConnectionError, asyncio.CancelledError):
            self.left[body["model"]] += 1
            raise
        return answer


def _deltas(said: Said) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for word in said.text.split(" ") if said.text else ():
        yield {"content": f"{word} "}
    while said.endless:
        yield {"content": "on "}
    for place, (name, arguments) in enumerate(said.calls):
        first = _call(place, name, "")
        yield {"tool_calls": [{"index": place, **first}]}
        for start in range(0, len(arguments), 5):
            yield {"tool_calls": [{"index": place, "function": {"arguments": arguments[start : start + 5]}}]}


def _call(place: int, name: str, arguments: str) -> dict[str, Any]:
    return {"id": f"call-{place}", "type": "function", "function": {"name": name, "arguments": arguments}}


def _event(model: str, choices: list[Any], usage: Any = None) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choices}
    return f"data: {json.dumps({**chunk, **({'usage': usage} if usage else {})})}\n\n".encode()


@contextmanager
def streaming(abilities: Mapping[str, Callable[[Request], Said]]) -> Iterator[StreamingProvider]:
    """The provider while the block runs."""
    provider = StreamingProvider(abilities)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def begin() -> web.AppRunner:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/chat/completions", provider.complete)
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        provider.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        return runner

    runner = asyncio.run_coroutine_threadsafe(begin(), loop).result()
    try:
        yield provider
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
