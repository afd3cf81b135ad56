"""Runs a router's server in a thread of its own, until it is told to stop."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from stepdown.builder.common.secrets import Secrets
from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.config.pool import Pool
from stepdown.builder.pages.server import RunningServer, bind
from stepdown.routing.policies.contract import Policy
from stepdown.routing.serve.app import Router, make_app
from stepdown.routing.serve.choosing import Chooser
from stepdown.routing.serve.figures import Figures
from stepdown.routing.serve.journal import Journal
from stepdown.routing.serve.upstream import ModelEndpoints

GRACE_SECONDS = 30
"""How long calls in progress may take when the server ends."""


class RunningRouter(RunningServer):
    """The router's server. Made by `serve`."""

    def __init__(self, server: uvicorn.Server, bound: socket.socket, host: str) -> None:
        super().__init__(server, bound)
        self.address = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


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
    with bind(host, port) as bound:
        own = bound.getsockname()[1]
        secrets = Secrets(endpoint.api_key for endpoint in operation.endpoints.values() if endpoint.api_key)
        local = host in ("127.0.0.1", "localhost", "::1")
        names = frozenset(f"{name}:{own}" for name in ("127.0.0.1", "localhost", "[::1]")) if local else frozenset()
        router = Router(
            chooser=Chooser(policy, pool),
            upstream=ModelEndpoints(operation),
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
