"""The start and the end of a stream of bytes that may have no end."""

from __future__ import annotations


class Kept:
    """What is kept of a stream.

    >>> kept = Kept(first=2, last=1)
    >>> for piece in (b"ab", b"cd", b"ef"):
    ...     kept.add(piece)
    >>> kept.bytes()
    b'ab\\n[3 bytes left out]\\nf'
    """

    def __init__(self, first: int, last: int) -> None:
        self.total = 0
        self._first, self._last = first, last
        self._head, self._tail = bytearray(), bytearray()

    def add(self, data: bytes) -> None:
        """Take in the next bytes."""
        self.total += len(data)
        room = self._room()
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 3 * self._last:
            del self._tail[: -self._last]

    def _room(self) -> int:
        """How many more bytes belong to the start."""
        return max(0, self._first - len(self._head))

    def bytes(self) -> bytes:
        """What is kept, with a note on what is left out."""
        tail = bytes(self._tail[-self._last :])
        if left := self.total - len(self._head) - len(tail):
            return bytes(self._head) + f"\n[{left} bytes left out]\n".encode() + tail
        return bytes(self._head) + tail
