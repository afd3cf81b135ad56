"""Divides items into folds: at random, or so that whole groups are held out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

FOLDS = 5
RANDOM, GROUPED = "random", "group held out"


def random_folds(items: int, seed: int) -> NDArray[int64]:
    """The fold of each item, drawn by lot; folds differ by one item at most."""
    import numpy as np

    count = min(FOLDS, items)
    return np.random.default_rng(seed).permutation(items) % count


def numbered(groups: Sequence[str]) -> NDArray[int64]:
    """The number of each item's group, from 0, in the order of their names. (An array of texts would pad all of them to
    the longest, and take names that end with NUL for one.)

    >>> numbered(["b", "a", "b"]).tolist()
    [1, 0, 1]
    """
    import numpy as np

    number = {name: place for place, name in enumerate(sorted(set(groups)))}
    return np.array([number[name] for name in groups], dtype=np.int64)


def grouped_folds(groups: Sequence[str], seed: int) -> NDArray[int64] | None:
    """The fold of each item, all of a group in one; the largest groups are dealt first, each to the smallest fold.

    At most FOLDS folds, and no more than there are groups. None where there is a single group.
    """
    import numpy as np

    owner = numbered(groups)
    sizes = np.bincount(owner)
    count = min(FOLDS, len(sizes))
    if count < 2:
        return None
    order = np.random.default_rng(seed).permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    of_group, filled = np.zeros(len(sizes), dtype=np.int64), np.zeros(count, dtype=np.int64)
    for group in order:
        fold = int(filled.argmin())
        of_group[group] = fold
        filled[fold] += sizes[group]
    return of_group[owner]
