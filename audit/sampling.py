"""Which steps are audited: a step's own hash decides, so the choice is the same anywhere and stable as a run grows."""

from __future__ import annotations

import hashlib


def is_sampled(seed: int, row_id: str, rate: float) -> bool:
    """Whether a row is in an independent sample of about `rate` of all rows (paper, section 5).

    >>> is_sampled(0, "bfcl/multi_turn_base_0/1", 1.0), is_sampled(0, "bfcl/multi_turn_base_0/1", 0.0)
    (True, False)
    """
    drawn = hashlib.sha256(f"{seed}\0{row_id}".encode()).digest()
    return int.from_bytes(drawn[:8], "big") < rate * 2**64
