"""The machines that work on a run, as its head tells whoever looks: a small file beside the ledger, in no release."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FILE_NAME = "nodes.json"
EVERY = 2.0
"""Seconds between two versions of the file."""
STALE = 10.0
"""Seconds. Of a head that works the file is never as old."""


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """One machine."""

    address: str
    machine: str
    """Its own name."""
    is_open: bool
    """Whether it is given work; else it was given up."""
    in_hand: tuple[str, ...]
    """Instances, `benchmark/id`."""
    calls: int
    """Paid by it since the head began."""
    calls_per_second: float
    """Lately."""
    logs: tuple[str, ...]
    """The files on that machine that its processes write to, as far as anybody knows."""


@dataclass(frozen=True, slots=True)
class NodesSeen:
    """All machines of a run, at one time."""

    written: float
    """Seconds since the epoch."""
    ended: bool
    """Whether the work on them has come to an end."""
    nodes: tuple[NodeSeen, ...]

    @property
    def age(self) -> float:
        """Seconds."""
        return max(0.0, time.time() - self.written)

    @property
    def is_current(self) -> bool:
        """Whether a head is at work, and this is how it stands."""
        return not self.ended and self.age < STALE


def write_nodes(folder: Path, nodes: Sequence[NodeSeen], ended: bool) -> None:
    """Put the file in the place of the last one, at once. Raises OSError."""
    text = json.dumps({"written": time.time(), "ended": ended, "nodes": [asdict(node) for node in nodes]})
    beside = folder / f"{FILE_NAME}.{os.getpid()}"
    beside.write_text(text, encoding="utf-8")
    beside.replace(folder / FILE_NAME)


def read_nodes(folder: Path) -> NodesSeen | None:
    """What the file says; None where there is none that can be read: the run was never on a cluster."""
    try:
        data = json.loads((folder / FILE_NAME).read_bytes())
        return NodesSeen(float(data["written"]), bool(data["ended"]), tuple(map(_node, data["nodes"])))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _node(data: Any) -> NodeSeen:
    return NodeSeen(
        address=str(data["address"]),
        machine=str(data["machine"]),
        is_open=bool(data["is_open"]),
        in_hand=tuple(map(str, data["in_hand"])),
        calls=int(data["calls"]),
        calls_per_second=float(data["calls_per_second"]),
        logs=tuple(map(str, data["logs"])),
    )
