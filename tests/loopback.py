"""A server on loopback, in a thread: what the stand-ins of other people's servers have in common."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


class Loopback:
    """A context manager. The server has a port of its own."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self.requests: list[tuple[str, str]] = []
        """Method and path of every request, in order."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
