"""Which split a group is in: its own hash decides, so all its rows are in one, and stay there as releases grow."""

from __future__ import annotations

import hashlib

from stepdown.releases.layout import TEST, TRAIN, Holdout


def split_of(benchmark: str, group: str, holdout: Holdout) -> str:
    """`test` for about `holdout.share` of the groups of a benchmark, else `train`.

    >>> {split_of("b", f"repo-{n}", Holdout(share=0.0, seed=0)) for n in range(100)}
    {'train'}
    """
    drawn = hashlib.sha256(f"{holdout.seed}\0{benchmark}\0{group}".encode("utf-8", "surrogatepass")).digest()
    return TEST if int.from_bytes(drawn[:8], "big") < holdout.share * 2**64 else TRAIN
