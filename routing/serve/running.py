"""Runs a router's server in a thread of its own, until it is told to stop."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from stepdown.builder.common.secrets import Secrets
from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.config.pool import Pool
from stepdown.builder.errors import BadInput
from stepdown.routing.policies.contract import Policy
from stepdown.routing.serve.app import Router, make_app
from stepdown.routing.serve.choosing import Chooser
from stepdown.routing.serve.figures import Figures
from stepdown.routing.serve.journal import Journal
from stepdown.routing.serve.upstream import Upstream

GRACE_SECONDS = 30
"""How long calls in progress may take when the server ends."""


class RunningRouter:
    """A server in a thread of its own. Made by `serve`."""

    def __init__(self, server: uvicorn.Server, bound: socket.socket, host: str) -> None:
        self._server = server
        self.port: int = bound.getsockname()[1]
        self.address = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        self._thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="router")
        self._thread.start()
        while self._thread.is_alive() and not server.started:
            self._thread.join(0.01)

    def stop(self) -> None:
        """End it after the calls in progress. A second call does not wait for them."""
        self._server.force_exit = self._server.should_exit
        self._server.should_exit = True

    def wait(self) -> None:
        while self._thread.is_alive():
            self._thread.join(0.5)  # not forever: signals are handled in between


@contextmanager
def serve(
    policy: Policy,
    pool: Pool,
    operation: OperationConfig,
    host: str = "127.0.0.1",
    port: int = 0,
    keys: Sequence[str] = (),
    log: Path | None = None,
    budget: float | None = None,
) -> Iterator[RunningRouter]:
    """Serve while the block runs. Raises BadInput where the address or the log can not be had."""
    with _bound(host, port) as bound:
        own = bound.getsockname()[1]
        secrets = Secrets(endpoint.api_key for endpoint in operation.endpoints.values() if endpoint.api_key)
        local = host in ("127.0.0.1", "localhost", "::1")
        names = frozenset(f"{name}:{own}" for name in ("127.0.0.1", "localhost", "[::1]")) if local else frozenset()
        router = Router(
            chooser=Chooser(policy, pool),
            upstream=Upstream(operation),
            journal=Journal(log),
            figures=Figures(),
            secrets=secrets,
            keys=tuple(keys),
            hosts=names,
            budget=budget,
        )
        logging.getLogger("uvicorn.error").addHandler(logging.NullHandler())
        settings = uvicorn.Config(
            make_app(router),
            ws="none",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            backlog=1024,
            timeout_keep_alive=75,  # longer than clients keep an idle connection: none is closed under a request
        )
        server = RunningRouter(uvicorn.Server(settings), bound, host)
        try:
            yield server
        finally:
            server.stop()
            server.wait()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio sends each chunk at once; else a chunk waits 40 ms for the one before.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise BadInput(f"{host}, port {port} can not be had: {error.strerror}", field="--port") from None
    return bound
