"""Runs a server in a thread of its own until Ctrl-C: pages behind their gate, or any other app."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from stepdown.builder.errors import BadInput
from stepdown.builder.pages.gate import Gate

HOST = "127.0.0.1"
GRACE_SECONDS = 5
"""How long requests in progress may take when the server ends."""


class RunningServer:
    """A server that runs in a thread of its own, on a socket that is bound already."""

    def __init__(self, server: uvicorn.Server, bound: socket.socket) -> None:
        self._server = server
        self.port: int = bound.getsockname()[1]
        # Not in the main thread: there uvicorn would take the signals, and raise them again when it has ended.
        self._thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="server")
        self._thread.start()
        while self.is_alive and not server.started:
            self._thread.join(0.01)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """End the server after the requests in progress. A second call does not wait for them."""
        self._server.force_exit = self._server.should_exit
        self._server.should_exit = True

    def wait(self) -> None:
        while self.is_alive:
            self._thread.join(0.5)  # not forever: signals are handled in between


@contextmanager
def serving(gated: Callable[[int], Gate], port: int = 0) -> Iterator[RunningServer]:
    """Serve pages while the block runs. Raises BadInput where the port is taken.

    `gated` makes the gate, and the app behind it, for the port that was had.
    """
    with bind(HOST, port) as bound:
        logging.getLogger("uvicorn.error").addHandler(logging.NullHandler())
        settings = uvicorn.Config(
            gated(bound.getsockname()[1]),
            lifespan="off",
            ws="none",
            log_config=None,
            log_level="critical",
            access_log=False,  # an address may hold a token
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        server = RunningServer(uvicorn.Server(settings), bound)
        try:
            yield server
        finally:
            server.stop()
            server.wait()


def bind(host: str, port: int) -> socket.socket:
    """A socket at an address; port 0 takes a free one. Raises BadInput where it can not be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio sends each chunk at once; else a chunk waits 40 ms for the one before.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise BadInput(f"port {port} can not be had: {error.strerror}", field="--port") from None
    return bound
