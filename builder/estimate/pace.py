"""How long an instance takes for a call, and for an execution beside its calls: what a plan's days go by."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from stepdown.builder.cache.inventory import Inventory
from stepdown.builder.cache.store import is_cache
from stepdown.builder.run.folder import cache_of
from stepdown.builder.run.ledger import Ledger

PAUSED = 3600.0
"""Seconds in which no instance of a run came to an answer: it stood still."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What an instance's time goes by, and how that is known."""

    call: float
    """Seconds from one answer of an instance to the next, apart from what `execution` counts."""
    execution: float
    """Seconds of a trajectory beside its calls: opening its environment, and grading."""
    basis: str


def read_pace(folder: Path, ledger: Ledger) -> Pace | None:
    """The mean time from one answer of an instance to its next in a run, with all that lay between them.

    It goes by when the response cache stored what the run paid for. None where no two answers of an instance are there.
    """
    cache = cache_of(folder, ledger)
    if not is_cache(cache):
        return None
    with Inventory(cache) as inventory:
        times = [sorted(inventory.read_times(ledger.paid_keys(one.id))) for one in ledger.instances()]
    pauses = _pauses(sorted(when for each in times for when in each))
    pairs = (pair for each in times for pair in pairwise(each))
    gaps = [later - earlier for earlier, later in pairs if not _stood(earlier, later, pauses)]
    if not gaps:
        return None
    mean = sum(gaps) / len(gaps)
    return Pace(
        mean,
        0.0,
        f"an instance takes {mean:.3g} s a call, with all that lies between two answers, as in the mean of {len(gaps)} "
        "of the run, and with as many instances in hand on a machine as it had",
    )


def _pauses(times: Sequence[float]) -> list[tuple[float, float]]:
    return [(earlier, later) for earlier, later in pairwise(times) if later - earlier > PAUSED]


def _stood(earlier: float, later: float, pauses: Sequence[tuple[float, float]]) -> bool:
    """Whether the whole run stood still between these two answers."""
    place = bisect_left(pauses, (earlier, 0.0))
    return place < len(pauses) and pauses[place][1] <= later
