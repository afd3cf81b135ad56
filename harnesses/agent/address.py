"""The address of an episode: an OpenAI-compatible server that only this episode's program can use.

All episodes of a process share one thread with an event loop; each has a listening socket of its own, and a key. A
request is held until its exchange has an answer.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepdown.harnesses.agent import reply as replies
from stepdown.harnesses.agent.exchange import Exchange, NotTaken
from stepdown.harnesses.agent.reply import Reply
from stepdown.harnesses.agent.request import BadRequest, read_request

if TYPE_CHECKING:
    from aiohttp import web

LARGEST_BODY = 32 << 20
"""Bytes of a request."""
_KEEP_ALIVE = 10.0
"""Seconds between the comments that keep a stream open while a model thinks."""
_LOOPBACK = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class ProgramAddress:
    """What a program is told of an address."""

    url: str
    """The base URL, with `/v1`."""
    key: str
    model: str


class EpisodeServers:
    """The servers of this process's episodes. Its thread is started with the first of them."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def open(self, exchange: Exchange, model: str, listening: socket.socket | None = None) -> Iterator[ProgramAddress]:
        """Serve an exchange while the block runs, under the name of this model.

        `listening` is a socket that listens on a loopback interface, perhaps another namespace's; it is closed after.
        """
        sock = listening if listening is not None else _loopback_socket()
        place = ProgramAddress(
            f"http://127.0.0.1:{sock.getsockname()[1]}/v1", f"stepdown-{secrets.token_hex(24)}", model
        )
        loop = self._running_loop()
        try:
            runner = _wait_for(loop, _begin(exchange, place, sock))
        except BaseException:
            sock.close()
            raise
        try:
            yield place
        finally:
            exchange.end()
            _wait_for(loop, runner.cleanup())

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="agent-addresses", daemon=True).start()
            return self._loop


def _loopback_socket() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.bind(("127.0.0.1", 0))
        sock.listen(128)
    except OSError:
        sock.close()
        raise
    return sock


def _wait_for(loop: asyncio.AbstractEventLoop, work: Any) -> Any:
    return asyncio.run_coroutine_threadsafe(work, loop).result()


async def _begin(exchange: Exchange, place: ProgramAddress, sock: socket.socket) -> web.AppRunner:
    from aiohttp import web

    app = web.Application(client_max_size=LARGEST_BODY, middlewares=[web.middleware(_Door(exchange, place.key))])
    desk = _Desk(exchange, place.model)
    app.router.add_post("/v1/chat/completions", desk.complete)
    app.router.add_get("/v1/models", desk.models)
    app.router.add_get("/v1/models/{name:.+}", desk.one_model)
    # A client that hangs up cancels its handler: that is how its request is known to be given up.
    # To its server a shutdown in no time is one that waits for ever.
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    await web.SockSite(runner, sock).start()
    return runner


def _error(status: int, problem: str, param: str | None = None, code: str | None = None) -> web.Response:
    """An error in the form that clients of this API read."""
    from aiohttp import web

    kind = "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"
    told = {
        "error": {"message": f"{param}: {problem}" if param else problem, "type": kind, "param": param, "code": code}
    }
    return web.json_response(told, status=status)


class _Door:
    """Lets in who has the key and comes from here, and turns every error into the API's form."""

    def __init__(self, exchange: Exchange, key: str) -> None:
        self._exchange, self._key = exchange, key

    async def __call__(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        from aiohttp import web

        if request.headers.get("origin") or (request.host.rpartition(":")[0] or request.host) not in _LOOPBACK:
            return _error(403, "only programs of this episode may ask")
        given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        given = given or request.headers.get("api-key", "")
        if not hmac.compare_digest(given.encode(), self._key.encode()):
            self._exchange.note_refused("a request came without this episode's key")
            return _error(401, "Incorrect API key provided", code="invalid_api_key")
        try:
            return await handler(request)
        except BadRequest as error:
            self._exchange.note_refused(str(_named(error)))
            return _error(400, error.problem, error.param)
        except NotTaken as error:
            return _error(error.status, error.problem)
        except web.HTTPException as error:
            self._exchange.note_refused(f"{request.method} {request.path[:80]}: {error.reason}")
            known = "there are /v1/chat/completions and /v1/models"
            return _error(error.status, f"{error.reason}: {known}" if error.status == 404 else error.reason)


def _named(error: BadRequest) -> str:
    return f"{error.param}: {error.problem}" if error.param else error.problem


class _Connection:
    """A client that waits for an answer, as an exchange knows it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.reply: asyncio.Future[Reply] = self._loop.create_future()

    def give(self, reply: Reply) -> None:
        self._loop.call_soon_threadsafe(self._set, reply)

    def _set(self, reply: Reply) -> None:
        if not self.reply.done():
            self.reply.set_result(reply)


class _Desk:
    """Answers the requests that were let in."""

    def __init__(self, exchange: Exchange, model: str) -> None:
        self._exchange, self._model = exchange, model

    async def models(self, _: web.Request) -> web.Response:
        from aiohttp import web

        return web.json_response({"object": "list", "data": [self._described()]})

    async def one_model(self, request: web.Request) -> web.Response:
        from aiohttp import web

        if request.match_info["name"] != self._model:
            return _error(404, "The model does not exist", "model", "model_not_found")
        return web.json_response(self._described())

    async def complete(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        asked = read_request(await request.read())
        waiter = _Connection()
        held = self._exchange.arrive(asked, waiter, again=_says_again(request))
        done = False
        try:
            if asked.stream:
                answer = await self._stream(request, waiter, asked)
            else:
                text = json.dumps(replies.body(asked, await waiter.reply))
                answer = web.Response(text=text, content_type="application/json")
                await answer.prepare(request)
                await answer.write_eof()
            done = True
            return answer
        finally:
            (self._exchange.delivered if done else self._exchange.left)(held, waiter)

    async def _stream(self, request: web.Request, waiter: _Connection, asked: Any) -> web.StreamResponse:
        from aiohttp import web

        headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        stream = web.StreamResponse(headers=headers)
        await stream.prepare(request)
        while not waiter.reply.done():
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(waiter.reply), _KEEP_ALIVE)
                break
            await stream.write(b": a model is thinking\n\n")
        for event in replies.events(asked, await waiter.reply):
            await stream.write(event)
        await stream.write_eof()
        return stream

    def _described(self) -> dict[str, Any]:
        return {"id": self._model, "object": "model", "created": 0, "owned_by": "stepdown"}


def _says_again(request: web.Request) -> bool:
    """Whether a client's own count of tries says that it has sent this before."""
    count = request.headers.get("x-stainless-retry-count", "0")
    return count.isascii() and count.isdigit() and int(count[:3]) > 0
