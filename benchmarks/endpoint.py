"""An endpoint of the OpenAI form on loopback that takes a fraction of the processor time of those who ask it.

    python -m benchmarks.endpoint [--latency S]

Prints its address. A model with the name of a planted one makes its step, in words that no other request brings forth.
When its standard input ends it prints the processor seconds that its answers took, and ends.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stepdown.harnesses.planted.models import NAME

_PLANTED = re.compile(NAME)
_END = b"\r\n\r\n"


def answered(request: bytes) -> bytes:
    """The whole HTTP answer to the body of a request."""
    model = json.loads(request)["model"]
    word = hashlib.sha256(request).hexdigest()[:16]
    text = f"{model} makes 1 {word}" if _PLANTED.fullmatch(model) else f"The word is {word}."
    completion = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 2500, "completion_tokens": 6, "total_tokens": 2506},
    }
    data = json.dumps(completion).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(data), data)


class _Connection(asyncio.Protocol):
    def __init__(self, latency: float) -> None:
        self._latency, self._held = latency, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._held += data
        while (body := self._take_body()) is not None:
            answer = answered(body)
            if self._latency:
                asyncio.get_running_loop().call_later(self._latency, self._transport.write, answer)
            else:
                self._transport.write(answer)

    def _take_body(self) -> bytes | None:
        """The body of the next whole request."""
        head, end, rest = self._held.partition(_END)
        if not end:
            return None
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        if len(rest) < length:
            return None
        self._held = rest[length:]
        return rest[:length]


async def _serve(latency: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(latency), "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    begun = time.process_time()
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()
    print(time.process_time() - begun, flush=True)


@dataclass
class Endpoint:
    """A running endpoint. `cpu_s` is set when it has ended."""

    url: str
    cpu_s: float = 0.0


@contextmanager
def spawned(latency: float) -> Iterator[Endpoint]:
    """An endpoint in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.endpoint", "--latency", str(latency)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        endpoint = Endpoint(process.stdout.readline().strip())
        try:
            yield endpoint
        finally:
            process.stdin.close()
            endpoint.cpu_s = float(process.stdout.readline() or "nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--latency", type=float, default=0.0)
    asyncio.run(_serve(parser.parse_args().latency))


if __name__ == "__main__":
    main()
