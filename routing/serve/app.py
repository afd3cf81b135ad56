"""The server: `/v1/chat/completions`, `/v1/models`, `/health`, `/metrics`."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from stepdown.builder.common.secrets import Secrets
from stepdown.builder.common.text import printable
from stepdown.builder.config.pool import Model
from stepdown.builder.errors import RunStopped, StepdownError
from stepdown.routing.serve.choosing import AUTO, Chooser, Route, UnknownModel
from stepdown.routing.serve.figures import Figures
from stepdown.routing.serve.journal import Journal
from stepdown.routing.serve.upstream import ModelEndpoints, Out, Passing

LARGEST_REQUEST = 64 << 20
_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Router:
    """What the server is made of."""

    chooser: Chooser
    upstream: ModelEndpoints
    journal: Journal
    figures: Figures
    secrets: Secrets
    keys: Sequence[str] = ()
    """Of clients; none: whoever reaches the server may ask."""
    hosts: frozenset[str] = frozenset()
    """Names under which clients may ask for it; empty: any."""
    budget: float | None = None
    """USD; once it is spent, no call is forwarded."""
    choosing: anyio.Lock = field(default_factory=anyio.Lock)


class Door:
    """Lets in programs that have a key, and no page of a browser that happens to run on this machine."""

    def __init__(self, app: ASGIApp, router: Router) -> None:
        self._app, self._router = app, router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refusal(scope) if scope["type"] == "http" else None
        await (refused or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if self._router.hosts and headers.get("host", "").lower() not in self._router.hosts:
            return _error(403, "asked for under a name that is not this server's", "forbidden")
        if headers.get("origin") is not None:
            return _error(403, "pages in a browser are not let in", "forbidden")
        if scope["path"].startswith("/v1") and not _has_key(headers, self._router.keys):
            return _error(401, "the key is missing or wrong", "invalid_api_key")
        return None


def make_app(router: Router) -> FastAPI:
    """The app of one router; ending it closes its connections and its log."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await router.upstream.close()
        router.journal.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.add_middleware(Door, router=router)

    @app.get("/health")
    async def health() -> dict[str, Any]:
        return {"status": "ok", "policy": router.chooser.policy.name, "spent_usd": round(router.journal.usd, 6)}

    @app.get("/metrics")
    async def metrics() -> Response:
        text, media = router.figures.text()
        return Response(text, media_type=media)

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        names = [AUTO, *router.chooser.pool.by_name]
        return {
            "object": "list",
            "data": [{"id": name, "object": "model", "created": 0, "owned_by": "stepdown"} for name in names],
        }

    @app.post("/v1/chat/completions")
    async def complete(request: Request) -> Response:
        body = await _read(request)
        if isinstance(body, Response):
            return body
        return await _Call(router, body, request).answer()

    return app


async def _read(request: Request) -> dict[str, Any] | Response:
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > LARGEST_REQUEST:
            return _error(413, f"a request of more than {LARGEST_REQUEST} bytes", "too_large")
    body: dict[str, Any]
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return _error(400, "the request is no JSON", "invalid_json")
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
        return _error(400, "`messages` must be a list of messages", "invalid_request")
    if body.get("n") not in (None, 1):
        return _error(400, "`n` must be 1: a call is routed to one answer", "invalid_request")
    tools = body.get("tools")
    if tools is not None and not (isinstance(tools, list) and all(isinstance(one, dict) for one in tools)):
        return _error(400, "`tools` must be a list of definitions", "invalid_request")
    return body


class _Call:
    """One client's call, from its request to the end of its answer."""

    def __init__(self, router: Router, body: dict[str, Any], request: Request) -> None:
        self._router, self._body, self._request = router, body, request
        self._at, self._began = time.time(), time.monotonic()
        self._failed: list[str] = []

    async def answer(self) -> Response:
        router = self._router
        if router.budget is not None and router.journal.usd >= router.budget:
            return _error(429, f"the router's budget of {router.budget} USD is spent", "budget_spent")
        try:
            async with router.choosing:
                route = await anyio.to_thread.run_sync(
                    router.chooser.route, self._body, router.journal.usd, router.budget
                )
        except UnknownModel as error:
            return _error(404, str(error), "model_not_found")
        except StepdownError as error:
            return _error(500, str(error), "policy_failed")
        chosen = time.monotonic() - self._began
        for model in route.candidates:
            stack = AsyncExitStack()
            try:
                passing = await stack.enter_async_context(router.upstream.ask(model, self._body))
            except (Out, RunStopped) as error:
                await stack.aclose()
                self._note_out(model, str(error))
                continue
            except BaseException:
                await stack.aclose()
                raise
            router.figures.chose(route.choice.tier, model.name, chosen)
            return self._passed_on(model, route, passing, stack)
        told = router.secrets.line("; ".join(self._failed))
        return _error(502, f"no model could be reached: {printable(told, 2000)}", "upstream_failed")

    def _note_out(self, model: Model, problem: str) -> None:
        self._failed.append(f"{model.name}: {problem}")
        self._router.figures.fell_back(model.name)

    def _passed_on(self, model: Model, route: Route, passing: Passing, stack: AsyncExitStack) -> Response:
        headers = {
            "x-stepdown-model": _header(model.name),
            "x-stepdown-tier": _header(self._router.chooser.tier_of(model.name)),
            "x-stepdown-reason": _header(route.choice.reason[:_LONGEST_REASON]),
        }

        async def parts() -> AsyncIterator[bytes]:
            ended = False
            try:
                async for part in passing.parts:
                    yield part
                ended = True
            finally:
                with anyio.CancelScope(shield=True):
                    await stack.aclose()
                    self._keep(model, route, passing, ended)

        return StreamingResponse(parts(), passing.status, headers, passing.media_type)

    def _keep(self, model: Model, route: Route, passing: Passing, ended: bool) -> None:
        router, collected = self._router, passing.collected
        usage, now = collected.tokens, time.time()
        usd = model.price.cost(usage)
        router.chooser.sent.note(model.name, route.prefix, usage.prompt, now)
        seconds = time.monotonic() - self._began
        router.figures.ended(model.name, passing.status, usage, usd, seconds, ended)
        router.journal.write(
            {
                "at": self._at,
                "seconds": round(seconds, 3),
                "policy": f"{router.chooser.policy.name} {router.chooser.policy.version}",
                "tier": router.chooser.tier_of(model.name),
                "model": model.name,
                "reason": route.choice.reason,
                "fell_back_from": [router.secrets.line(one) for one in self._failed],
                "status": passing.status,
                "ended": ended,
                "usd": usd,
                "request": self._body,
                "response": {
                    "model": model.name,
                    "choices": [{"index": 0, "message": collected.message, "finish_reason": collected.finish}],
                    "usage": {
                        "prompt_tokens": usage.prompt,
                        "completion_tokens": usage.completion,
                        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
                    },
                },
            },
            usd,
        )


def _has_key(headers: Headers, keys: Sequence[str]) -> bool:
    given = headers.get("authorization", "").removeprefix("Bearer ").encode()
    return not keys or any(hmac.compare_digest(given, key.encode()) for key in keys)


def _header(text: str) -> str:
    return "".join(c if 32 <= ord(c) < 127 else "?" for c in text)


def _error(status: int, problem: str, code: str) -> JSONResponse:
    """An error in the form that OpenAI's clients read."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    told: Mapping[str, Any] = {"error": {"message": problem, "type": kind, "param": None, "code": code}}
    return JSONResponse(told, status)
