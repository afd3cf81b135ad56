"""Which rows are audited: a row's own hash decides, so the choice is the same anywhere and stable as a run grows."""

from __future__ import annotations

import hashlib

DRAWS = 1 << 64


def draw_of(seed: int, row_id: str) -> int:
    """A row's own draw, uniform in [0, 2**64)."""
    return int.from_bytes(hashlib.sha256(f"{seed}\0{row_id}".encode()).digest()[:8], "big")


def is_sampled(seed: int, row_id: str, rate: float) -> bool:
    """Whether a row is in an independent sample of about `rate` of all rows (paper, section 5).

    >>> is_sampled(0, "made/job-1/2", 1.0), is_sampled(0, "made/job-1/2", 0.0)
    (True, False)
    """
    return draw_of(seed, row_id) < rate * DRAWS
