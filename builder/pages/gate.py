"""Lets in only requests from this server's own pages, in a browser on this machine that has used a printed link.

Another page in the same browser can send requests to a port on loopback and, through a host name that it points to
127.0.0.1, even read the answers. So Host and Origin are checked. Every page needs the cookie that a printed link is
exchanged for. No answer may be framed, stored, or load anything from elsewhere.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from typing import Any
from urllib.parse import parse_qs, quote

Scope = MutableMapping[str, Any]
Received = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Received]]
Send = Callable[[Received], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

READING = frozenset({"GET", "HEAD"})
"""Methods that change nothing."""
LARGEST_BODY = 256 * 1024
"""Bytes. The longest notes fit, escaped as a form sends them."""
LONGEST_QUERY = 8 * 1024

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    # Not `no-referrer`: then a browser sends `Origin: null` with a form, and there is nothing to check.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Access:
    """Access to the pages under one path, `/{section}/{name}/`: whoever has the token is let in."""

    section: str
    name: str
    """Without slashes."""
    called: str
    """What a name of this section is, as a link says it: `reviewer`, `run`."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def cookie(self) -> str:
        """The cookie's name. All ports of a host share their cookies, so each access has a name of its own."""
        return f"stepdown-{sha256(self.token.encode()).hexdigest()[:16]}"

    @property
    def path(self) -> str:
        """The path of the pages, as an address has it."""
        return f"/{self.section}/{quote(self.name, safe='')}/"

    def covers(self, path: str) -> bool:
        """Whether a request's path, decoded, is one of these pages."""
        return f"{path}/".startswith(f"/{self.section}/{self.name}/")

    def link(self, port: int) -> str:
        """The link to be opened in a browser."""
        return f"http://127.0.0.1:{port}/?{self.called}={quote(self.name, safe='')}&token={self.token}"


@dataclass(frozen=True, slots=True)
class GateWords:
    """What a gate says, in HTML of this program, never of a user."""

    command: str
    """The command that prints the links."""
    several: str
    """The heading over the links of a browser that holds several accesses."""
    other: str
    """To a browser whose access is to other pages."""
    failed: str
    """What became of a request that failed."""
    too_long: str
    """To a request whose body is too large."""

    @property
    def how_to_enter(self) -> str:
        # A browser that follows a link from another site, such as a terminal in a page, sends the new cookie only from
        # the next click on.
        return (
            f"Open the link that <code>{self.command}</code> printed; a server that was started anew printed a new "
            'one. If you have just opened it, <a href="/">go on</a>.'
        )


class Gate:
    """Wraps the app. Requests that it lets through carry `scope["access"]`, the access to their pages."""

    def __init__(
        self,
        app: App,
        accesses: Sequence[Access],
        port: int,
        failed: Callable[[Exception], None],
        words: GateWords,
        methods: Collection[str] = READING,
    ) -> None:
        """`failed` is called with every error that the app does not handle. Other methods than these are refused."""
        self._app, self._accesses, self._failed = app, accesses, failed
        self._words, self._methods = words, methods
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no lifespan, no websockets
        answer = _Answer(send)
        try:
            await self._admit(scope, receive, answer)
        except Exception as error:
            self._failed(error)
            if not answer.begun:
                told = f"{self._words.failed} What happened stands in the terminal."
                await answer.page(500, "Something went wrong", told)

    async def _admit(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        headers = _Headers(scope["headers"])
        host = headers.one("host")
        if host not in self._hosts:
            await answer.page(403, "Refused", "This server answers to 127.0.0.1 only, at the port that it printed.")
        elif scope["method"] not in self._methods:
            await answer.page(405, "Refused", "No page here takes that.")
        elif scope["method"] not in READING and headers.one("origin") != f"http://{host}":
            await answer.page(403, "Refused", "The request came from another page.")
        elif len(scope["query_string"]) > LONGEST_QUERY:
            await answer.page(414, "Refused", "The address is too long.")
        elif scope["path"] == "/":
            await self._exchange_token(scope, headers, answer)
        else:
            await self._pass_on(scope, headers, receive, answer)

    async def _exchange_token(self, scope: Scope, headers: _Headers, answer: _Answer) -> None:
        """Exchange a link's token for a cookie, and redirect to an address without the token."""
        given = parse_qs(scope["query_string"].decode("latin-1"))
        token = given.get("token", [""])[0]
        if not token:
            known = [access for access in self._accesses if self._holds(access, headers)]
            if len(known) == 1:
                await answer.moved(known[0].path)
            elif known:
                own = ", ".join(f'<a href="{access.path}">{escape(access.name)}</a>' for access in known)
                await answer.page(200, self._words.several, f"{own}.")
            else:
                await answer.page(401, "No token", self._words.how_to_enter)
            return
        access = next((access for access in self._accesses if _same(access.token, token)), None)
        if access is None or given.get(access.called, [access.name])[0] != access.name:
            await answer.page(403, "Wrong token", self._words.how_to_enter)
            return
        cookie = f"{access.cookie}={access.token}; Path=/; HttpOnly; SameSite=Strict"
        await answer.moved(access.path, {"set-cookie": cookie})

    async def _pass_on(self, scope: Scope, headers: _Headers, receive: Receive, answer: _Answer) -> None:
        held = [access for access in self._accesses if self._holds(access, headers)]
        if not held:
            await answer.page(401, "No token", self._words.how_to_enter)
            return
        if not scope["path"].startswith("/static/"):
            held = [access for access in held if access.covers(scope["path"])]
            if not held:
                await answer.page(403, "Not yours", self._words.other)
                return
        body = await _read_body(headers, receive)
        if body is None:
            await answer.page(413, "Too long", self._words.too_long)
            return
        await self._app({**scope, "access": held[0]}, _replaying(body, receive), answer)

    @staticmethod
    def _holds(access: Access, headers: _Headers) -> bool:
        return _same(access.token, headers.cookies().get(access.cookie, ""))


def _same(token: str, given: str) -> bool:
    return secrets.compare_digest(token.encode(), given.encode("utf-8", "replace"))


class _Headers:
    def __init__(self, raw: Sequence[tuple[bytes, bytes]]) -> None:
        self._raw = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw]

    def one(self, name: str) -> str | None:
        """The header's value; None where it is missing or there more than once."""
        found = [value for key, value in self._raw if key == name]
        return found[0] if len(found) == 1 else None

    def cookies(self) -> Mapping[str, str]:
        """The cookies by name. They are parsed by hand, since `http.cookies` gives up at the first malformed one.

        Other programs on this host may have set such cookies: all of its ports share them.
        """
        pairs = (pair.partition("=") for key, value in self._raw if key == "cookie" for pair in value.split(";"))
        return {name.strip(): value.strip() for name, _, value in pairs}


async def _read_body(headers: _Headers, receive: Receive) -> bytes | None:
    """Read the request's body; None where it is too large."""
    if (declared := headers.one("content-length")) and declared.isdigit() and int(declared[:12]) > LARGEST_BODY:
        return None
    body, more = b"", True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            break
        body += event.get("body", b"")
        more = event.get("more_body", False)
        if len(body) > LARGEST_BODY:
            return None
    return body


def _replaying(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the app the body that was read already."""
    events: list[Received] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Received:
        return events.pop() if events else await receive()

    return replay


class _Answer:
    """Sends an answer, with the headers that every answer has."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def __call__(self, event: Received) -> None:
        if event["type"] == "http.response.start":
            self.begun = True
            ours = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            rest = [(name, value) for name, value in event.get("headers", ()) if name.decode().lower() not in HEADERS]
            event = {**event, "headers": [*rest, *ours]}
        await self._send(event)

    async def page(self, status: int, title: str, text: str) -> None:
        """Send a page of its own. `title` and `text` are HTML of this program, never of a user."""
        body = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
            f'<meta name="viewport" content="width=device-width"><title>{title}</title><h1>{title}</h1><p>{text}</p>'
        ).encode()
        await self._respond(status, {"content-type": "text/html; charset=utf-8"}, body)

    async def moved(self, path: str, headers: Mapping[str, str] | None = None) -> None:
        await self._respond(303, {"location": path, **(headers or {})}, b"")

    async def _respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        pairs.append((b"content-length", str(len(body)).encode()))
        await self({"type": "http.response.start", "status": status, "headers": pairs})
        await self({"type": "http.response.body", "body": body})
