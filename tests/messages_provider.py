"""A loopback server that speaks Anthropic's Messages API, counts cached prefixes, and bills like it.

with MessagesProvider({"opus": lambda body: [{"type": "text", "text": "hi"}]}) as provider:
    ...  # api_base is provider.url; provider.requests has each body as bytes, beside its bill
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.prompt_billing import Counted, PromptBilling, Refused

Ability = Callable[[Mapping[str, Any]], list[dict[str, Any]]]
"""The blocks that a model answers to a request's body."""
ANSWER_TOKENS = 10


@dataclass(frozen=True)
class Billed:
    """A request as it came in, and what its prompt was counted as."""

    sent: bytes
    counted: Counted

    @property
    def body(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.sent)
        return data

    @property
    def model(self) -> str:
        return str(self.body["model"])


class MessagesProvider:
    """The server, listening while the context is open. Thread-safe."""

    def __init__(self, abilities: Mapping[str, Ability], clock: Callable[[], float] = time.monotonic) -> None:
        self._abilities, self._billing, self._lock = abilities, PromptBilling(clock), threading.Lock()
        self.requests: list[Billed] = []
        self.takes_marks = True
        """Else a marked request is refused, as by a gateway that knows of no cache."""
        self.before_answer: Callable[[Mapping[str, Any]], None] = lambda body: None
        """Called with every request that was counted, before it is answered."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The `api_base`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def of(self, model: str) -> list[Billed]:
        """The requests to a model, in the order in which they came."""
        return [one for one in self.requests if one.model == model]

    def answer(self, sent: bytes) -> tuple[int, Mapping[str, Any]]:
        body = json.loads(sent)
        model = body["model"]
        if model not in self._abilities:
            return 404, _error("not_found_error", f"model: {model}")
        if not self.takes_marks and b"cache_control" in sent:
            return 400, _error("invalid_request_error", "system.0.cache_control: Extra inputs are not permitted")
        try:
            with self._lock:
                counted = self._billing.count(body)
                self.requests.append(Billed(sent, counted))
        except Refused as refused:
            return 400, _error("invalid_request_error", str(refused))
        self.before_answer(body)
        content = self._abilities[model](body)
        return 200, {
            "id": "msg_loopback",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": counted.plain,
                "cache_creation_input_tokens": counted.written,
                "cache_read_input_tokens": counted.read,
                "output_tokens": ANSWER_TOKENS,
            },
        }

    def __enter__(self) -> MessagesProvider:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def _handler(provider: MessagesProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, answer = provider.answer(sent) if self.path.endswith("/v1/messages") else (404, {})
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler
