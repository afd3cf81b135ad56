"""What a tier costs: the paper's accounting rates, or a card of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from stepdown.builder.common.text import printable
from stepdown.builder.config.validation import Strict, read_yaml, validated
from stepdown.builder.errors import BadInput

PAPER = Path(__file__).with_name("paper_rates.yaml")
"""The default rates. They lie beside the code, not in `configs/`: the command must find them from anywhere."""


class Rate(Strict):
    """USD per million tokens of one tier."""

    input: float = Field(ge=0)
    """Of prompt tokens that are no cache traffic. The accounting has none; a card may leave it out."""
    cache_read: float = Field(ge=0)
    cache_write: float = Field(ge=0)
    output: float = Field(ge=0)


def read_rates(tiers: Sequence[str], card: Path | None = None) -> tuple[Rate, ...]:
    """The rates of tiers, in their order, from a YAML file: a tier's name, and its four rates.

    Raises BadInput: no rates for one of the tiers, or a strong tier (the last) that costs nothing, since savings are
    shares of what it costs.
    """
    path = card or PAPER
    data = read_yaml(path)
    for tier in tiers:
        if tier not in data:
            hint = "" if card else "; name a card of your own by --rates"
            raise BadInput(f"has no rates for tier {printable(tier)!r}{hint}", file=path)
    rates = tuple(validated(Rate, data[tier], file=path, field=tier) for tier in tiers)
    if not rates[-1].cache_write or not rates[-1].output:
        raise BadInput("the strong tier must cost something", file=path, field=tiers[-1])
    return rates
