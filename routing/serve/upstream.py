"""Forwards a call to a model's endpoint, streamed or whole, and reads what it took as it passes.

An endpoint of the OpenAI form is sent the client's own request, its `model` replaced; what comes back is passed on byte
by byte. LiteLLM translates for all others.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.config.pool import Model
from stepdown.builder.models.addresses import open_address
from stepdown.builder.models.collecting import Collected
from stepdown.builder.models.families import family_of
from stepdown.builder.models.local import Runtime

_OUT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses that say nothing of the request: another model may be asked."""
_KEY_TROUBLE = frozenset({401, 402, 403})
"""The router's own key is refused, or has no credit: no fault of the client's."""
_LONGEST_ERROR = 64 * 1024
_LARGEST_ANSWER = 64 << 20


class Out(Exception):
    """An endpoint can not answer now. `status` is its own, 0 where it was not reached."""

    def __init__(self, problem: str, status: int = 0) -> None:
        super().__init__(problem)
        self.problem, self.status = problem, status


@dataclass(slots=True)
class Passing:
    """An answer on its way to the client."""

    status: int
    media_type: str
    parts: AsyncIterator[bytes]
    collected: Collected


class ModelEndpoints:
    """The endpoints of a pool. Used within one event loop."""

    def __init__(self, operation: OperationConfig) -> None:
        self._operation, self._runtime = operation, Runtime()
        limits = httpx.Limits(max_connections=1000, max_keepalive_connections=200)
        self._client = httpx.AsyncClient(limits=limits)
        # A model on this machine is asked without the environment's proxies.
        self._loopback = httpx.AsyncClient(limits=limits, trust_env=False)

    async def close(self) -> None:
        await self._client.aclose()
        await self._loopback.aclose()
        self._runtime.close()

    @asynccontextmanager
    async def ask(self, model: Model, body: Mapping[str, Any]) -> AsyncIterator[Passing]:
        """The model's answer to a client's request. Leaving the block ends what is under way.

        Raises Out where the endpoint can not answer now, and RunStopped where its key is not set.
        """
        endpoint = self._operation.endpoint(model.name)
        family = family_of(model)
        address = open_address(model, endpoint, family, self._runtime)
        streamed = bool(body.get("stream"))
        sent = {**model.parameters, **body, "model": address["model"].partition("/")[2]}
        collected = Collected()
        if streamed:
            options = body.get("stream_options")
            collected.hide_usage = not (isinstance(options, dict) and options.get("include_usage"))
            sent["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
        if family is None:
            async with _translated(address, sent, endpoint.timeout, collected) as passing:
                yield passing
            return
        url = str(address["api_base"]).rstrip("/")
        url = url if url.endswith("/chat/completions") else f"{url}/chat/completions"
        client = self._loopback if httpx.URL(url).host in ("127.0.0.1", "localhost", "::1") else self._client
        headers = {"authorization": f"Bearer {address['api_key']}"}
        timeout = httpx.Timeout(endpoint.timeout, connect=min(endpoint.timeout, 10.0))
        try:
            async with client.stream(
                "POST", url, json=family.adapted(sent), headers=headers, timeout=timeout
            ) as response:
                if response.status_code in _OUT | _KEY_TROUBLE or response.status_code >= 500:
                    said = (await _bounded(response, _LONGEST_ERROR)).decode(errors="replace")
                    raise Out(f"HTTP {response.status_code}: {said[:300]}", response.status_code)
                media = response.headers.get("content-type", "application/json")
                is_stream = response.status_code == 200 and media.startswith("text/event-stream")
                if is_stream:
                    yield Passing(200, media, _stream_parts(response.aiter_lines(), collected), collected)
                else:
                    data = await _bounded(response, _LARGEST_ANSWER)
                    if response.status_code == 200:
                        _read_whole(data, collected)
                    yield Passing(response.status_code, media, _once(data), collected)
        except httpx.HTTPError as error:
            raise Out(f"{type(error).__name__}: {error}") from None


async def _bounded(response: httpx.Response, most: int) -> bytes:
    data = b""
    async for part in response.aiter_bytes():
        data += part
        if len(data) > most:
            raise Out(f"an answer of more than {most} bytes")
    return data


def _read_whole(data: bytes, collected: Collected) -> None:
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        raise Out("HTTP 200 with a body that is no JSON") from None
    if not isinstance(answer, dict) or not isinstance(answer.get("choices"), list):
        raise Out("HTTP 200 with a body that is no answer")
    collected.whole(answer)


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _stream_parts(lines: AsyncIterator[str], collected: Collected) -> AsyncIterator[bytes]:
    """The events of a stream as they came, each whole, but for a chunk of usage that nobody asked for."""
    event: list[str] = []
    async for line in lines:
        event.append(line)
        if line:
            continue
        if all(_is_kept(part[5:].strip(), collected) for part in event if part.startswith("data:")):
            yield "".join(f"{part}\n" for part in event).encode()
        event = []
    if event:  # a stream that was cut within an event
        yield "".join(f"{part}\n" for part in event).encode()


def _is_kept(text: str, collected: Collected) -> bool:
    if text == "[DONE]":
        return True
    try:
        return collected.chunk(json.loads(text))
    except (ValueError, RecursionError):
        return True  # passed on as it is: the client's to judge


@asynccontextmanager
async def _translated(
    address: Mapping[str, Any], sent: Mapping[str, Any], timeout: float, collected: Collected
) -> AsyncIterator[Passing]:
    """As `ask`, for a provider with a form of its own."""
    import litellm

    request = {**sent, **address, "timeout": timeout, "num_retries": 0}
    try:
        answer = await litellm.acompletion(**request)
    except Exception as error:  # LiteLLM raises its own of many kinds
        status = getattr(error, "status_code", 0) or 0
        if status in (400, 404, 413, 422):
            told = json.dumps({"error": {"message": str(error)[:2000], "type": "invalid_request_error"}}).encode()
            yield Passing(int(status), "application/json", _once(told), collected)
            return
        raise Out(f"{type(error).__name__}: {error}"[:300], int(status)) from None
    if not sent.get("stream"):
        data = answer.model_dump_json().encode()
        collected.whole(json.loads(data))
        yield Passing(200, "application/json", _once(data), collected)
        return
    yield Passing(200, "text/event-stream", _chunks(answer, collected), collected)


async def _chunks(answer: Any, collected: Collected) -> AsyncIterator[bytes]:
    async for chunk in answer:
        text = chunk.model_dump_json()
        if collected.chunk(json.loads(text)):
            yield f"data: {text}\n\n".encode()
    yield b"data: [DONE]\n\n"
