"""Reads what a command prints, as bytes and with a bound: it may be hostile, and there may be no end to it."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

from stepdown.builder.common import kept
from stepdown.harnesses.swebench.limits import MIB

FIRST = MIB
"""Bytes that are kept of the start of an output."""
LAST = MIB // 16
"""Bytes that are kept of its end."""
MOST = 64 * MIB
"""Bytes after which nothing more is read."""

SUBMITS = b"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""First line of an output that submits the rest of it: such a one is kept whole."""

Stopped = Literal["time", "output", "disk"]
"""Why an output was not read to its end."""

_HEADER = struct.Struct(">BxxxL")
_PIECE = MIB // 4


class KeptOutput(kept.Kept):
    """The start and the end of what a command prints; all of it where it submits."""

    def __init__(self, first: int = FIRST, last: int = LAST) -> None:
        super().__init__(first, last)

    def _room(self) -> int:
        return MOST if self._head.lstrip().startswith(SUBMITS) else super()._room()


class Frames:
    """The payload of Docker's multiplexed stream, which comes in pieces of any length."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._left = 0

    def payload(self, data: bytes) -> bytes:
        """What the next bytes of the stream hold of the command's output."""
        self._pending += data
        out = bytearray()
        while self._pending:
            if self._left:
                taken = self._pending[: self._left]
                out += taken
                del self._pending[: len(taken)]
                self._left -= len(taken)
            elif len(self._pending) < _HEADER.size:
                break
            else:
                _, self._left = _HEADER.unpack_from(self._pending)
                del self._pending[: _HEADER.size]
        return bytes(out)


class Stream:
    """The attached output of one command. Closing it does not end the command."""

    def __init__(self, attached: Any) -> None:
        """`attached` is what the Docker SDK's `exec_start(socket=True)` gives."""
        self._attached = attached
        self._socket = getattr(attached, "_sock", attached)
        self._frames = Frames()
        self._read_ahead = self._buffered(attached)

    def read(self, keep: KeptOutput, deadline: float, look: Callable[[], bool] | None = None) -> Stopped | None:
        """Read on to the end; else why not. `look`, asked every second or so, says whether to go on.

        `deadline` is on the monotonic clock. Raises OSError.
        """
        keep.add(self._frames.payload(self._read_ahead))
        self._read_ahead, looked = b"", time.monotonic()
        while True:
            now = time.monotonic()
            if now >= deadline:
                return "time"
            if keep.total > MOST:
                return "output"
            if look is not None and now - looked >= 1.0:
                if not look():
                    return "disk"
                # Looking at a million files takes its time: it must not become all that is done.
                looked = time.monotonic() + 9 * (time.monotonic() - now)
            self._socket.settimeout(min(1.0, max(0.01, deadline - now)))
            try:
                data = self._socket.recv(_PIECE)
            except TimeoutError:
                continue
            if not data:
                return None
            keep.add(self._frames.payload(data))

    def drain(self, deadline: float) -> bool:
        """Read to the end and keep nothing, since Docker stands still while nobody reads; whether the end came."""
        while time.monotonic() < deadline:
            self._socket.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                if not self._socket.recv(_PIECE):
                    return True
            except TimeoutError:
                return False
        return False

    def close(self) -> None:
        """Let go of the connection."""
        with suppress(OSError, ValueError):
            self._attached.close()
        with suppress(OSError, ValueError):
            self._socket.close()

    def _buffered(self, attached: Any) -> bytes:
        """What came together with the answer's head: the SDK's own readers lose it where a machine is busy."""
        try:
            reader = attached._response.raw._fp.fp
            self._socket.setblocking(False)
            return bytes(reader.peek(1))
        except (AttributeError, OSError, ValueError):
            return b""
