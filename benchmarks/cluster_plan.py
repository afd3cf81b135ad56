"""How far one head goes, on paper: from what a call costs at the head to hundreds of nodes.

    python -m benchmarks.cluster_plan [--nodes N] [--in-hand N] [--call-seconds S] [--measure]

Prints JSON: at which rate each part of the head is full, which is the first, and what so many instances in hand over so
many nodes come to. Nothing is executed; costs are those of MEASURED or, with `--measure`, of this machine
(`benchmarks.head_costs`).

An instance in hand thinks for `call-seconds` (its model, and what is done upon the answer) and then needs the head: its
interpreter, Ray's threads beside it, its disk, its network. Each serves one call after another. That is a closed
queueing network, which mean value analysis solves (Reiser and Lavenberg, 1980), exactly where service times are
exponential; real ones vary less, so real queues are shorter. Every request that is waited for is taken to need an
exchange of its own. In truth a head that falls behind takes up to BATCH of them at once, so the rates are no upper
bounds; `batched` says where they would be.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from typing import Any

from stepdown.builder.cluster.channel import HEARTBEAT
from stepdown.builder.cluster.request_queue import BATCH


@dataclass(frozen=True, slots=True)
class HeadCosts:
    """What a call costs at the head. Milliseconds are processor time, on one core of the machine that measured them."""

    exchanges: float
    """Requests of a call that are waited for: a look, the answer that is kept, its share of a trial's record."""
    handling_ms: float
    """The head's own code, for all requests of a call: cache, budget and ledger, on disk when it returns."""
    exchange_ms: float
    """Of the interpreter, for one exchange with a node."""
    ray_ms: float
    """Of Ray's threads beside it, for one exchange."""
    network_bytes: float
    """To the head and from it, for one call."""
    disk_bytes: float
    """For one call: what is stored, and once more the log that it is written to first."""

    def demands(self, machine: HeadMachine, batch: float = 1.0) -> dict[str, float]:
        """Seconds that a call keeps each part of the head busy, with so many requests in an exchange."""
        exchanges = self.exchanges / batch
        return {
            "interpreter": (self.handling_ms + exchanges * self.exchange_ms) / 1000,
            "Ray's threads": exchanges * self.ray_ms / machine.ray_cores / 1000,
            "network": self.network_bytes / machine.network_bytes_per_second,
            "disk": self.disk_bytes / machine.disk_bytes_per_second,
        }


@dataclass(frozen=True, slots=True)
class HeadMachine:
    """What the head runs on."""

    ray_cores: int = 3
    """Cores beside that of the interpreter."""
    network_bytes_per_second: float = 125e6
    """A gigabit."""
    disk_bytes_per_second: float = 100e6


MEASURED = HeadCosts(2.16, 0.0822, 0.2539, 0.3119, 3177, 5112)
"""On two cores with other work (load 10)."""


@dataclass(frozen=True, slots=True)
class Reached:
    """What so many instances in hand come to."""

    in_hand: int
    calls_per_second: float
    share_of_bound: float
    """Of what they would come to if the head cost no time."""
    added_ms: float
    """What a call waits for the head, and is served there."""
    busy: dict[str, float]
    """The share of its time that each part is busy."""


def reached(demands: dict[str, float], thinking: float, in_hand: int) -> Reached:
    """Mean value analysis: a call that comes to a part finds there what one instance fewer would leave in the mean."""
    queued = dict.fromkeys(demands, 0.0)
    rate = added = 0.0
    for instances in range(1, in_hand + 1):
        waits = {part: demand * (1 + queued[part]) for part, demand in demands.items()}
        added = sum(waits.values())
        rate = instances / (thinking + added)
        queued = {part: rate * wait for part, wait in waits.items()}
    busy = {part: round(rate * demand, 4) for part, demand in demands.items()}
    return Reached(in_hand, round(rate, 2), round(rate * thinking / in_hand, 4), round(added * 1000, 2), busy)


def planned(costs: HeadCosts, machine: HeadMachine, nodes: int, in_hand: int, thinking: float) -> dict[str, Any]:
    """What the head can do, its first bottleneck, and what a cluster of this size comes to."""
    demands = costs.demands(machine)
    first = max(demands, key=lambda part: demands[part])
    most = 1 / demands[first]
    return {
        "nodes": nodes,
        "in_hand": in_hand,
        "call_seconds": thinking,
        "costs": asdict(costs),
        "machine": asdict(machine),
        "heartbeats": _heartbeats(costs, machine, nodes),
        "full_at_calls_per_second": _rates(demands),
        "batched": _rates(costs.demands(machine, BATCH)),
        "first_bottleneck": {
            "part": first,
            "calls_per_second": round(most, 1),
            "in_hand": round(most * (thinking + sum(demands.values()))),
            "nodes": round(most * (thinking + sum(demands.values())) / in_hand * nodes),
        },
        "reached": [asdict(reached(demands, thinking, size)) for size in (in_hand // 10 or 1, in_hand, in_hand * 10)],
    }


def _heartbeats(costs: HeadCosts, machine: HeadMachine, nodes: int) -> dict[str, float]:
    """What share of its time each part is busy with nodes that have nothing to ask."""
    exchanges = nodes / HEARTBEAT / 1000
    shares = {
        "interpreter": exchanges * costs.exchange_ms,
        "Ray's threads": exchanges * costs.ray_ms / machine.ray_cores,
    }
    return {part: round(share, 4) for part, share in shares.items()}


def _rates(demands: dict[str, float]) -> dict[str, float]:
    return {part: round(1 / demand, 1) for part, demand in demands.items()}


def measured() -> HeadCosts:
    """The costs on this machine, now."""
    from benchmarks.head_costs import exchange_ms, head_figures

    figures = head_figures()
    heard, said = figures.bytes_heard / figures.answered, figures.bytes_said / figures.answered
    own, beside = exchange_ms(round(heard), round(said))
    calls = figures.calls
    return HeadCosts(
        exchanges=round(figures.answered / calls, 3),
        handling_ms=round(figures.ms_per_call, 4),
        exchange_ms=round(own, 4),
        ray_ms=round(beside, 4),
        network_bytes=round((figures.bytes_heard + figures.bytes_said) / calls) + ANSWER_BYTES,
        disk_bytes=2 * (round(figures.bytes_stored / calls) + ANSWER_BYTES),
    )


ANSWER_BYTES = 2000
"""Of an answer of 500 tokens. Those of the build that is measured are a few words."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--in-hand", type=int, default=2000, help="instances in hand over all nodes (default: 2000)")
    parser.add_argument("--call-seconds", type=float, default=10.0, help="of an instance, apart from the head")
    parser.add_argument("--measure", action="store_true", help="measure the costs of a call here, which takes a minute")
    given = parser.parse_args()
    if given.nodes < 1 or given.in_hand < 1 or given.call_seconds <= 0:
        parser.error("--nodes, --in-hand and --call-seconds must be more than 0")
    costs = measured() if given.measure else MEASURED
    print(json.dumps(planned(costs, HeadMachine(), given.nodes, given.in_hand, given.call_seconds), indent=1))


if __name__ == "__main__":
    main()
