"""How Anthropic's Messages API counts a prompt: what it reads from its cache, what it writes there, what it charges.

From its documentation: a request has at most four breakpoints; a prefix that ends at one is kept for five minutes from
its last use where it has at least 1,024 tokens; a breakpoint finds what was kept at it, or at one of the 20 blocks
before it; of the last one that finds something the prompt is read, the rest up to the last breakpoint is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LIFE = 300.0
"""Seconds from the last use."""
LEAST = 1024
"""Tokens of the shortest prefix that is kept."""
MOST_BREAKPOINTS = 4
LOOK_BACK = 20
"""Blocks before a breakpoint that are looked at too."""
WRITE, READ = 1.25, 0.1
"""Times the price of plain input."""


class Refused(Exception):
    """The request is against the API's rules."""


@dataclass(frozen=True)
class Counted:
    """Tokens of one prompt."""

    plain: int
    read: int
    written: int

    @property
    def total(self) -> int:
        return self.plain + self.read + self.written

    def usd(self, price: float) -> float:
        """What the prompt costs at a price of plain input, in USD per million tokens."""
        return (self.plain + READ * self.read + WRITE * self.written) * price / 1e6


@dataclass
class PromptBilling:
    """The caches of one account, by model. `clock` gives seconds."""

    clock: Callable[[], float]
    _kept: dict[tuple[str, str], float] = field(default_factory=dict)
    """When each prefix was last used, by model and digest."""

    def count(self, body: Mapping[str, Any]) -> Counted:
        """Count the prompt of a request to the Messages API, and keep of it what it asks to be kept. Raises Refused."""
        model, now = str(body["model"]), self.clock()
        digests, sums, breakpoints = _chained(list(blocks(body)))
        if len(breakpoints) > MOST_BREAKPOINTS:
            raise Refused(f"A maximum of 4 blocks with cache_control may be provided. Found {len(breakpoints)}.")

        def is_kept(place: int) -> bool:
            return now - self._kept.get((model, digests[place]), -LIFE - 1) <= LIFE

        hits = [
            place for end in breakpoints for place in range(end, max(-1, end - LOOK_BACK - 1), -1) if is_kept(place)
        ]
        read = sums[max(hits)] if hits else 0
        worth = [place for place in breakpoints if sums[place] >= LEAST]
        for place in {*worth, *([max(hits)] if hits else [])}:
            self._kept[model, digests[place]] = now
        end = max(sums[worth[-1]] if worth else 0, read)
        return Counted(plain=sums[-1] - end, read=read, written=end - read)


def blocks(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The blocks of a prompt in the order in which they are kept: tools, system, messages; each with its place."""
    for tool in body.get("tools", ()):
        yield "tools", tool
    for place, content in (
        ("system", body.get("system", ())),
        *((one["role"], one["content"]) for one in body["messages"]),
    ):
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield place, block


def _chained(found: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[list[str], list[int], list[int]]:
    """Of every block the digest of all up to it, the sum of their tokens, and the places of breakpoints."""
    digests: list[str] = []
    sums: list[int] = []
    chain, tokens = "", 0
    for place, block in found:
        text = json.dumps({name: value for name, value in block.items() if name != "cache_control"})
        chain = hashlib.sha256(f"{chain}{place}{text}".encode()).hexdigest()
        tokens += -(-len(text) // 4)
        digests.append(chain)
        sums.append(tokens)
    return digests, sums, [number for number, (_, block) in enumerate(found) if "cache_control" in block]
