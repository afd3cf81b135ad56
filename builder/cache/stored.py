"""An entry as a cache's folder holds it, whatever form the file has that it stands in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

PAGE = 500
"""Entries that are read at once."""


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A key and its value, as far as they can be read: `problem` says what cannot."""

    place: str
    """What names it where its key is unreadable: its row, and the file."""
    key: Any
    """None where it does not decode."""
    value: Any
    """JSON; None where it does not decode."""
    size: int
    """Bytes of key and value as stored."""
    stored: float
    """Seconds since the epoch."""
    problem: str = ""


class Values(Protocol):
    """Reads one file of a cache, which others may use meanwhile. Raises BadInput where it cannot be read."""

    def read(self) -> Iterator[StoredValue]:
        """Every entry that is there now, read in portions. What others add meanwhile is left out."""

    def held(self, keys: Sequence[str]) -> dict[str, float]:
        """Which of these keys stand in the file, and when each was stored. Not more than PAGE at once."""

    def close(self) -> None: ...
