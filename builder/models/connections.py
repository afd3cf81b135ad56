"""Connections to endpoints: kept open between requests, each used by one request at a time, which ends at a deadline.

This is httpcore, the transport under httpx, without httpx's client. That costs twice as much processor time a request,
looks at all connections for each request, and has a time-out for each read only: a server that sends a byte now and
then is never cut off.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import httpcore
import httpx

from stepdown.builder.models.errors import CutOff, Unusable
from stepdown.builder.models.proxies import proxy_of

_KEPT = 4.0
"""Seconds that a connection is kept unused: less than the 5 s after which many servers close theirs, since a request
that crosses the closing is lost."""
LONGEST_BODY = 64 << 20
"""Bytes. No answer is that long."""
_PIECE = 64 << 10
"""Bytes that are written before the clock is looked at again."""

Header = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests of one kind go."""

    url: httpx.URL
    parts: httpcore.URL
    proxy: str | None
    """The address of the environment's proxy for it."""

    @classmethod
    def of(cls, address: str) -> Target:
        """Raises httpx.InvalidURL."""
        url = httpx.URL(address)
        parts = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        return cls(url, parts, proxy_of(address))


@dataclass(frozen=True, slots=True)
class RawReply:
    """What came back, undecoded."""

    status: int
    headers: list[Header]
    body: bytes


class Connections:
    """Connections by where they lead. Threads share one, and any number of requests may be under way."""

    def __init__(self) -> None:
        self._idle: dict[tuple[bytes, bytes, int | None], list[_Line]] = {}
        self._guard = threading.Lock()
        self._tls: ssl.SSLContext | None = None

    def post(self, target: Target, headers: Sequence[Header], body: bytes, until: float) -> RawReply:
        """The reply to one request; it must be whole by `until` on the monotonic clock, however it comes in.

        Raises CutOff, Unusable (it is too long), or what httpx names a TransportError: there was no connection, or it
        broke.
        """
        key = (target.parts.scheme, target.parts.host, target.parts.port)
        idle = self._idle.get(key)
        if idle is None:
            idle = self._idle.setdefault(key, [])
        try:
            line = idle.pop()  # the last one used: the others may have been closed meanwhile
        except IndexError:
            line = _Line(target.proxy, self._verification() if target.url.scheme == "https" else None)
        try:
            reply = line.post(target, headers, body, until)
        except BaseException:
            line.close()
            raise
        idle.append(line)
        return reply

    def close(self) -> None:
        """Close all. No request may be under way."""
        for idle in self._idle.values():
            while idle:
                idle.pop().close()

    def _verification(self) -> ssl.SSLContext:
        """By `SSL_CERT_FILE` or `SSL_CERT_DIR` where they are set. Making one takes long, so all share it."""
        with self._guard:
            if self._tls is None:
                self._tls = httpx.create_ssl_context()
            return self._tls


class _Line:
    """One connection, made when it is first needed, and anew where it was closed."""

    def __init__(self, proxy: str | None, tls: ssl.SSLContext | None) -> None:
        self._clock = _Deadline()
        self._pool = httpcore.ConnectionPool(
            ssl_context=tls,
            proxy=_proxy(proxy) if proxy else None,
            max_connections=1,
            keepalive_expiry=_KEPT,
            network_backend=_Network(self._clock),
        )

    def post(self, target: Target, headers: Sequence[Header], body: bytes, until: float) -> RawReply:
        self._clock.until = until
        request = httpcore.Request(b"POST", target.parts, headers=headers, content=body)
        try:
            response = self._pool.handle_request(request)
            try:
                return RawReply(response.status, response.headers, _read_whole(response))
            finally:
                response.close()
        except httpcore.ConnectTimeout:
            raise CutOff("no connection") from None
        except httpcore.TimeoutException:
            raise CutOff("no whole answer") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError) as error:
            raise getattr(httpx, type(error).__name__)(str(error)) from error

    def close(self) -> None:
        self._pool.close()


def _read_whole(response: httpcore.Response) -> bytes:
    pieces, length = [], 0
    assert not isinstance(response.stream, bytes)
    for piece in response.iter_stream():
        pieces.append(piece)
        length += len(piece)
        if length > LONGEST_BODY:
            raise Unusable(f"a body of more than {LONGEST_BODY >> 20} MiB")
    return b"".join(pieces)


def _proxy(address: str) -> httpcore.Proxy:
    """The environment's proxy, with the name and password that stand in its address."""
    parts = urlsplit(address)
    name = parts.netloc.rpartition("@")[2]
    sign_in = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return httpcore.Proxy(f"{parts.scheme}://{name}", auth=sign_in)


class _Deadline:
    """When the request of a connection must have ended."""

    def __init__(self) -> None:
        self.until = 0.0

    def left(self, passed: type[Exception]) -> float:
        """Seconds; raises `passed` where there are none."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise passed
        return left


class _Network(httpcore.NetworkBackend):
    """The system's network, on which nothing takes longer than the deadline leaves."""

    def __init__(self, clock: _Deadline) -> None:
        self._clock, self._system = clock, httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        # One by one: the system's own loop would give each of a name's addresses the whole time.
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        for *_, address in addresses:
            left = self._clock.left(httpcore.ConnectTimeout)
            try:
                stream = self._system.connect_tcp(str(address[0]), port, left, local_address, socket_options)
            except httpcore.ConnectError as error:
                failure = error
            else:
                return _Stream(stream, self._clock)
        raise failure


class _Stream(httpcore.NetworkStream):
    """A connection on which every read and write ends at the deadline.

    What is written goes out when an answer is waited for: head and body of a request in one piece.
    """

    def __init__(self, inner: httpcore.NetworkStream, clock: _Deadline) -> None:
        self._inner, self._clock = inner, clock
        self._written: list[bytes] = []

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._written:
            self._send()
        return self._inner.read(max_bytes, self._clock.left(httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._written.append(buffer)

    def _send(self) -> None:
        whole = b"".join(self._written)
        self._written.clear()
        try:
            for start in range(0, len(whole), _PIECE):
                self._inner.write(whole[start : start + _PIECE], self._clock.left(httpcore.WriteTimeout))
        except httpcore.WriteError:
            pass  # a server that will not read on may have said why

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._clock.left(httpcore.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left), self._clock)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
