"""Tells whoever looks at a run what its nodes do: a small file in the run's folder, written every few seconds."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path

from stepdown.builder.cluster.channel import Channel
from stepdown.builder.cluster.dispatch import Dispatch
from stepdown.builder.run.nodes import EVERY, NodeSeen, write_nodes

LATELY = 30.0
"""Seconds over which the rate of calls is taken."""

_log = logging.getLogger(__name__)


class StatusFile:
    """Writes the file of one run. Where it can not be written, nobody is told, and nothing else is lost."""

    def __init__(self, folder: Path, dispatch: Dispatch) -> None:
        self._folder, self._dispatch = folder, dispatch
        self._counts: dict[str, deque[tuple[float, int]]] = {}
        """By process, how many calls it had paid, and when that was looked at."""
        self._next = 0.0

    def note(self, channels: Iterable[Channel]) -> None:
        """Write how it stands, if that was not done just before."""
        if (now := time.monotonic()) >= self._next:
            self._next = now + EVERY
            self._write(channels, now, ended=False)

    def end(self, channels: Iterable[Channel]) -> None:
        """Write that the work has come to an end."""
        self._write(channels, time.monotonic(), ended=True)

    def _write(self, channels: Iterable[Channel], now: float, ended: bool) -> None:
        by_node: dict[str, list[Channel]] = {}
        for channel in channels:
            by_node.setdefault(channel.node, []).append(channel)
        try:
            write_nodes(self._folder, [self._seen(node, now) for node in by_node.values()], ended)
        except OSError as error:
            _log.debug("the file of nodes: %s", error)

    def _seen(self, channels: Sequence[Channel], now: float) -> NodeSeen:
        """A node, of all the processes that it has and had."""
        at_work = [channel for channel in channels if channel.is_open]
        attempts = (attempt for channel in at_work for attempt in channel.attempts)
        jobs = (self._dispatch.job_of(attempt) for attempt in attempts)
        last = (at_work or channels)[-1].process
        return NodeSeen(
            address=last.address,
            machine=last.place.machine,
            is_open=bool(at_work),
            in_hand=tuple(f"{job.instance.benchmark}/{job.instance.id}" for job in jobs if job is not None),
            calls=sum(channel.calls for channel in channels),
            calls_per_second=round(sum(self._rate(channel, now) for channel in channels), 2),
            logs=tuple(channel.process.place.log for channel in at_work or channels if channel.process.place.log),
        )

    def _rate(self, channel: Channel, now: float) -> float:
        counts = self._counts.setdefault(channel.process.name, deque())
        counts.append((now, channel.calls))
        while now - counts[0][0] > LATELY:
            counts.popleft()
        (begun, before), (_, calls) = counts[0], counts[-1]
        return (calls - before) / (now - begun) if now > begun else 0.0
