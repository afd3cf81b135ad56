"""A loopback provider: an OpenAI-compatible server scripted by what its models can do, never by the label they get.

    with Provider({"weak": lambda request: Answer("hi")}) as provider:
        ...  # api_base is provider.url; provider.requests tells what came in

Run in a process of its own, so that it outlives the program under test:
`python -m tests.provider MODULE:ABILITIES [--log FILE]` prints its address on the first line; see `spawned`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from stepdown.builder.records import digest

Request = dict[str, Any]
"""The body of a chat completion request."""


@dataclass(frozen=True)
class Answer:
    """A well-formed chat completion. `tool_calls` are pairs of name and argument text, sent as they are."""

    text: str | None = ""
    tool_calls: tuple[tuple[Any, Any], ...] = ()
    finish: str | None = None
    """Finish reason; None: `tool_calls` where there are any, else `stop`."""
    usage: Mapping[str, Any] | None = None
    message: Mapping[str, Any] | None = None
    """Fields set in the message on top of the usual ones: `refusal`, `reasoning_content`, `function_call`, ..."""
    delay: float = 0.0
    """Seconds before it is sent."""

    def body(self, model: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": f"made-up-{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
                for n, (name, arguments) in enumerate(self.tool_calls)
            ]
        message.update(self.message or {})
        finish = self.finish or ("tool_calls" if self.tool_calls else "stop")
        usage = self.usage or {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
        return {
            "id": "chatcmpl-loopback",
            "object": "chat.completion",
            "created": 1,
            "model": model,
            "choices": [{"index": 0, "finish_reason": finish, "message": message}],
            "usage": dict(usage),
        }


@dataclass(frozen=True)
class Fault:
    """Something other than a chat completion: an HTTP answer, or a way of not giving one."""

    status: int = 200
    body: str | bytes | Mapping[str, Any] = ""
    headers: Mapping[str, str] | None = None
    connection: str = "keep"
    """`keep`, `drop` (closed before any answer), `cut` (closed in the middle of the body), `hang` (no answer until the
    provider closes), `trickle` (white space for ever)."""


Ability = Callable[[Request], "Answer | Fault"]


def error(
    status: int, message: str, code: str | None = None, kind: str = "invalid_request_error", **headers: str
) -> Fault:
    """An OpenAI-style error answer."""
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return Fault(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


FAULTS: dict[str, Fault] = {
    "payload_200": Fault(200, {"error": {"message": "upstream is overloaded", "code": 502}}),
    "payload_200_code_401": Fault(200, {"error": {"message": "upstream key", "code": 401}}),
    "payload_200_text": Fault(200, {"error": "boom"}),
    "choice_error": Fault(
        200,
        {
            "id": "x",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "error",
                    "error": {"code": 502, "message": "upstream died"},
                    "message": {"role": "assistant", "content": "par"},
                }
            ],
        },
    ),
    "error_beside_choices": Fault(
        200, {"error": {"message": "upstream died", "code": 502}, "choices": Answer("par").body("m")["choices"]}
    ),
    "rate_limit": error(429, "Rate limit reached", "rate_limit_exceeded", "requests"),
    "rate_limit_wait": error(429, "Rate limit reached", "rate_limit_exceeded", "requests", retry_after="1"),
    "server_500": error(500, "The server had an error", None, "server_error"),
    "server_502": Fault(502, "<html><body>Bad Gateway</body></html>", {"content-type": "text/html"}),
    "server_503": error(503, "The engine is overloaded", None, "server_error"),
    "overloaded_529": error(529, "Overloaded", None, "overloaded_error"),
    "drop": Fault(connection="drop"),
    "cut": Fault(connection="cut"),
    "hang": Fault(connection="hang"),
    "trickle": Fault(connection="trickle"),
    "not_json": Fault(200, "<html>all is well</html>"),
    "half_json": Fault(200, '{"id": "x", "choices": [{"index": 0, "mess'),
    "empty_body": Fault(200, ""),
    "json_list": Fault(200, "[]"),
    "json_null": Fault(200, "null"),
    "no_choices": Fault(200, {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}),
    "missing_choices": Fault(200, {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}),
    "null_message": Fault(200, {"id": "x", "choices": [{"index": 0, "finish_reason": "stop", "message": None}]}),
    "policy_400": error(400, "Your request was rejected as a result of our safety system", "content_policy_violation"),
    "azure_policy_400": error(
        400,
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        "content_filter",
    ),
    "moderation_403": error(403, "The model requires moderation and your input was flagged for violence"),
    "overflow_openai": error(
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "context_length_exceeded",
    ),
    "overflow_anthropic": error(400, "prompt is too long: 210000 tokens > 200000 maximum"),
    "overflow_vllm": error(
        400,
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens "
        "(4000 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.",
        "400",
        "BadRequestError",
    ),
    "overflow_vllm_new": error(
        400,
        "'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context length is 4096 "
        "tokens and your request has 4000 input tokens",
        "400",
        "BadRequestError",
    ),
    "overflow_llama_cpp": error(
        400,
        "request (3031 tokens) exceeds the available context size (2048 tokens), try increasing it",
        "400",
        "exceed_context_size_error",
    ),
    "overflow_gemini": error(
        400, "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576)."
    ),
    "overflow_openrouter": error(
        400,
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens",
        "400",
    ),
    "overflow_openrouter_raw": Fault(
        400,
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {
                    "raw": '{"error": {"message": "Too long.", "type": "x", "code": "context_length_exceeded"}}',
                    "provider_name": "Azure",
                },
            }
        },
    ),
    "overflow_413": error(413, "Request too large: prompt is too long for the context window"),
    "unauthorized": error(401, "Incorrect API key provided", "invalid_api_key"),
    "no_credit": error(402, "Insufficient credits"),
    "forbidden": error(403, "You are not allowed to use this model"),
    "unknown_model": error(404, "The model `m` does not exist or you do not have access to it", "model_not_found"),
    "unknown_model_400": error(400, "m is not a valid model ID", "400"),
    "quota_429": error(429, "You exceeded your current quota, please check your plan", "insufficient_quota"),
    "quoted_overflow": error(
        400, "Invalid value for messages[1].content: 'explain the context window of this budget'", "invalid_value"
    ),
    "quoted_overflow_statement": error(
        400, 'Invalid content "Why does it say that the prompt is too long: 9 tokens, exceeds the context window?"'
    ),
    "quoted_policy": error(400, "Invalid value for messages[1].content: 'the usage policies of the gym'"),
    "quoted_policy_statement": error(400, "Unknown role. Got text: It violates our usage policies, says the gym"),
    "quoted_unfinished": error(400, "Unknown field, got 'x " + "y " * 800 + "the prompt is too long: 9 tokens"),
    "quoted_model": error(400, "Invalid role in messages[0]: 'The model of the train does not exist'"),
    "quoted_422": Fault(
        422,
        {
            "detail": [
                {
                    "type": "missing",
                    "loc": ["body", "messages", 0, "name"],
                    "msg": "Field required",
                    "input": {"role": "user", "content": "this model's maximum context length is 5 tokens"},
                }
            ]
        },
    ),
    "bad_request": error(400, "Invalid value for messages[1]: tool_calls must be followed by tool messages"),
    "unprocessable": error(422, "Unprocessable: field required"),
}


class Failing:
    """An ability whose first `count` answers are a fault."""

    def __init__(self, count: int, fault: Fault | Answer, then: Ability) -> None:
        self._left = count
        self._fault = fault
        self._then = then
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer | Fault:
        with self._lock:
            self._left -= 1
            failing = self._left >= 0
        return self._fault if failing else self._then(request)


@dataclass(frozen=True)
class Seen:
    """One request that came in. `digest` is the canonical digest of its messages."""

    model: str
    digest: str
    body: Request
    key: str = ""
    """The bearer token it came with."""


class Provider:
    """The server, listening while the context is open. Unknown models get a 404. Thread-safe."""

    def __init__(self, abilities: Mapping[str, Ability], latency: float = 0.0, log: Path | None = None) -> None:
        self._abilities = dict(abilities)
        self._latency = latency
        self._log = log.open("a", encoding="utf-8") if log else None
        self._lock = threading.Lock()
        self._under_way: dict[str, int] = {}
        self.requests: list[Seen] = []
        self.most_at_once: dict[str, int] = {}
        """By model: the most requests that were under way together."""
        self.connections = 0
        """How many were made."""
        self.closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The `api_base`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def count(self, model: str | None = None) -> int:
        """How many requests came in, in all or for one model."""
        with self._lock:
            return sum(model in (None, seen.model) for seen in self.requests)

    def note_connection(self) -> None:
        with self._lock:
            self.connections += 1

    def repeated(self) -> list[tuple[str, str]]:
        """The (model, digest) pairs that were asked for more than once."""
        with self._lock:
            pairs = [(seen.model, seen.digest) for seen in self.requests]
        return sorted({pair for pair in pairs if pairs.count(pair) > 1})

    def answer(self, body: Request, key: str) -> Answer | Fault:
        model = str(body.get("model"))
        seen = Seen(model, digest(_storable(body.get("messages"))), body, key)
        with self._lock:
            self.requests.append(seen)
            self._under_way[model] = self._under_way.get(model, 0) + 1
            self.most_at_once[model] = max(self.most_at_once.get(model, 0), self._under_way[model])
            if self._log:
                self._log.write(json.dumps({"model": model, "digest": seen.digest}) + "\n")
                self._log.flush()
        try:
            ability = self._abilities.get(model)
            given = ability(body) if ability else FAULTS["unknown_model"]
            self.closing.wait(self._latency + (given.delay if isinstance(given, Answer) else 0.0))
            return given
        finally:
            with self._lock:
                self._under_way[model] -= 1

    def __enter__(self) -> Provider:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if self._log:
            self._log.close()


def _storable(value: Any) -> Any:
    """The value with lone surrogates escaped, so that anything that came in has a digest."""
    return json.loads(json.dumps(value).replace("\\ud", "\\\\ud")) if value is not None else None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that went away are what the tests are about: nothing to print."""


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body are written apart: with Nagle, each answer would wait 40 ms for the head to be acknowledged.
        disable_nagle_algorithm = True

        def setup(self) -> None:
            provider.note_connection()
            super().setup()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            key = self.headers.get("authorization", "").removeprefix("Bearer ")
            body = json.loads(raw)
            given = provider.answer(body, key)
            if isinstance(given, Answer):
                # ASCII only: whatever is in it, lone surrogates too, travels as escapes.
                given = Fault(200, json.dumps(given.body(str(body.get("model")))))
            self._send(given)

        def _send(self, fault: Fault) -> None:
            if fault.connection == "hang":
                provider.closing.wait(60)
            if fault.connection in {"hang", "drop"}:
                return self._drop()
            body = fault.body
            data = (
                body
                if isinstance(body, bytes)
                else body.encode()
                if isinstance(body, str)
                else json.dumps(body).encode()
            )
            length = len(data) + 1000 if fault.connection in {"cut", "trickle"} else len(data)
            self.send_response(fault.status)
            headers = {"content-type": "application/json", "content-length": str(length), **(fault.headers or {})}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()
            if fault.connection == "trickle":
                while not provider.closing.wait(0.05):
                    self.wfile.write(b" ")
                    self.wfile.flush()
            if fault.connection in {"cut", "trickle"}:
                self._drop()
            return None

        def _drop(self) -> None:
            """Close with a reset."""
            self.close_connection = True
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    return Handler


@contextmanager
def spawned(abilities: str, log: Path, latency: float = 0.0) -> Iterator[str]:
    """A provider in a process of its own; its `api_base`. `abilities` is `module:attribute`, a mapping of abilities.

    `log` gets a line `{"model", "digest"}` per request, flushed before the request is answered.
    """
    command = [sys.executable, "-m", "tests.provider", abilities, "--log", str(log), "--latency", str(latency)]
    root = Path(__file__).resolve().parent.parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address, "the provider did not start"
            yield address
        finally:
            process.terminate()


def logged(log: Path) -> list[tuple[str, str]]:
    """The (model, digest) pairs of a provider's log."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [(entry["model"], entry["digest"]) for entry in map(json.loads, lines)]


ECHO: dict[str, Ability] = {"echo": lambda request: Answer(str(request["messages"][-1]["content"]))}
"""Abilities to try a spawned provider with."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("abilities")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--latency", type=float, default=0.0)
    arguments = parser.parse_args()
    module, _, attribute = arguments.abilities.partition(":")
    abilities = getattr(importlib.import_module(module), attribute)
    with Provider(abilities, arguments.latency, arguments.log) as provider:
        print(provider.url, flush=True)
        sys.stdin.read()  # until the parent goes away


if __name__ == "__main__":
    # The module that abilities import is `tests.provider`, not this `__main__`: its records must be the same ones.
    importlib.import_module("tests.provider").main()
