"""What tokens cost where a price leaves out the prompt cache, and runs that were begun while that was free."""

from __future__ import annotations

import pytest

from stepdown.builder.config.price import Price
from stepdown.builder.records import Usage
from stepdown.builder.run.folder import with_prices_unset

USAGE = Usage(prompt=1000, cache_read=400, cache_write=100, completion=10)


@pytest.mark.parametrize(
    ("price", "usd"),
    [
        (Price(input=5, output=25), 5250e-6),
        (Price(input=5, cache_read=0.5, output=25), 3450e-6),
        (Price(input=5, cache_write=6.25, output=25), 5375e-6),
        (Price(input=5, cache_read=0, cache_write=0, output=25), 2750e-6),
        (Price(), 0),
    ],
)
def test_tokens_of_the_prompt_cache_cost_as_input_where_no_price_is_set(price: Price, usd: float) -> None:
    assert price.cost(USAGE) == pytest.approx(usd)


def test_a_record_of_before_equals_its_own_config() -> None:
    before = {"models": [{"price": {"input": 5, "cache_read": 0.0, "cache_write": 0.0}}]}
    unset = {"models": [{"price": {"input": 5, "cache_read": None, "cache_write": None}}]}
    assert with_prices_unset(before, unset) == unset
    stated = {"models": [{"price": {"input": 5, "cache_read": 0.5, "cache_write": 0.0}}]}
    assert with_prices_unset(before, stated) == before, "another price is another protocol"
